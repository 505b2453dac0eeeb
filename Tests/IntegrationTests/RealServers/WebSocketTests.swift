import Martlet
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
            try await exchange(server.port, nil)
            try await exchange(server.port, WebSocketCompression())
            var small = WebSocketCompression()
            (small.clientMaximumWindowBits, small.clientNoContextTakeover) = (9, true)
            (small.serverMaximumWindowBits, small.serverNoContextTakeover) = (10, true)
            try await exchange(server.port, small)
        }
    }

    @Test("Messages pass nginx as a reverse proxy")
    func nginx() async throws {
        try await WebSocketServer.withServer(of: .websockets) { server in
            try await NginxServer.withServer { nginx in
                try await exchange(nginx.plainPort, path: "/upgrade?port=\(server.port)", WebSocketCompression())
            }
        }
    }
}
