import MartletContent
import MartletCore
import MartletHosts
import Testing

@Suite("Text decoding")
struct TextDecodingTests {
    @Test(
        "Bytes are decoded by byte order mark, then by charset, then as UTF-8",
        arguments: [
            (nil, [0xC3, 0xA9], "é"), ("utf-8", [0xC3, 0xA9], "é"), ("UTF8", [0xC3, 0xA9], "é"),
            ("nonsense", [0xC3, 0xA9], "é"), (nil, [0xE9, 0x21], "\u{FFFD}!"), ("iso-8859-1", [0xE9], "é"),
            ("Latin1", [0x80, 0x9F], "€Ÿ"), ("windows-1252", [0x81, 0x99], "\u{81}™"),
            ("us-ascii", [0x41, 0xE9], "Aé"),
            ("utf-16le", [0xE9, 0], "é"), ("utf-16be", [0, 0xE9], "é"), ("utf-16", [0xE9, 0], "é"),
            ("utf-16be", [0xD8, 0x3D, 0xDE, 0], "😀"), ("utf-16le", [0x3D, 0xD8], "\u{FFFD}"),
            ("utf-16le", [0x41, 0, 0x42], "A\u{FFFD}"), ("iso-8859-1", [0xEF, 0xBB, 0xBF, 0xC3, 0xA9], "é"),
            ("utf-8", [0xFE, 0xFF, 0, 0x41], "A"), (nil, [0xFF, 0xFE, 0x41, 0], "A"),
            ("utf-8", [0xEF, 0xBB], "\u{FFFD}"),
            ("iso-8859-15", [0xA4, 0xA6, 0xBE, 0xE9, 0x80], "€ŠŸé\u{80}"), (" LATIN-9 ", [0xBD], "œ"),
            ("utf-32", [0, 1, 0xF6, 0], "😀"), ("utf-32le", [0, 0xF6, 1, 0], "😀"),
            ("utf-32", [0xFF, 0xFE, 0, 0, 0x41, 0, 0, 0], "A"),
            ("utf-32le", [0, 0, 0xFE, 0xFF, 0, 0, 0, 0x41], "A"),
            ("utf-32", [0, 0, 0xD8, 0, 0, 0, 0], "\u{FFFD}\u{FFFD}"),
            ("utf-32", [0xFF, 0xFF, 0xFF, 0xFF], "\u{FFFD}"),
            ("utf-16", [0xFF, 0xFE, 0, 0], "\u{0}"), ("utf-32", [], ""),
            (nil, [], ""), ("utf-16", [], ""), (nil, [0xEF, 0xBB, 0xBF], ""),
        ] as [(String?, [UInt8], String)])
    func decoding(charset: String?, bytes: [UInt8], text: String) {
        #expect(
            Array(TextDecoding(charset: charset).text(from: bytes).unicodeScalars)
                == Array(text.unicodeScalars))
    }

    @Test(
        "Strict decoding reports the offset of the first invalid byte",
        arguments: [
            ("utf-8", [0x41, 0xFF], 1), ("utf-8", [0xEF, 0xBB, 0xBF, 0x41, 0xC3], 4),
            ("utf-8", [0xED, 0xA0, 0x80], 0),
            ("utf-16le", [0x41, 0, 0x3D, 0xD8], 2), ("utf-16be", [0, 0x41, 0], 2),
            ("utf-32", [0, 0, 0, 0x41, 0], 4),
            ("utf-32", [0, 0, 0, 0x41, 0, 0, 0xD8, 0], 4), ("utf-8", [0xFE, 0xFF, 0xDC, 0], 2),
        ] as [(String, [UInt8], Int)])
    func strict(charset: String, bytes: [UInt8], offset: Int) throws {
        let error = try #require(
            #expect(throws: ResponseDecodingError.self) {
                try TextDecoding(charset: charset).strictText(from: bytes)
            })
        guard case .malformedText(_, let found) = error else { return #expect(Bool(false), "\(error)") }
        #expect(found == offset)
    }

    @Test("Strict decoding of valid text gives the same result as lenient decoding")
    func strictSense() throws {
        for (charset, bytes) in [
            ("utf-8", [0xEF, 0xBF, 0xBD]), ("latin1", [0x81, 0xFF]), ("utf-16", [0x3D, 0xD8, 0, 0xDE]),
        ] as [(String, [UInt8])] {
            let decoding = TextDecoding(charset: charset)
            #expect(try decoding.strictText(from: bytes) == decoding.text(from: bytes))
        }
    }
}
