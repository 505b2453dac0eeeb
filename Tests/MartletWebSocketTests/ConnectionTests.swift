import MartletCore
import MartletTestSupport
import MartletWebSocket
import Testing

@Suite("WebSocket: messages of a connection", .timeLimit(.minutes(5)))
struct MessageTests {
    @Test("Messages of all kinds arrive in the order of the calls, masked")
    func sending() async throws {
        try await withSocket { (socket, server) async throws in
            try await socket.send("one")
            try await socket.send([1, 2, 3])
            try await socket.send("")
            try await socket.send(.binary([]))
            #expect(try await server.next() == .text("one"))
            #expect(try await server.next() == .message(.binary([1, 2, 3])))
            #expect(try await server.next() == .text(""))
            #expect(try await server.next() == .message(.binary([])))
        }
    }

    @Test("Messages of several tasks are not interleaved, and one write runs at a time")
    func concurrentSending() async throws {
        try await withSocket({ $0.fragmentSize = .kibibytes(1) }) { (socket, server) async throws in
            let messages = (0..<20).map { WebSocketMessage.binary(Array(repeating: UInt8($0), count: 5000)) }
            let transport = server.transport
            await withTaskGroup(of: Void.self) { group in
                for message in messages { group.addTask { try? await socket.send(message) } }
                group.addTask { for _ in 0..<20 { transport.send(frame(9, [9])) } }
            }
            var received: Set<WebSocketMessage> = []
            while received.count < messages.count, let reply = try await server.next() {
                if case .message(let message) = reply { received.insert(message) }
            }
            #expect(received == Set(messages))
            #expect(server.transport.concurrentWrites == 1)
        }
    }

    @Test("A message in pieces is sent as one, with pongs between its fragments")
    func streamedSending() async throws {
        for negotiation in [nil, DeflateNegotiation()] {
            try await withSocket(negotiation: negotiation) { (socket, server) async throws in
                let (pieces, source) = AsyncStream.makeStream(of: [UInt8].self)
                let sender = Task { try await socket.send(.text, contentsOf: pieces) }
                let other = Task { try await socket.send("other") }
                // The character is cut in the middle.
                source.yield(Array("κόσμ".utf8) + [0xCE])
                server.send(frame(9, [1]))
                var replies: Set<Reply> = []
                while !replies.contains(.pong([1])), let reply = try await server.next() { replies.insert(reply) }
                source.yield([])
                source.yield([0xB5])
                source.finish()
                try await sender.value
                try await other.value
                while replies.count < 3, let reply = try await server.next() { replies.insert(reply) }
                #expect(replies == [.pong([1]), .text("κόσμε"), .text("other")])
            }
        }
    }

    @Test("A piece of a text that is not UTF-8 closes the connection")
    func invalidStreamedText() async throws {
        try await withSocket { (socket, server) async throws in
            let (pieces, source) = AsyncStream.makeStream(of: [UInt8].self)
            source.yield([0x41])
            source.yield([0xC3])
            source.finish()
            await #expect(throws: WebSocketError.invalidText) { try await socket.send(.text, contentsOf: pieces) }
            #expect(try await server.next() == .close(1011))
            await #expect(throws: WebSocketError.messageAbandoned) { try await socket.send("late") }
        }
    }

    @Test("Messages are read in pieces, and the rest of one is skipped when the next one is requested")
    func streamedReading() async throws {
        try await withSocket { (socket, server) async throws in
            server.send(
                text("one", fin: false), more("two"), frame(2, Array(repeating: 7, count: 40_000), fin: false),
                more("end"), text("last"), close(1000))
            let messages = socket.streamedMessages
            let first = try #require(try await messages.next())
            #expect(first.kind == .text)
            #expect(String(decoding: try await first.reduce(into: [UInt8]()) { $0 += $1 }, as: UTF8.self) == "onetwo")
            #expect(try await first.next() == nil)
            let second = try #require(try await messages.next())
            #expect(second.kind == .binary)
            #expect(try await second.next()?.allSatisfy { $0 == 7 } == true)
            let third = try #require(try await messages.next())
            await #expect(throws: WebSocketError.messageSkipped) { try await second.next() }
            #expect(try await third.next() == Array("last".utf8))
            #expect(try await messages.next() == nil)
        }
    }

    @Test("A streamed message that the end of the connection cuts off is an error")
    func truncatedStream() async throws {
        try await withSocket { (socket, server) async throws in
            server.send(text("one", fin: false), close(1000))
            let message = try #require(try await socket.streamedMessages.next())
            #expect(try await message.next() == Array("one".utf8))
            await #expect(throws: WebSocketError.closed(.normalClosure, reason: "")) { try await message.next() }
            #expect(try await socket.receive() == nil)
        }
    }

