import MartletCore
import MartletWebSocket
import Testing

/// A large message of sections 1, 9 and 10 of the Autobahn test suite.
struct AutobahnMessage: CustomTestStringConvertible, Sendable {
    /// The number of the case there.
    let number: String
    let kind: WebSocketMessage.Kind
    let byteCount: Int
    /// The maximum size of a frame's payload in bytes.
    var fragment = Int.max
    /// The maximum number of bytes in each read of the client: Autobahn's chops. By default as many as it requests.
    var chop = 16 << 10

    /// Ten bytes, so that no fragment or chop begins like the previous one; two of them are a character.
    private static let pattern: [UInt8] = Array("BAsd7&jhé".utf8)

    var testDescription: String { number }

    /// The payload, which is UTF-8.
    var payload: [UInt8] {
        var bytes = Self.pattern
        while bytes.count < byteCount { bytes += bytes }
        bytes.removeLast(bytes.count - byteCount)
        // The last character would be cut.
        if bytes.last == 0xC3 { bytes[byteCount - 1] = 0x2A }
        return bytes
    }

    /// 9.1, 9.3 and 9.5 are texts; 9.2, 9.4 and 9.6 are the same in binary.
    static let all = cases(1, .text) + cases(2, .binary)

    private static func cases(_ index: Int, _ kind: WebSocketMessage.Kind) -> [AutobahnMessage] {
        [
            AutobahnMessage(number: "1.\(index).8", kind: kind, byteCount: 65_536, chop: 997),
            AutobahnMessage(number: "10.1.1 as \(kind)", kind: kind, byteCount: 65_536, fragment: 1300),
        ]
            + sizes.enumerated().map {
                AutobahnMessage(number: "9.\(index).\($0 + 1)", kind: kind, byteCount: $1)
            }
            + fragments.enumerated().map {
                AutobahnMessage(number: "9.\(index + 2).\($0 + 1)", kind: kind, byteCount: 4 << 20, fragment: $1)
            }
            + chops.enumerated().map {
                AutobahnMessage(number: "9.\(index + 4).\($0 + 1)", kind: kind, byteCount: 1 << 20, chop: $1)
            }
    }

    /// The last one is as large as a message may be by default.
    private static let sizes = [64 << 10, 256 << 10, 1 << 20, 4 << 20, 8 << 20, 16 << 20]
    private static let fragments = [64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20]
    private static let chops = [64, 128, 256, 512, 1024, 2048]
}

@Suite("WebSocket: large messages of the Autobahn test suite", .timeLimit(.minutes(10)))
struct AutobahnSizeTests {
    @Test("A large message returns, however it is fragmented and arrives", arguments: AutobahnMessage.all)
    func large(_ test: AutobahnMessage) async throws {
        let payload = test.payload
        // The replies to 9.3 and 9.4 would be those to 9.1 and 9.2.
        let isEchoed = test.fragment == .max
        try await withSocket { (socket, server) async throws in
            let client = Task { isEchoed ? await echo(socket) : nil }
            let sent = bytes(of: fragments(test.kind, payload, byteCounts: [test.fragment]))
            server.transport.send(sent, inReadsOf: test.chop)
            // Not within the macro, which would print a failed message.
            let message = isEchoed ? try await server.next() : try await socket.receive().map(Reply.message)
            let isSame = message == .message(WebSocketMessage(test.kind, payload))
            #expect(isSame)
            try await server.close(client)
        }
    }

    @Test(
        "Small messages return one after the other",
        arguments: [0, 16, 64, 256, 1024, 4096], [WebSocketMessage.Kind.text, .binary])
    func roundTrips(_ byteCount: Int, _ kind: WebSocketMessage.Kind) async throws {
        // 9.7 and 9.8, which have 1000 messages.
        let message = WebSocketMessage(kind, AutobahnMessage(number: "9.7", kind: kind, byteCount: byteCount).payload)
        let frames = bytes(of: fragments(kind, message.bytes, byteCounts: [.max]))
        try await withSocket { (socket, server) async throws in
            let client = Task { await echo(socket) }
            for _ in 0..<200 {
                server.send(frames)
                #expect(try await server.next() == .message(message))
            }
            try await server.close(client)
        }
    }

    @Test(
        "A message above 1 MiB that arrives byte by byte is complete with its last byte", arguments: [true, false])
    func byteByByte(_ isCompressed: Bool) throws {
        let byteCount = (1 << 20) + 1
        var (payload, sent) = ([UInt8](), [UInt8]())
        if isCompressed {
            payload = AutobahnContent.json.bytes(from: 0, count: byteCount)
            let deflater = MessageDeflater(windowBits: 15, keepsContext: true, level: nil)
            sent = try deflater.compress(payload[...], isLast: true)
        } else {
            payload = AutobahnMessage(number: "9.5", kind: .text, byteCount: byteCount).payload
            sent = payload
        }
        // Heads with all three forms of a length, which are cut, too.
        let frames = fragments(.text, sent, byteCounts: [0, 125, 126, 65_535, 65_536], isCompressed: isCompressed)
        let stream = bytes(of: frames)
        var parser = MessageParser(
            limits: MessageLimits(messageByteCount: byteCount),
            inflater: MessageInflater(windowBits: 15, keepsContext: true))
        var (received, ends) = ([UInt8](), [Int]())
        for offset in stream.indices {
            parser.feed([stream[offset]])
            while let event = try parser.next() {
                if case .data(let bytes) = event { received += bytes }
                if case .end = event { ends.append(offset) }
            }
        }
        #expect(ends == [stream.count - 1])
        let isSame = received == payload
        #expect(isSame)
    }
}
