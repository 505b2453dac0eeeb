import MartletWebSocket
import Testing

/// A case of the Autobahn test suite (https://github.com/crossbario/autobahn-testsuite), written anew: the frames of a
/// server, and the replies of a client that returns each message.
struct AutobahnCase: CustomTestStringConvertible, Sendable {
    /// The number of the case there.
    let number: String
    /// The frames of the server, one after the other.
    let frames: [[UInt8]]
    /// The replies, the last of which is a Close frame. The server closes with 1000 after those before it, unless one of
    /// its frames makes the client close.
    let replies: [Reply]

    init(_ number: String, _ frames: [[UInt8]], _ replies: [Reply] = [], close: UInt16 = 1000) {
        (self.number, self.frames) = (number, frames)
        self.replies = replies + [.close(close)]
    }

    /// Whether the client closes the connection because of the frames.
    var isClosedByFrames: Bool { replies.last != .close(1000) || frames.contains { $0.first == 0x88 } }
    var testDescription: String { number }

    static let all =
        framing + pings + reservedBits + opcodes + fragmentation + texts + malformedTexts + closing + limits

    // MARK: 1 Framing

    static let framing: [AutobahnCase] = [0, 125, 126, 127, 128, 65_535, 65_536].enumerated().flatMap { index, count in
        let payload = String(repeating: "*", count: count)
        let bytes = [UInt8](repeating: 0xFE, count: count)
        return [
            AutobahnCase("1.1.\(index + 1)", [text(payload)], [.text(payload)]),
            AutobahnCase("1.2.\(index + 1)", [frame(2, bytes)], [.message(.binary(bytes))]),
        ]
    }

    // MARK: 2 Pings and pongs

    static let pings: [AutobahnCase] = [
        AutobahnCase("2.1", [frame(9)], [.pong([])]),
        AutobahnCase("2.2", [frame(9, Array("Hello, world!".utf8))], [.pong(Array("Hello, world!".utf8))]),
        AutobahnCase("2.3", [frame(9, [0x00, 0xFF, 0xFE, 0xFD])], [.pong([0x00, 0xFF, 0xFE, 0xFD])]),
        AutobahnCase(
            "2.4, 2.6", [frame(9, Array(repeating: 0xFE, count: 125))], [.pong(Array(repeating: 0xFE, count: 125))]),
        AutobahnCase("2.5", [frame(9, Array(repeating: 0xFE, count: 126))], close: 1002),
        AutobahnCase("2.7", [frame(10)]),
        AutobahnCase("2.8", [frame(10, Array("unsolicited pong payload".utf8))]),
        AutobahnCase("2.9", [frame(10, [1]), frame(9, [2])], [.pong([2])]),
        AutobahnCase("2.10, 2.11", (0..<10).map { frame(9, [$0]) }, (0..<10).map { .pong([$0]) }),
    ]

    // MARK: 3 Reserved bits

    static let reservedBits: [AutobahnCase] = [
        AutobahnCase("3.1", [frame(1, [0x2A], bits: 4)], close: 1002),
        AutobahnCase("3.2", [text("Hello"), frame(1, [0x2A], bits: 2), frame(9)], [.text("Hello")], close: 1002),
        AutobahnCase("3.3", [text("Hello"), frame(1, [0x2A], bits: 6), frame(9)], [.text("Hello")], close: 1002),
        AutobahnCase("3.4", [text("Hello"), frame(1, [0x2A], bits: 1), frame(9)], [.text("Hello")], close: 1002),
        AutobahnCase("3.5", [frame(2, [0x00, 0xFF], bits: 5)], close: 1002),
        AutobahnCase("3.6", [frame(9, [0x2A], bits: 3)], close: 1002),
        AutobahnCase("3.6 with RSV1", [frame(9, [0x2A], bits: 4)], close: 1002),
        AutobahnCase("3.7", [frame(8, [], bits: 7)], close: 1002),
    ]

    // MARK: 4 Opcodes

    static let opcodes: [AutobahnCase] = ([3, 4, 5, 6, 7, 11, 12, 13, 14, 15] as [UInt8]).flatMap { opcode in
        let section = opcode < 8 ? "4.1.\(opcode - 2)" : "4.2.\(opcode - 10)"
        return [
            AutobahnCase(section, [frame(opcode)], close: 1002),
            AutobahnCase("\(section) with a payload", [frame(opcode, Array("reserved".utf8))], close: 1002),
            AutobahnCase(
                "\(section) after a text", [text("Hello"), frame(opcode, [0x2A]), frame(9)], [.text("Hello")],
                close: 1002),
        ]
    }

