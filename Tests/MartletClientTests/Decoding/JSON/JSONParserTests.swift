import MartletContent
import MartletCore
import Testing

@Suite("JSON parsing by RFC 8259")
struct JSONParserTests {
    /// Valid JSON texts, with the text that the encoder writes for each.
    static let accepted: [(String, String)] = [
        // Literals, whitespace and scalars at the top level (§2, §3).
        ("null", "null"), ("true", "true"), ("false", "false"), (" \t\r\n1 \t\r\n", "1"), ("\"\"", "\"\""),
        ("[]", "[]"), ("{}", "{}"), ("[ ]", "[]"), ("{ }", "{}"), ("\u{FEFF}[]", "[]"),
        // Arrays and objects (§4, §5).
        ("[1, 2,3 ,[ [] ,{}]]", "[1,2,3,[[],{}]]"), ("[null,true,false,\"\",0]", "[null,true,false,\"\",0]"),
        ("{\"b\":1 , \"a\" : {\"c\":[]}}", "{\"b\":1,\"a\":{\"c\":[]}}"), ("{\"\":0}", "{\"\":0}"),
        ("{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}"), ("{\"\\u0061\":1,\"a\":2}", "{\"a\":2}"),
        ("{\"\u{E9}\":1,\"e\u{301}\":2}", "{\"\u{E9}\":1,\"e\u{301}\":2}"),
        // Numbers (§6), written back unchanged.
        ("0", "0"), ("-0", "-0"), ("-1", "-1"), ("10", "10"), ("1.5", "1.5"), ("0.000", "0.000"),
        ("1e5", "1e5"),
        ("1E+05", "1E+05"), ("-1.25e-10", "-1.25e-10"), ("0e0", "0e0"), ("1e400", "1e400"),
        ("1e-400", "1e-400"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
        ("1e99999999999999999999", "1e99999999999999999999"),
        // Strings (§7).
        ("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\""),
        ("\"\\u0041\\u00e9\\u20AC\"", "\"Aé€\""),
        ("\"\\uD83D\\uDE00\"", "\"😀\""), ("\"\\ud834\\udd1e\"", "\"𝄞\""), ("\"\\u0000\"", "\"\\u0000\""),
        ("\"\\u001F\u{7F}\u{2028}\"", "\"\\u001f\u{7F}\u{2028}\""),
        ("\"\\uFFFD\\uF8FF\"", "\"\u{FFFD}\u{F8FF}\""),
        ("\"\\\\u0041\"", "\"\\\\u0041\""), ("\"日本 \u{301}\"", "\"日本 \u{301}\""),
        ("\"</script>\"", "\"</script>\""),
    ]

    @Test("Valid JSON is parsed and written again", arguments: accepted)
    func accepting(text: String, written: String) throws {
        let value = try JSONValue(parsing: text)
        #expect(value.text() == written)
        #expect(try JSONValue(parsing: written) == value)
        #expect(try JSONValue(parsing: value.text([.indented, .sorted])) == value)
    }

    /// Invalid JSON texts, each with its error and the offset of the error in bytes.
    static let rejected: [(String, JSONError.Reason, Int)] = [
        // Empty and truncated input (§2).
        ("", .unexpectedEnd, 0), (" ", .unexpectedEnd, 1), ("\u{FEFF}", .unexpectedEnd, 3),
        ("nul", .unexpectedEnd, 3),
        ("[", .unexpectedEnd, 1), ("{", .unexpectedEnd, 1), ("[1", .unexpectedEnd, 2),
        ("[1,", .unexpectedEnd, 3),
        ("{\"a\"", .unexpectedEnd, 4), ("{\"a\":", .unexpectedEnd, 5), ("{\"a\":1", .unexpectedEnd, 6),
        ("{\"a\":1,", .unexpectedEnd, 7), ("\"", .unexpectedEnd, 1), ("\"a", .unexpectedEnd, 2),
        ("\"a\\", .unexpectedEnd, 3), ("\"\\\"", .unexpectedEnd, 3), ("[\"", .unexpectedEnd, 2),
        ("-", .unexpectedEnd, 1),
        ("1.", .unexpectedEnd, 2), ("1e", .unexpectedEnd, 2), ("1e+", .unexpectedEnd, 3),
        // More than one value.
        ("1 2", .trailingBytes, 2), ("[]]", .trailingBytes, 2), ("{}}", .trailingBytes, 2),
        ("\"\"x", .trailingBytes, 2),
        ("null,", .trailingBytes, 4), ("[]\u{0}", .trailingBytes, 2), ("1 /**/", .trailingBytes, 2),
        // Literals of other languages.
        ("True", .unexpectedByte, 0), ("nulL", .unexpectedByte, 3), ("NaN", .unexpectedByte, 0),
        ("Infinity", .unexpectedByte, 0), ("-Infinity", .invalidNumber, 1), ("undefined", .unexpectedByte, 0),
        ("'a'", .unexpectedByte, 0), ("a", .unexpectedByte, 0), ("\u{A0}1", .unexpectedByte, 0),
        ("\u{C}1", .unexpectedByte, 0), ("\u{B}[]", .unexpectedByte, 0), ("// x\n1", .unexpectedByte, 0),
        ("#", .unexpectedByte, 0),
        // Arrays and objects.
        ("[,]", .unexpectedByte, 1), ("[1,]", .unexpectedByte, 3), ("[,1]", .unexpectedByte, 1),
        ("[1,,2]", .unexpectedByte, 3),
        ("[1 2]", .unexpectedByte, 3), ("[1}", .unexpectedByte, 2), ("[1:2]", .unexpectedByte, 2),
        ("{]", .unexpectedByte, 1),
        ("{\"a\":1]", .unexpectedByte, 6), ("{a:1}", .unexpectedByte, 1), ("{1:1}", .unexpectedByte, 1),
        ("{'a':1}", .unexpectedByte, 1), ("{\"a\" 1}", .unexpectedByte, 5),
        ("{\"a\"::1}", .unexpectedByte, 5),
        ("{\"a\",1}", .unexpectedByte, 4), ("{\"a\":}", .unexpectedByte, 5),
        ("{\"a\":1,}", .unexpectedByte, 7),
        ("{,}", .unexpectedByte, 1), ("{\"a\":1,,}", .unexpectedByte, 7),
        ("{\"a\":1 \"b\":2}", .unexpectedByte, 7),
        ("{[]:1}", .unexpectedByte, 1), ("]", .unexpectedByte, 0), (",", .unexpectedByte, 0),
        (":", .unexpectedByte, 0),
        // Numbers.
        ("01", .invalidNumber, 1), ("-01", .invalidNumber, 2), ("00", .invalidNumber, 1),
        ("1.e1", .invalidNumber, 2),
        ("[1.]", .invalidNumber, 3), ("[1e]", .invalidNumber, 3), ("[1e+]", .invalidNumber, 4),
        ("--1", .invalidNumber, 1),
        ("-a", .invalidNumber, 1), ("[-]", .invalidNumber, 2), ("+1", .unexpectedByte, 0),
        (".5", .unexpectedByte, 0),
        ("1.5.5", .trailingBytes, 3), ("0x1", .trailingBytes, 1), ("1_000", .trailingBytes, 1),
        ("1e1.5", .trailingBytes, 3),
        ("１", .unexpectedByte, 0), ("1e--1", .invalidNumber, 3),
        // Strings.
        ("\"\u{0}\"", .controlCharacter, 1), ("\"a\nb\"", .controlCharacter, 2),
        ("\"\t\"", .controlCharacter, 1),
        ("\"\u{1F}\"", .controlCharacter, 1), ("\"\\x41\"", .invalidEscape, 1),
        ("\"\\'\"", .invalidEscape, 1),
        ("\"\\\u{0}\"", .invalidEscape, 1), ("\"\\a\"", .invalidEscape, 1),
        ("\"\\U0041\"", .invalidEscape, 1),
        ("\"\\u\"", .invalidEscape, 1), ("\"\\u00\"", .invalidEscape, 1), ("\"\\u00G0\"", .invalidEscape, 1),
        ("\"\\u+041\"", .invalidEscape, 1), ("\"\\u00 1\"", .invalidEscape, 1),
        ("\"x\\é\"", .invalidEscape, 2),
        ("\"\\uD800\"", .loneSurrogate, 1), ("\"\\uDC00\"", .loneSurrogate, 1),
        ("\"\\uD800x\"", .loneSurrogate, 1),
        ("\"\\uD800\\n\"", .loneSurrogate, 1), ("\"\\uD800\\uD800\"", .loneSurrogate, 1),
        ("\"\\uDE00\\uD83D\"", .loneSurrogate, 1), ("\"\\uD800\\u00\"", .invalidEscape, 7),
        ("{\"\\uD800\":1}", .loneSurrogate, 2),
    ]

    @Test("Invalid JSON is an error with the offset of the byte", arguments: rejected)
    func rejecting(text: String, reason: JSONError.Reason, offset: Int) {
        #expect(throws: JSONError(reason: reason, offset: offset)) { try JSONValue(parsing: text) }
    }

    @Test(
        "A string that is not UTF-8 is rejected with the offset of the byte",
        arguments: [
            ([0x22, 0xFF, 0x22], 1), ([0x22, 0x41, 0xC3, 0x22], 2), ([0x22, 0xC0, 0x80, 0x22], 1),
            ([0x22, 0xED, 0xA0, 0x80, 0x22], 1), ([0x22, 0xC3, 0xA9, 0xF4, 0x90, 0x80, 0x80, 0x22], 3),
            ([0x22, 0x5C, 0x6E, 0x80, 0x22], 3),
        ] as [([UInt8], Int)])
    func malformed(bytes: [UInt8], offset: Int) {
        #expect(throws: JSONError(reason: .invalidUTF8, offset: offset)) { try JSONValue(parsing: bytes) }
    }

    @Test("UTF-16 is rejected, with a byte order mark or without")
    func utf16() {
        #expect(throws: JSONError.self) { try JSONValue(parsing: [0xFF, 0xFE, 0x5B, 0, 0x5D, 0]) }
        #expect(throws: JSONError.self) { try JSONValue(parsing: [0, 0x5B, 0, 0x5D]) }
    }

    @Test(
        "Nesting up to the limit is accepted, and one level more is an error at its first byte",
        arguments: ["[", "{\"a\":"])
    func depth(opening: String) throws {
        func text(_ depth: Int) -> String {
            String(repeating: opening, count: depth) + "1"
                + String(repeating: opening == "[" ? "]" : "}", count: depth)
        }
        for limit in [0, 1, 5, 512, 1024] {
            #expect(try JSONValue(parsing: text(limit), depthLimit: limit).text() == text(limit))
            let offset = opening.utf8.count * limit
            #expect(throws: JSONError(reason: .tooDeep, offset: offset)) {
                try JSONValue(parsing: text(limit + 1), depthLimit: limit)
            }
        }
        #expect(throws: JSONError.self) { try JSONValue(parsing: text(513)) }
        #expect(throws: JSONError.self) { try JSONValue(parsing: text(1025), depthLimit: .max) }
        #expect(throws: JSONError.self) { try JSONValue(parsing: text(1), depthLimit: .min) }
    }

