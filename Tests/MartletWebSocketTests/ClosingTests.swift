import MartletCore
import MartletTestSupport
import MartletWebSocket
import Testing

@Suite("WebSocket: the closing handshake", .timeLimit(.minutes(5)))
struct ClosingTests {
    @Test("Closing sends the code and the reason, and waits for the server and the end of the connection")
    func close() async throws {
        try await withSocket { (socket, server) async throws in
            let closing = Task { try await socket.close(code: .init(rawValue: 4001), reason: "bye") }
            #expect(try await server.next() == .close(4001, "bye"))
            #expect(!server.transport.endedWriting.value)
            server.send(MartletWebSocketTests.close(4001))
            #expect(await server.transport.endedWriting.becomesTrue())
            #expect(!server.transport.isClosed.value)
            server.transport.end()
            try await closing.value
            #expect(server.transport.isClosed.value)
            #expect(socket.closeCode == .init(rawValue: 4001))
            #expect(try await socket.receive() == nil)
            await #expect(throws: WebSocketError.closed(.init(rawValue: 4001), reason: "bye")) {
                try await socket.send("late")
            }
            try await socket.close()
        }
    }

    @Test("Messages before the server's Close frame can be read after closing")
    func lateMessages() async throws {
        try await withSocket { (socket, server) async throws in
            let closing = Task { try await socket.close() }
            #expect(try await server.next() == .close(1000))
            server.send(text("late"), MartletWebSocketTests.close(1000))
            server.transport.end()
            try await closing.value
            #expect(try await socket.receive() == .text("late"))
            #expect(try await socket.receive() == nil)
        }
    }

    @Test("A server that floods or ignores the closing handshake is left after the timeout", arguments: [true, false])
    func stubbornServer(_ floods: Bool) async throws {
        let timers = ManualTimers()
        try await withSocket(timers: timers, { $0.closeTimeout = .seconds(7) }) { (socket, server) async throws in
            let closing = Task { try await socket.close() }
            #expect(try await server.next() == .close(1000))
            if floods {
                // Nobody reads: the messages are discarded.
                for _ in 0..<100 { server.send(frame(2, Array(repeating: 1, count: 10_000))) }
                #expect(await eventually { server.transport.readCount.value == 100 })
            }
            #expect(await eventually { timers.waits(.close) == [.seconds(7)] })
            timers.fire(.close)
            try await closing.value
            #expect(server.transport.isClosed.value)
            #expect(socket.closeCode == .normalClosure)
        }
    }

    @Test("A server that closes and then stays connected is left after the timeout")
    func lingeringServer() async throws {
        let timers = ManualTimers()
        try await withSocket(timers: timers) { (socket, server) async throws in
            server.send(MartletWebSocketTests.close(1001, "restart"))
            #expect(try await socket.receive() == nil)
            #expect(try await server.next() == .close(1001))
            #expect(socket.closeCode == .goingAway)
            #expect(socket.closeError == .closed(.goingAway, reason: "restart"))
            #expect(!server.transport.isClosed.value)
            timers.fire(.close)
            #expect(await server.transport.isClosed.becomesTrue())
        }
    }

    @Test("A blocked write does not delay the end beyond the timeout")
    func blockedWrite() async throws {
        let timers = ManualTimers()
        try await withSocket(timers: timers) { (socket, server) async throws in
            server.transport.accepts.update { false }
            let sender = Task { try await socket.send("one") }
            #expect(await eventually { server.transport.concurrentWrites == 1 })
            let closing = Task { try await socket.close() }
            #expect(await eventually { timers.waits(.close).count == 1 })
            timers.fire(.close)
            try await closing.value
            await #expect(throws: WebSocketError.closed(.normalClosure, reason: "")) { try await sender.value }
        }
    }

    @Test("Senders that wait for a streamed message fail when the connection ends")
    func waitingSenders() async throws {
        try await withSocket { (socket, server) async throws in
            let (pieces, source) = AsyncStream.makeStream(of: [UInt8].self)
            let streaming = Task { try await socket.send(.binary, contentsOf: pieces) }
            source.yield([1])
            #expect(await server.transport.next() != nil)
            let waiting = Task { try await socket.send("late") }
            server.send(MartletWebSocketTests.close(1000))
            await #expect(throws: WebSocketError.closed(.normalClosure, reason: "")) { try await waiting.value }
            source.yield([2])
            source.finish()
            await #expect(throws: WebSocketError.closed(.normalClosure, reason: "")) { try await streaming.value }
        }
    }

    @Test("Other codes than 1000, 1001 and none are an error of the reader, after the messages before")
    func errorCodes() async throws {
        try await withSocket { (socket, server) async throws in
            server.send(text("one"), MartletWebSocketTests.close(1011, "broken"))
            #expect(try await socket.receive() == .text("one"))
            await #expect(throws: WebSocketError.closed(.internalError, reason: "broken")) {
                try await socket.receive()
            }
        }
    }

    @Test(
        "A connection that ends without a Close frame is lost",
        arguments: [[], [0x81], [0x81, 0x05, 0x41], [0x01, 0x01, 0x41]] as [[UInt8]])
    func lost(_ bytes: [UInt8]) async throws {
        try await withSocket { (socket, server) async throws in
            let ping = Task { try await socket.ping() }
            _ = try await server.next()
            server.transport.send(bytes)
            server.transport.end()
            let error = await #expect(throws: WebSocketError.self) { try await socket.receive() }
            let isLost = if case .connectionLost = error { true } else { false }
            #expect(isLost)
            #expect(socket.closeCode == .abnormalClosure && socket.closeError == error)
            await #expect(throws: WebSocketError.self) { try await ping.value }
            await #expect(throws: WebSocketError.self) { try await socket.send("late") }
            #expect(await server.transport.isClosed.becomesTrue())
        }
    }

    @Test("Codes and reasons that cannot be sent are errors, and the connection stays open")
    func invalidArguments() async throws {
        try await withSocket { (socket, server) async throws in
            for code in [0, 999, 1004, 1006, 1015, 2999, 5000] as [UInt16] {
                await #expect(throws: WebSocketError.self) { try await socket.close(code: .init(rawValue: code)) }
            }
            await #expect(throws: WebSocketError.self) {
                try await socket.close(reason: String(repeating: "ä", count: 62))
            }
            await #expect(throws: WebSocketError.self) { try await socket.close(code: .noStatus, reason: "why") }
            try await socket.send("open")
            #expect(try await server.next() == .text("open"))
        }
    }

    @Test("Cancelling a task that closes ends the connection immediately")
    func cancelledClosing() async throws {
        try await withSocket { (socket, server) async throws in
            let closing = Task { try await socket.close() }
            #expect(try await server.next() == .close(1000))
            closing.cancel()
            await #expect(throws: CancellationError.self) { try await closing.value }
            #expect(await server.transport.isClosed.becomesTrue())
        }
    }

    @Test("Releasing a connection starts the closing handshake")
    func release() async throws {
        let transport = MemoryTransport()
        let server = ScriptedServer(transport)
        do {
            let timers = ManualTimers()
            var options = WebSocketOptions()
            options.sleep = { try await timers.sleep($0, $1) }
            let socket = WebSocket(
                transport, response: HTTPResponse(status: .switchingProtocols), negotiation: nil, options: options)
            try await socket.send("hello")
        }
        #expect(try await server.next() == .text("hello"))
        #expect(try await server.next() == .close(1001))
        transport.end()
        #expect(await transport.isClosed.becomesTrue())
    }

    @Test("Cancelling the connection resumes all tasks")
    func abort() async throws {
        try await withSocket { (socket, server) async throws in
            let tasks = [
                Task { _ = try await socket.receive() }, Task { _ = try await socket.ping() },
            ]
            #expect(try await server.next() != nil)
            socket.cancel()
            for task in tasks { await #expect(throws: WebSocketError.self) { try await task.value } }
            #expect(server.transport.isClosed.value)
        }
    }
}