    @Test("A second reader is an error, and leaves the connection open")
    func concurrentReaders() async throws {
        try await withSocket { (socket, server) async throws in
            let isRejected = CurrentValue(false)
            let readers = (0..<2).map { _ in
                Task {
                    do { return try await socket.receive() } catch WebSocketError.concurrentRead {
                        isRejected.update { true }
                        return nil
                    }
                }
            }
            await isRejected.becomesTrue()
            server.send(text("hello"))
            var messages: Set<WebSocketMessage?> = []
            for reader in readers { messages.insert(try await reader.value) }
            #expect(messages == [.text("hello"), nil])
        }
    }

    @Test("Cancelling a reader loses no message")
    func cancelledReader() async throws {
        try await withSocket { (socket, server) async throws in
            server.send(text("one", fin: false))
            let reader = Task { try await socket.receive() }
            #expect(await eventually { server.transport.readCount.value == 1 })
            reader.cancel()
            await #expect(throws: CancellationError.self) { try await reader.value }
            server.send(more("two"))
            #expect(try await socket.receive() == .text("onetwo"))
        }
    }
}

@Suite("WebSocket: limits and back pressure", .timeLimit(.minutes(5)))
struct LimitTests {
    @Test("Nothing is read while the buffer is full, and pings are answered up to then")
    func receiveBuffer() async throws {
        try await withSocket({ $0.receiveBufferSize = .kibibytes(32) }) { (socket, server) async throws in
            let piece = frame(2, Array(repeating: 1, count: 10_000))
            for _ in 0..<100 { server.send(piece) }
            #expect(await eventually { server.transport.readCount.value >= 4 })
            server.send(frame(9, [1]))
            for _ in 0..<200 { await Task.yield() }
            #expect(server.transport.readCount.value < 10)
            for _ in 0..<100 { #expect(try await socket.receive()?.bytes.count == 10_000) }
            #expect(try await server.next() == .pong([1]))
        }
    }

    @Test("Empty messages fill the buffer, too")
    func emptyMessages() async throws {
        try await withSocket({ $0.receiveBufferSize = .kibibytes(4) }) { (socket, server) async throws in
            for _ in 0..<1000 { server.send(frame(1)) }
            #expect(await eventually { server.transport.readCount.value >= 20 })
            for _ in 0..<200 { await Task.yield() }
            #expect(server.transport.readCount.value < 100)
            for _ in 0..<1000 { #expect(try await socket.receive() == .text("")) }
        }
    }

    @Test("A blocked sender stops neither the reader nor another sender's cancellation, and pings are answered later")
    func blockedSender() async throws {
        try await withSocket { (socket, server) async throws in
            server.transport.accepts.update { false }
            let sender = Task { try await socket.send("one") }
            #expect(await eventually { server.transport.concurrentWrites == 1 })
            server.send(frame(9, [5]), text("hello"))
            #expect(try await socket.receive() == .text("hello"))
            let waiting = Task { try await socket.send("two") }
            waiting.cancel()
            await #expect(throws: CancellationError.self) { try await waiting.value }
            server.transport.accepts.update { true }
            try await sender.value
            #expect(try await server.next() == .text("one"))
            #expect(try await server.next() == .pong([5]))
            try await socket.send("three")
            #expect(try await server.next() == .text("three"))
        }
    }

    @Test("Cancelling a sender in a write closes the connection")
    func cancelledSender() async throws {
        try await withSocket { (socket, server) async throws in
            server.transport.accepts.update { false }
            let sender = Task { try await socket.send("one") }
            #expect(await eventually { server.transport.concurrentWrites == 1 })
            sender.cancel()
            await #expect(throws: CancellationError.self) { try await sender.value }
            #expect(await server.transport.isClosed.becomesTrue())
            #expect(socket.closeCode == .abnormalClosure)
            await #expect(throws: WebSocketError.self) { try await socket.receive() }
        }
    }

    static let oversized: [(String, [[UInt8]])] = [
        ("a frame", [Array(frame(2, Array(repeating: 0, count: 2000)).prefix(4))]),
        ("an announced frame of 2^62 bytes", [[0x82, 0x7F, 0x40, 0, 0, 0, 0, 0, 0, 0]]),
        ("an announced frame of 2^63 - 1 bytes", [[0x82, 0x7F, 0x7F, 255, 255, 255, 255, 255, 255, 255]]),
        (
            "fragments of 1 byte without end",
            [frame(2, [1], fin: false)] + Array(repeating: frame(0, [1], fin: false), count: 1000)
        ),
    ]

    @Test("A message above the limit is an error before it is received", arguments: oversized)
    func messageLimit(_ name: String, _ frames: [[UInt8]]) async throws {
        try await withSocket({ $0.messageLimit = ByteCount(1000) }) { (socket, server) async throws in
            server.send(text("fits"))
            for frame in frames { server.send(frame) }
            #expect(try await socket.receive() == .text("fits"))
            await #expect(throws: WebSocketError.messageTooLarge(limit: 1000), "\(name)") { try await socket.receive() }
            #expect(try await server.next() == .close(1009))
        }
    }

    @Test("A frame above its own limit is an error, and a message may be larger")
    func frameLimit() async throws {
        try await withSocket({ $0.frameLimit = ByteCount(100) }) { (socket, server) async throws in
            server.send(
                frame(2, Array(repeating: 1, count: 100), fin: false), frame(0, Array(repeating: 1, count: 100)))
            #expect(try await socket.receive()?.bytes.count == 200)
            server.send(frame(2, Array(repeating: 1, count: 101)))
            await #expect(throws: WebSocketError.messageTooLarge(limit: 100)) { try await socket.receive() }
        }
    }

    @Test("A compressed bomb stops at the limit, or at the ratio without one")
    func bombs() async throws {
        let zeros = [UInt8](repeating: 0, count: 1 << 20)
        for limit in [ByteCount.mebibytes(1), nil] {
            let deflater = MessageDeflater(windowBits: 15, keepsContext: true, level: 9)
            var bomb: [UInt8] = []
            for index in 0..<20 { bomb += try deflater.compress(zeros[...], isLast: index == 19) }
            #expect(bomb.count < 100_000)
            try await withSocket(negotiation: DeflateNegotiation(), { $0.messageLimit = limit }) {
                (socket, server) async throws in
                server.send(frame(2, bomb, bits: 4))
                var received = 0
                let message = try #require(try await socket.streamedMessages.next())
                let error = await #expect(throws: WebSocketError.self) {
                    while let piece = try await message.next() { received += piece.count }
                }
                if limit != nil {
                    #expect(error == .messageTooLarge(limit: 1 << 20))
                    #expect(received <= 1 << 20)
                    #expect(try await server.next() == .close(1009))
                } else {
                    #expect(error?.isInvalidCompression == true)
                    #expect(received <= 11 << 20)
                    #expect(try await server.next() == .close(1007))
                }
            }
        }
    }

    @Test(
        "Corrupt compressed data closes the connection with 1007",
        arguments: [[0xFF, 0xFF], [0x07], [0xF2, 0x48, 0xCD], [0x01, 0x05, 0x00, 0xFA, 0xFF, 0x41]] as [[UInt8]])
    func corruptCompression(_ bytes: [UInt8]) async throws {
        try await withSocket(negotiation: DeflateNegotiation()) { (socket, server) async throws in
            server.send(frame(2, bytes, bits: 4))
            let error = await #expect(throws: WebSocketError.self) { try await socket.receive() }
            #expect(error?.isInvalidCompression == true)
            #expect(try await server.next() == .close(1007))
        }
    }

    @Test("Compression that was not negotiated, or within a message, is a violation")
    func unexpectedCompression() async throws {
        for (negotiation, frames) in [
            (nil, frame(1, [0x00], bits: 4)), (DeflateNegotiation(), text("a", fin: false) + frame(0, [0x00], bits: 4)),
        ] {
            try await withSocket(negotiation: negotiation) { (socket, server) async throws in
                server.send(frames)
                await #expect(throws: WebSocketError.self) { try await socket.receive() }
                #expect(try await server.next() == .close(1002))
            }
        }
    }

    @Test("Small messages are sent uncompressed, and large ones compressed")
    func threshold() async throws {
        try await withSocket(negotiation: DeflateNegotiation()) { (socket, server) async throws in
            try await socket.send(String(repeating: "a", count: 127))
            #expect(await server.transport.next()?.first == 0x81)
            try await socket.send(String(repeating: "a", count: 128))
            let compressed = await server.transport.next() ?? []
            #expect(compressed.first == 0xC1 && compressed.count < 40)
        }
    }
}

extension WebSocketError {
    fileprivate var isInvalidCompression: Bool { if case .invalidCompression = self { true } else { false } }
}
