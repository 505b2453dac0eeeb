import Martlet
import MartletTestSupport
import MartletTesting
import MartletWebSocket
import Testing

@Suite("WebSocket with real servers", .timeLimit(.minutes(5)))
struct WebSocketTests {
    /// Exchanges messages of all kinds with an echo server.
    private func exchange(_ port: UInt16, path: String = "/", _ compression: WebSocketCompression?) async throws {
        let session = HTTPSession(configuration: .ephemeral)
        let options = WebSocketOptions {
            ($0.subprotocols, $0.compression, $0.messageLimit) = (["other", "echo"], compression, nil)
        }
        let socket = try await session.openWebSocket("ws://127.0.0.1:\(port)\(path)", options: options)
        #expect(socket.subprotocol == "echo")
        #expect(socket.isCompressed == (compression != nil))
        for count in [0, 1, 125, 126, 1000, 65_535, 65_536, 500_000] {
            let words = (0..<count).map { "\(($0 &* 7919) % 997) " }.joined()
            let bytes = Array(words.utf8.prefix(count))
            let messages: [WebSocketMessage] = [.text(String(decoding: bytes, as: UTF8.self)), .binary(bytes)]
            for message in messages {
                try await socket.send(message)
                #expect(try await socket.receive() == message, "\(count) bytes")
            }
        }
        let large = TestPattern.bytes(from: 0, count: 4 << 20)
        try await socket.send(large)
        let isSame = try await socket.receive() == .binary(large)
        #expect(isSame)
        let (pieces, source) = AsyncStream.makeStream(of: [UInt8].self)
        for piece in ["κό", "", "σμε"] { source.yield(Array(piece.utf8)) }
        source.finish()
        try await socket.send(.text, contentsOf: pieces)
        #expect(try await socket.receive() == .text("κόσμε"))
        try await socket.ping()
        try await socket.send("close")
        await #expect(throws: WebSocketError.closed(WebSocketCloseCode(rawValue: 4000), reason: "bye")) {
            try await socket.receive()
        }
        // This time the client closes.
        try await session.webSocket("ws://127.0.0.1:\(port)\(path)", options: options) { try await $0.send("hello") }
    }

    @Test("Servers of Python exchange messages, compressed or not", arguments: WebSocketServer.Library.allCases)
    func python(_ library: WebSocketServer.Library) async throws {
        try await WebSocketServer.withServer(of: library) { server in
            for compression in compressions { try await exchange(server.port, compression) }
        }
    }

    /// None, the default, and one with all parameters.
    private var compressions: [WebSocketCompression?] {
        var small = WebSocketCompression()
        (small.clientMaximumWindowBits, small.clientNoContextTakeover) = (9, true)
        (small.serverMaximumWindowBits, small.serverNoContextTakeover) = (10, true)
        return [nil, WebSocketCompression(), small]
    }

    // MARK: Reverse proxies

    /// The proxies, and the path of each module that passes WebSocket connections on.
    private static let proxies: [(ReverseProxy.Program, String)] = [
        (.nginx, "/"), (.apache2, "/"), (.apache2, "/tunnel/"),
    ]

    @Test("Messages of all kinds pass a reverse proxy, compressed or not", arguments: proxies)
    func messages(_ program: ReverseProxy.Program, _ path: String) async throws {
        try await WebSocketServer.withServer(of: .websockets) { server in
            try await ReverseProxy.withServer(program, before: Int(server.port)) { proxy in
                for compression in compressions { try await exchange(proxy.port, path: path, compression) }
            }
        }
    }

    @Test("Codes and reasons of Close frames pass a reverse proxy in both directions", arguments: proxies)
    func closing(_ program: ReverseProxy.Program, _ path: String) async throws {
        let (closes, source) = AsyncStream.makeStream(of: MessageParser.Event.self)
        let handler = OriginHandler.webSocket { socket in
            if socket.request.path == "/server" { try await socket.close(.init(rawValue: 4001), reason: "bye") }
            guard let event = try await socket.nextEvent() else { return source.finish() }
            source.yield(event)
            if socket.request.path != "/server", case .close(let code, _) = event { try await socket.close(code) }
        }
        try await TestOrigin.withOrigin(.plain, handler: handler) { origin in
            try await ReverseProxy.withServer(program, before: origin.port) { proxy in
                let session = HTTPSession.plain()
                var received = closes.makeAsyncIterator()
                let closing = try await session.openWebSocket(proxy.url(proxy.port, path + "server"))
                await #expect(throws: WebSocketError.closed(.init(rawValue: 4001), reason: "bye")) {
                    try await closing.receive()
                }
                // The client repeats the code only.
                let reply = await received.next()
                #expect(reply == .close(.init(rawValue: 4001), ""))
                let ends: [(WebSocketCloseCode, String)] = [
                    (.init(rawValue: 4002), "über"), (.normalClosure, String(repeating: "x", count: 123)),
                    (.noStatus, ""),
                ]
                for (code, reason) in ends {
                    let socket = try await session.openWebSocket(proxy.url(proxy.port, path + "client"))
                    try await socket.close(code: code, reason: reason)
                    let frame = await received.next()
                    #expect(frame == .close(code, reason))
                }
                #expect(await eventually { session.diagnostics.isIdle })
            }
        }
    }

    @Test("A server that ends within a message is a lost connection after a reverse proxy, too", arguments: proxies)
    func lostConnection(_ program: ReverseProxy.Program, _ path: String) async throws {
        let handler = OriginHandler.webSocket { try await $0.send(1, [0x61], announcedByteCount: 2) }
        try await TestOrigin.withOrigin(.plain, handler: handler) { origin in
            try await ReverseProxy.withServer(program, before: origin.port) { proxy in
                let session = HTTPSession.plain()
                let socket = try await session.openWebSocket(proxy.url(proxy.port, path))
                let error = await #expect(throws: WebSocketError.self) { try await socket.receive() }
                guard case .connectionLost = error else {
                    Issue.record("\(String(describing: error))")
                    return
                }
            }
        }
    }

    @Test("A server that is down is an error with the response of the reverse proxy", arguments: proxies)
    func down(_ program: ReverseProxy.Program, _ path: String) async throws {
        try await ReverseProxy.withServer(program, before: Int(FreePorts.draw())) { proxy in
            let session = HTTPSession.plain()
            let error = await #expect(throws: HTTPError.self) {
                _ = try await session.openWebSocket(proxy.url(proxy.port, path))
            }
            #expect(error?.code == .unacceptableStatus)
            #expect(error?.status == (program == .nginx ? 502 : 503))
            #expect(error?.exchange?.text.contains("<html>") == true)
            #expect(await eventually { session.diagnostics.isIdle })
        }
    }
}