    // MARK: 5 Fragmentation

    static let fragmentation: [AutobahnCase] = [
        AutobahnCase("5.1", [frame(9, [1], fin: false), frame(0, [2])], close: 1002),
        AutobahnCase("5.2", [frame(10, [1], fin: false), frame(0, [2])], close: 1002),
        AutobahnCase("5.3–5.5", [text("one", fin: false), more("two")], [.text("onetwo")]),
        AutobahnCase("5.6–5.8", [text("one", fin: false), frame(9, [7]), more("two")], [.pong([7]), .text("onetwo")]),
        AutobahnCase("5.9–5.11", [more("nothing"), text("Hello")], close: 1002),
        AutobahnCase("5.12–5.14", [more("nothing", fin: false), text("Hello")], close: 1002),
        AutobahnCase(
            "5.15", [text("one", fin: false), more("two"), more("nothing", fin: false), text("Hello")],
            [.text("onetwo")], close: 1002),
        AutobahnCase("5.16", [more("a", fin: false), text("b", fin: false), more("c")], close: 1002),
        AutobahnCase("5.17", [more("a"), text("b", fin: false), more("c")], close: 1002),
        AutobahnCase("5.18", [text("one", fin: false), text("two")], close: 1002),
        AutobahnCase(
            "5.19, 5.20",
            [
                text("1", fin: false), more("2", fin: false), frame(9, [1]), more("3", fin: false),
                more("4", fin: false),
                frame(9, [2]), more("5"),
            ], [.pong([1]), .pong([2]), .text("12345")]),
    ]

    // MARK: 6 UTF-8

    private static let greeting = "Hello-µ@ßöäüàá-UTF-8!!"

    private static func byByte(_ text: [UInt8]) -> [[UInt8]] {
        text.enumerated().map { index, byte in frame(index == 0 ? 1 : 0, [byte], fin: index == text.count - 1) }
    }

    static let texts: [AutobahnCase] =
        plainTexts
        + validTexts.map { AutobahnCase("\($0): \($1)", [frame(1, $1)], [.text(String(decoding: $1, as: UTF8.self))]) }

    private static let plainTexts: [AutobahnCase] = [
        AutobahnCase("6.1.1", [text("")], [.text("")]),
        AutobahnCase("6.1.2", [text("", fin: false), more("", fin: false), more("")], [.text("")]),
        AutobahnCase("6.1.3", [text("", fin: false), more("middle", fin: false), more("")], [.text("middle")]),
        AutobahnCase("6.2.1", [text(greeting)], [.text(greeting)]),
        AutobahnCase("6.2.2", [text("Hello-µ@ß", fin: false), more("öäüàá-UTF-8!!")], [.text(greeting)]),
        AutobahnCase("6.2.3", byByte(Array(greeting.utf8)), [.text(greeting)]),
        AutobahnCase("6.2.4", byByte(Array("κόσμε".utf8)), [.text("κόσμε")]),
    ]

    /// The valid texts of 6.5 to 6.23.
    private static let validTexts: [(String, [UInt8])] = oneTexts + planeTexts

    private static let oneTexts: [(String, [UInt8])] = [
        ("6.5", Array("κόσμε".utf8)), ("6.6.2", [0xCE, 0xBA]), ("6.6.5", [0xCE, 0xBA, 0xE1, 0xBD, 0xB9]),
        ("6.6.7", [0xCE, 0xBA, 0xE1, 0xBD, 0xB9, 0xCF, 0x83]),
        ("6.6.9", [0xCE, 0xBA, 0xE1, 0xBD, 0xB9, 0xCF, 0x83, 0xCE, 0xBC]), ("6.6.11", Array("κόσμε".utf8)),
        ("6.7.1", [0x00]), ("6.7.2", [0xC2, 0x80]), ("6.7.3", [0xE0, 0xA0, 0x80]), ("6.7.4", [0xF0, 0x90, 0x80, 0x80]),
        ("6.9.1", [0x7F]), ("6.9.2", [0xDF, 0xBF]), ("6.9.3", [0xEF, 0xBF, 0xBF]), ("6.9.4", [0xF4, 0x8F, 0xBF, 0xBF]),
        ("6.11.1", [0xED, 0x9F, 0xBF]), ("6.11.2", [0xEE, 0x80, 0x80]), ("6.11.3", [0xEF, 0xBF, 0xBD]),
        ("6.11.4", [0xF4, 0x8F, 0xBF, 0xBF]), ("6.22.1", [0xEF, 0xBF, 0xBE]), ("6.22.2", [0xEF, 0xBF, 0xBF]),
        ("6.23.1", [0xEF, 0xBF, 0xBD]),
    ]