@Suite("WebSocket: pings", .timeLimit(.minutes(5)))
struct PingTests {
    @Test("A ping waits for its pong, and a later pong is enough")
    func ping() async throws {
        try await withSocket { (socket, server) async throws in
            let first = Task { try await socket.ping() }
            try #require(try await server.next()?.isPing == true)
            let second = Task { try await socket.ping() }
            let payload = try #require(try await server.next()?.ping)
            server.send(frame(10, Array("another".utf8)), frame(10, payload))
            #expect(try await first.value >= .zero)
            #expect(try await second.value >= .zero)
            let cancelled = Task { try await socket.ping() }
            _ = try await server.next()
            cancelled.cancel()
            await #expect(throws: CancellationError.self) { try await cancelled.value }
            try await socket.send("open")
            #expect(try await server.next() == .text("open"))
        }
    }

    @Test("A server that stays silent after a ping is lost")
    func silence() async throws {
        let timers = ManualTimers()
        try await withSocket(timers: timers, { ($0.pingInterval, $0.pongTimeout) = (.seconds(3), .seconds(2)) }) {
            (socket, server) async throws in
            #expect(await eventually { timers.waits(.ping) == [.seconds(3)] })
            timers.fire(.ping)
            let payload = try #require(try await server.next()?.ping)
            #expect(await eventually { timers.waits(.pong) == [.seconds(2)] })
            server.send(frame(10, payload), text("alive"))
            #expect(try await socket.receive() == .text("alive"))
            timers.fire(.pong)
            #expect(await eventually { timers.waits(.ping).count == 2 })
            #expect(timers.waits(.ping) == [.seconds(3), .seconds(1)])
            timers.fire(.ping)
            try #require(try await server.next()?.isPing == true)
            #expect(await eventually { timers.waits(.pong).count == 2 })
            timers.fire(.pong)
            await #expect(throws: WebSocketError.pongTimedOut) { try await socket.receive() }
            #expect(await server.transport.isClosed.becomesTrue())
        }
    }

    @Test("A full receive buffer is not the silence of the server")
    func fullBuffer() async throws {
        let timers = ManualTimers()
        try await withSocket(timers: timers, { $0.receiveBufferSize = .kibibytes(1) }) {
            (socket, server) async throws in
            for _ in 0..<3 { server.send(frame(2, Array(repeating: 1, count: 2000))) }
            let first = try #require(try await socket.streamedMessages.next())
            timers.fire(.ping)
            #expect(await eventually { timers.waits(.pong).count == 1 })
            for _ in 0..<100 { await Task.yield() }
            timers.fire(.pong)
            #expect(await eventually { timers.waits(.pong).count == 2 })
            #expect(try await first.reduce(0) { $0 + $1.count } == 2000)
            for _ in 0..<2 { #expect(try await socket.receive()?.bytes.count == 2000) }
        }
    }

    @Test("Without an interval there are no pings")
    func disabled() async throws {
        let timers = ManualTimers()
        try await withSocket(timers: timers, { $0.pingInterval = nil }) { (socket, server) async throws in
            server.send(text("hello"))
            #expect(try await socket.receive() == .text("hello"))
            #expect(timers.waits(.ping).isEmpty)
        }
    }
}
