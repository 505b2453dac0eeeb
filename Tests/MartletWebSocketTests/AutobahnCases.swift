import MartletWebSocket
import Testing

/// A case of the Autobahn test suite (https://github.com/crossbario/autobahn-testsuite), written from RFC 6455: the
/// frames of a server, and the replies of a client that returns each message.
struct AutobahnCase: CustomTestStringConvertible, Sendable {
    /// The number of the case there.
    let number: String
    /// The frames of the server, one after the other.
    let frames: [[UInt8]]
    /// The replies; the last one is a Close frame. The server closes with 1000 after the others, unless one of its
    /// frames makes the client close.
    let replies: [Reply]

    init(_ number: String, _ frames: [[UInt8]], _ replies: [Reply] = [], close: UInt16 = 1000) {
        (self.number, self.frames) = (number, frames)
        self.replies = replies + [.close(close)]
    }

    /// Whether the client closes the connection because of the frames.
    var isClosedByFrames: Bool { replies.last != .close(1000) || frames.contains { $0.first == 0x88 } }
    var testDescription: String { number }

    static let all =
        framing + pings + reservedBits + opcodes + fragmentation + texts + malformedTexts + closing + many

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

    // MARK: 7 The closing handshake

    static let closing: [AutobahnCase] =
        closeFrames
        + validCodes.map { AutobahnCase("7.7: \($0)", [close($0)], close: $0) }
        + invalidCodes.map { AutobahnCase("\($0 < 5000 ? "7.9" : "7.13"): \($0)", [close($0)], close: 1002) }

    private static let validCodes: [UInt16] = [
        1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999,
    ]
    private static let invalidCodes: [UInt16] = [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535]

    private static let closeFrames: [AutobahnCase] = [
        AutobahnCase("7.1.1", [text("Hello")], [.text("Hello")]),
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

    // MARK: 9 Many messages

    /// 9.7 and 9.8 without waiting for the replies.
    static let many: [AutobahnCase] = [0, 16, 64, 256, 1024].map { size in
        let payload = String(repeating: "*", count: size)
        return AutobahnCase(
            "9.7, 9.8: \(size)", Array(repeating: text(payload), count: 1000),
            Array(repeating: .text(payload), count: 1000))
    }
}