    @Test("Every prefix of a text gives a value or an error and does not trap")
    func prefixes() throws {
        let text = Array("{\"a\":[1,-2.5e+3,\"\\uD83D\\uDE00\\n\",null,true],\"b\":{\"c\":\"é\"}}".utf8)
        _ = try JSONValue(parsing: text)
        for count in 0..<text.count {
            #expect(throws: JSONError.self) { try JSONValue(parsing: Array(text[..<count])) }
        }
    }

    @Test(
        "A megabyte of any input is parsed in linear time",
        arguments: [
            ",", "[", "]", "{", "\"", "\\", "1", "-", "[1,", "{\"a\":", "\"\\u", "\\uD800", "\"a\",", " ",
            "1e",
        ])
    func huge(unit: String) {
        let text = String(repeating: unit, count: (1 << 20) / unit.utf8.count)
        let (_, time) = ThreadTime.of {
            for begun in ["", "[", "\"", "[\"\",", "{\"\":"] { _ = try? JSONValue(parsing: begun + text) }
        }
        #expect(time < .seconds(60))
    }

    @Test("Objects with many members, or with one name many times, are parsed in linear time")
    func manyMembers() throws {
        let (values, time) = try ThreadTime.of {
            let distinct = (0..<20_000).map { "\"\($0)\":\($0)" }.joined(separator: ",")
            let same = (0..<20_000).map { "\"a\":\($0)" }.joined(separator: ",")
            return (try JSONValue(parsing: "{\(distinct)}"), try JSONValue(parsing: "{\(same)}"))
        }
        #expect(values.0.objectValue?.count == 20_000)
        #expect(values.0["19999"] == 19999)
        #expect(values.1 == ["a": 19999])
        #expect(time < .seconds(60))
    }
}