    /// 6.22.3 to 6.22.34: the last two characters of each plane.
    private static let planeTexts: [(String, [UInt8])] = (0x1...0x10).flatMap { plane -> [(String, [UInt8])] in
        [UInt32(0xFFFE), 0xFFFF].map { last in
            let scalar = UnicodeScalar(UInt32(plane) << 16 | last) ?? "x"
            return ("6.22 in plane \(plane)", Array(String(scalar).utf8))
        }
    }

    static let malformedTexts: [AutobahnCase] =
        splitTexts
        + invalidTexts.map { AutobahnCase("\($0): \($1)", [frame(1, $1)], close: 1007) }

    private static let splitTexts: [AutobahnCase] = [
        AutobahnCase("6.3.2", byByte(Array("κόσμε".utf8) + [0xED, 0xA0, 0x80] + Array("edited".utf8)), close: 1007),
        // The error is found before the message, or even the frame, is complete.
        AutobahnCase(
            "6.4.1, 6.4.2", [frame(1, Array("κόσμε".utf8), fin: false), frame(0, [0xF4, 0x90], fin: false)], close: 1007
        ),
        AutobahnCase(
            "6.4.3, 6.4.4", [Array(frame(1, Array("κόσμε".utf8) + [0xF4, 0x90, 0x80, 0x80, 0x41]).dropLast(3))],
            close: 1007),
    ]

    /// The invalid texts of 6.3 to 6.21.
    private static let invalidTexts: [(String, [UInt8])] = [
        ("6.3.1", Array("κόσμε".utf8) + [0xED, 0xA0, 0x80] + Array("edited".utf8)),
        ("6.6.1", [0xCE]), ("6.6.3", [0xCE, 0xBA, 0xE1]), ("6.6.4", [0xCE, 0xBA, 0xE1, 0xBD]),
        ("6.6.6", [0xCE, 0xBA, 0xE1, 0xBD, 0xB9, 0xCF]), ("6.6.8", [0xCE, 0xBA, 0xE1, 0xBD, 0xB9, 0xCF, 0x83, 0xCE]),
        ("6.6.10", Array("κόσμε".utf8.dropLast())), ("6.8.1", [0xF8, 0x88, 0x80, 0x80, 0x80]),
        ("6.8.2", [0xFC, 0x84, 0x80, 0x80, 0x80, 0x80]), ("6.10.1", [0xF7, 0xBF, 0xBF, 0xBF]),
        ("6.10.2", [0xFB, 0xBF, 0xBF, 0xBF, 0xBF]), ("6.10.3", [0xFD, 0xBF, 0xBF, 0xBF, 0xBF, 0xBF]),
        ("6.11.5", [0xF4, 0x90, 0x80, 0x80]), ("6.12.1", [0x80]), ("6.12.2", [0xBF]),
        ("6.12.3–8", [0x80, 0xBF, 0x80, 0xBF, 0x80, 0xBF, 0x80]), ("6.13.1", [0xC0, 0x20, 0xC1, 0x20]),
        ("6.13.2", [0xE0, 0x20]), ("6.13.3", [0xF0, 0x20]), ("6.13.4", [0xF8, 0x20]), ("6.13.5", [0xFC, 0x20]),
        ("6.14.1", [0xC0]), ("6.14.2", [0xE0, 0x80]), ("6.14.3", [0xF0, 0x80, 0x80]),
        ("6.14.4", [0xF8, 0x80, 0x80, 0x80]),
        ("6.14.6", [0xDF]), ("6.14.7", [0xEF, 0xBF]), ("6.14.8", [0xF7, 0xBF, 0xBF]),
        ("6.14.9", [0xFB, 0xBF, 0xBF, 0xBF]),
        ("6.15.1", [0xC0, 0xE0, 0x80, 0xF0, 0x80, 0x80]), ("6.16.1", [0xFE]), ("6.16.2", [0xFF]),
        ("6.16.3", [0xFE, 0xFE, 0xFF, 0xFF]), ("6.17.1", [0xC0, 0xAF]), ("6.17.2", [0xE0, 0x80, 0xAF]),
        ("6.17.3", [0xF0, 0x80, 0x80, 0xAF]), ("6.17.4", [0xF8, 0x80, 0x80, 0x80, 0xAF]), ("6.18.1", [0xC1, 0xBF]),
        ("6.18.2", [0xE0, 0x9F, 0xBF]), ("6.18.3", [0xF0, 0x8F, 0xBF, 0xBF]), ("6.19.1", [0xC0, 0x80]),
        ("6.19.2", [0xE0, 0x80, 0x80]), ("6.19.3", [0xF0, 0x80, 0x80, 0x80]), ("6.20.1", [0xED, 0xA0, 0x80]),
        ("6.20.2", [0xED, 0xAD, 0xBF]), ("6.20.3", [0xED, 0xAE, 0x80]), ("6.20.4", [0xED, 0xAF, 0xBF]),
        ("6.20.5", [0xED, 0xB0, 0x80]), ("6.20.6", [0xED, 0xBE, 0x80]), ("6.20.7", [0xED, 0xBF, 0xBF]),
        ("6.21.1", [0xED, 0xA0, 0x80, 0xED, 0xB0, 0x80]), ("6.21.8", [0xED, 0xAF, 0xBF, 0xED, 0xBF, 0xBF]),
    ]

