import MartletCore
import MartletTesting
import MartletWebSocket

/// The compiled samples of the documentation pages on WebSocket. A test compares the two texts.
enum WebSocketSamples {
    static func scoped(_ session: HTTPSession) async throws {
        try await session.webSocket("wss://example.org/chat") { socket in
            try await socket.send("hello")
            for try await message in socket.messages {
                print(message.text ?? "\(message.bytes.count) bytes")
            }
        }
    }

    static func owned(_ session: HTTPSession, _ token: String) async throws {
        let socket = try await session.openWebSocket(
            "wss://example.org/graphql", headers: ["Authorization": "Bearer \(token)"],
            options: WebSocketOptions {
                $0.subprotocols = ["graphql-transport-ws"]
                $0.messageLimit = .mebibytes(1)
                $0.pingInterval = .seconds(30)
            })
        print(socket.subprotocol ?? "none")
        try await socket.send(#"{"type":"connection_init"}"#)
        if let reply = try await socket.receive() { print(reply) }
        try await socket.close(code: .goingAway, reason: "done")
    }

    static func streamed(_ socket: WebSocket, _ camera: AsyncStream<[UInt8]>, _ sink: (ArraySlice<UInt8>) -> Void)
        async throws
    {
        try await socket.send(.binary, contentsOf: camera)
        for try await message in socket.streamedMessages {
            for try await piece in message { sink(piece[...]) }
        }
    }

    static func reconnecting(_ session: HTTPSession) async throws {
        for try await socket in session.webSocketConnections(to: "wss://example.org/feed") {
            try await socket.send("subscribe")
            for try await message in socket.messages { print(message) }
        }
    }

    static func errors(_ socket: WebSocket) async throws {
        do {
            for try await message in socket.messages { print(message) }
        } catch WebSocketError.closed(let code, let reason) {
            print("closed by the server:", code, reason)
        } catch let error as WebSocketError {
            print(error)
        }
    }

    static func tested(_ session: HTTPSession) async throws {
        let handler = OriginHandler.webSocket { socket in
            try await socket.send(.text("hello"), fragmentSize: 2)
            try await socket.send(raw: [0x81, 0x05])
        }
        try await TestOrigin.withOrigin(.plain, handler: handler) { origin in
            let socket = try await session.openWebSocket(origin.url("/"))
            print(try await socket.receive() ?? "none")
        }
    }
}
