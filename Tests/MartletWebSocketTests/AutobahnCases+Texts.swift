import MartletWebSocket

/// Section 6: texts. Those of 6.5 to 6.23 follow Markus Kuhn's decoder stress test
/// (https://www.cl.cam.ac.uk/~mgk25/ucs/examples/UTF-8-test.txt).
extension AutobahnCase {
    private static let greeting = "Hello-µ@ßöäüàá-UTF-8!!"
    /// “Cosmos”, with an accent that is a code point of three bytes.
    private static let greek: [UInt8] = [0xCE, 0xBA, 0xE1, 0xBD, 0xB9, 0xCF, 0x83, 0xCE, 0xBC, 0xCE, 0xB5]

    static let texts =
        plainTexts
        + validTexts.map { AutobahnCase("\($0): \($1)", [frame(1, $1)], [.text(String(decoding: $1, as: UTF8.self))]) }

    static let malformedTexts =
        splitTexts + invalidTexts.map { AutobahnCase("\($0): \($1)", [frame(1, $1)], close: 1007) }

    private static func byByte(_ text: [UInt8]) -> [[UInt8]] {
        text.enumerated().map { index, byte in frame(index == 0 ? 1 : 0, [byte], fin: index == text.count - 1) }
    }

    private static let plainTexts: [AutobahnCase] = [
        AutobahnCase("6.1.1", [text("")], [.text("")]),
        AutobahnCase("6.1.2", [text("", fin: false), more("", fin: false), more("")], [.text("")]),
        AutobahnCase("6.1.3", [text("", fin: false), more("middle", fin: false), more("")], [.text("middle")]),
        AutobahnCase("6.2.1", [text(greeting)], [.text(greeting)]),
        AutobahnCase("6.2.2", [text("Hello-µ@ß", fin: false), more("öäüàá-UTF-8!!")], [.text(greeting)]),
        AutobahnCase("6.2.3", byByte(Array(greeting.utf8)), [.text(greeting)]),
        AutobahnCase("6.2.4", byByte(greek), [.text(String(decoding: greek, as: UTF8.self))]),
    ]

    private static let splitTexts: [AutobahnCase] = [
        AutobahnCase("6.3.2", byByte(greek + [0xED, 0xA0, 0x80] + Array("edited".utf8)), close: 1007),
        // The error is found before the message, or even the frame, is complete. The wrong byte is the 13th.
        AutobahnCase(
            "6.4.1", [frame(1, greek, fin: false), frame(0, [0xF4, 0x90, 0x80, 0x80], fin: false)], close: 1007),
        AutobahnCase("6.4.2", [frame(1, greek + [0xF4], fin: false), frame(0, [0x90], fin: false)], close: 1007),
        AutobahnCase(
            "6.4.3", [Array(frame(1, greek + [0xF4, 0x90, 0x80, 0x80, 0x65, 0x64]).dropLast(2))], close: 1007),
        AutobahnCase(
            "6.4.4", [Array(frame(1, greek + [0xF4, 0x90, 0x80, 0x80, 0x65, 0x64]).dropLast(4))], close: 1007),
    ]

    /// Returns the texts of a section with their numbers.
    private static func numbered(_ section: String, from first: Int = 1, _ texts: [[UInt8]]) -> NumberedTexts {
        texts.enumerated().map { ("\(section).\(first + $0)", $1) }
    }

    /// Returns the beginnings of a text with these sizes in bytes.
    private static func prefixes(_ byteCounts: [Int]) -> NumberedTexts {
        byteCounts.map { ("6.6.\($0)", Array(greek.prefix($0))) }
    }

    private typealias NumberedTexts = [(String, [UInt8])]

    private static let validTexts = [NumberedTexts](
        [
            numbered(
                "6.5", ["hello$world", "hello¢world", "hello€world", "hello𤭢world"].map { Array($0.utf8) } + [greek]),
            prefixes([2, 5, 7, 9, 11]),
            numbered("6.7", [[0x00], [0xC2, 0x80], [0xE0, 0xA0, 0x80], [0xF0, 0x90, 0x80, 0x80]]),
            numbered("6.9", [[0x7F], [0xDF, 0xBF], [0xEF, 0xBF, 0xBF], [0xF4, 0x8F, 0xBF, 0xBF]]),
            numbered(
                "6.11", [[0xED, 0x9F, 0xBF], [0xEE, 0x80, 0x80], [0xEF, 0xBF, 0xBD], [0xF4, 0x8F, 0xBF, 0xBF]]),
            numbered("6.22", nonCharacters),
            numbered("6.23", (0xB9...0xBF).map { [0xEF, 0xBF, $0] }),
        ]
    ).flatMap(\.self)