    // MARK: 7 The closing handshake

    static let closing: [AutobahnCase] =
        closeFrames
        + validCodes.map { AutobahnCase("7.7: \($0)", [close($0)], close: $0) }
        + invalidCodes.map { AutobahnCase("7.9, 7.13: \($0)", [close($0)], close: 1002) }

    private static let validCodes: [UInt16] = [
        1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999,
    ]
    private static let invalidCodes: [UInt16] = [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535]

    private static let closeFrames: [AutobahnCase] = [
        AutobahnCase("7.1.2", [close(1000), close(1000)]), AutobahnCase("7.1.3", [close(1000), frame(9)]),
        AutobahnCase("7.1.4", [close(1000), text("late")]),
        AutobahnCase("7.1.5", [text("one", fin: false), close(1000), more("two")]),
        AutobahnCase("7.1.6", [frame(2, [UInt8](repeating: 1, count: 262_144), fin: false), close(1000), frame(9)]),
        AutobahnCase("7.3.1", [frame(8)], close: 1005), AutobahnCase("7.3.2", [frame(8, [0x03])], close: 1002),
        AutobahnCase("7.3.3", [close(1000)]), AutobahnCase("7.3.4", [close(1000, "Hello, world!")]),
        AutobahnCase("7.3.5", [close(1000, String(repeating: "*", count: 123))]),
        AutobahnCase("7.3.6", [close(1000, String(repeating: "*", count: 124))], close: 1002),
        AutobahnCase("7.5.1", [frame(8, [0x03, 0xE8, 0xCE, 0xBA, 0xED, 0xA0, 0x80])], close: 1007),
    ]

    // MARK: 9 and 10 Large messages

    static let limits: [AutobahnCase] = large + largeInFragments + many + [automaticFragments]

    private static let large: [AutobahnCase] = [65_536, 262_144, 1 << 20].flatMap { count -> [AutobahnCase] in
        let payload = String(repeating: "*", count: count)
        let bytes = [UInt8](repeating: 0xFE, count: count)
        return [
            AutobahnCase("9.1: \(count)", [text(payload)], [.text(payload)]),
            AutobahnCase("9.2: \(count)", [frame(2, bytes)], [.message(.binary(bytes))]),
        ]
    }

    private static let largeInFragments: [AutobahnCase] = [64, 256, 1024, 4096, 16_384, 65_536].flatMap { size in
        [
            AutobahnCase("9.3: \(size)", fragments(1, 262_144, size), [.text(String(repeating: "*", count: 262_144))]),
            AutobahnCase(
                "9.4: \(size)", fragments(2, 262_144, size), [.message(.binary(Array(repeating: 0x2A, count: 262_144)))]
            ),
        ]
    }

    private static let many: [AutobahnCase] = [0, 16, 64, 256, 1024].map { size in
        let payload = String(repeating: "*", count: size)
        return AutobahnCase(
            "9.7, 9.8: \(size)", Array(repeating: text(payload), count: 1000),
            Array(repeating: .text(payload), count: 1000))
    }

    private static let automaticFragments = AutobahnCase(
        "10.1.1", fragments(1, 65_536, 1300), [.text(String(repeating: "*", count: 65_536))])

    /// Returns a message of asterisks in fragments of a size.
    private static func fragments(_ opcode: UInt8, _ count: Int, _ size: Int) -> [[UInt8]] {
        stride(from: 0, to: count, by: size).map { start in
            let payload = [UInt8](repeating: 0x2A, count: min(size, count - start))
            return frame(start == 0 ? opcode : 0, payload, fin: start + size >= count)
        }
    }
}