    /// The last two code points of each plane, which are valid in UTF-8.
    private static let nonCharacters: [[UInt8]] = (UInt32(0)...0x10).flatMap { plane -> [[UInt8]] in
        [UInt32(0xFFFE), 0xFFFF].map { Array(String(UnicodeScalar(plane << 16 | $0) ?? "x").utf8) }
    }

    private static let invalidTexts = [NumberedTexts](
        [
            numbered("6.3", [greek + [0xED, 0xA0, 0x80] + Array("edited".utf8)]),
            prefixes([1, 3, 4, 6, 8, 10]),
            numbered("6.8", [[0xF8, 0x88, 0x80, 0x80, 0x80], [0xFC, 0x84, 0x80, 0x80, 0x80, 0x80]]),
            numbered(
                "6.10",
                [[0xF7, 0xBF, 0xBF, 0xBF], [0xFB, 0xBF, 0xBF, 0xBF, 0xBF], [0xFD, 0xBF, 0xBF, 0xBF, 0xBF, 0xBF]]),
            numbered("6.11", from: 5, [[0xF4, 0x90, 0x80, 0x80]]),
            numbered("6.12", continuations),
            numbered("6.13", loneStarts),
            numbered("6.14", truncated),
            numbered("6.15", [Array(truncated.joined())]),
            numbered("6.16", [[0xFE], [0xFF], [0xFE, 0xFE, 0xFF, 0xFF]]),
            numbered("6.17", overlong([0xC0, 0xAF], [0xE0, 0x80, 0xAF], [0xF0, 0x80, 0x80, 0xAF], last: 0xAF)),
            numbered(
                "6.18",
                [
                    [0xC1, 0xBF], [0xE0, 0x9F, 0xBF], [0xF0, 0x8F, 0xBF, 0xBF], [0xF8, 0x87, 0xBF, 0xBF, 0xBF],
                    [0xFC, 0x83, 0xBF, 0xBF, 0xBF, 0xBF],
                ]),
            numbered("6.19", overlong([0xC0, 0x80], [0xE0, 0x80, 0x80], [0xF0, 0x80, 0x80, 0x80], last: 0x80)),
            numbered("6.20", surrogates),
            numbered("6.21", surrogates[..<4].flatMap { [$0 + [0xED, 0xB0, 0x80], $0 + [0xED, 0xBF, 0xBF]] }),
        ]
    ).flatMap(\.self)

    private static let continuations: [[UInt8]] =
        [[0x80], [0xBF]] + (2...6).map { count in (0..<count).map { $0 % 2 == 0 ? 0x80 : 0xBF } }
        + [Array(0x80..<0xBF)]

    private static func overlong(_ short: [UInt8]..., last: UInt8) -> [[UInt8]] {
        short + [[0xF8, 0x80, 0x80, 0x80, last], [0xFC, 0x80, 0x80, 0x80, 0x80, last]]
    }

    private static let loneStarts: [[UInt8]] = [0xC0..<0xDF, 0xE0..<0xEF, 0xF0..<0xF7, 0xF8..<0xFB, 0xFC..<0xFD].map {
        (starts: Range<UInt8>) in starts.flatMap { [$0, 0x20] }
    }

    private static let truncated: [[UInt8]] = [
        [0xC0], [0xE0, 0x80], [0xF0, 0x80, 0x80], [0xF8, 0x80, 0x80, 0x80], [0xFC, 0x80, 0x80, 0x80, 0x80],
        [0xDF], [0xEF, 0xBF], [0xF7, 0xBF, 0xBF], [0xFB, 0xBF, 0xBF, 0xBF], [0xFD, 0xBF, 0xBF, 0xBF, 0xBF],
    ]

    private static let surrogates: [[UInt8]] = [
        [0xED, 0xA0, 0x80], [0xED, 0xAD, 0xBF], [0xED, 0xAE, 0x80], [0xED, 0xAF, 0xBF],
        [0xED, 0xB0, 0x80], [0xED, 0xBE, 0x80], [0xED, 0xBF, 0xBF],
    ]
}
