import Martlet
import MartletCore
import MartletTesting
import MartletTestSupport
import MartletWebSocket
import Synchronization
import Testing

extension HTTPSession {
    /// Whether no call runs and no connection is open.
    fileprivate nonisolated var isEmpty: Bool {
        let counts = diagnostics
        return counts.isIdle && counts.pool.idle == 0 && counts.hosts.isEmpty
    }
}

extension TestOrigin {
    fileprivate func webSocketURL(_ path: String = "/") -> String { "ws" + url(path).dropFirst(4) }
}

@Suite("WebSocket: connections of a session", .timeLimit(.minutes(5)))
struct SessionTests {
    @Test(
        "Messages return from an origin, compressed or not, plain and over TLS", arguments: [nil, "permessage-deflate"])
    func echo(_ extensions: String?) async throws {
        for options in [OriginOptions.plain, .tls()] {
            try await TestOrigin.withOrigin(options, handler: .webSocketEcho(extensions: extensions)) {
                (origin) async throws in
                let session = HTTPSession.own(origin)
                let code = try await session.webSocket(origin.webSocketURL()) { (socket) async throws in
                    #expect(socket.isCompressed == (extensions != nil))
                    #expect(socket.response.status == .switchingProtocols)
                    for message in [.text("hello"), .binary(Array(repeating: 7, count: 300_000)), .text("")]
                        as [WebSocketMessage]
                    {
                        try await socket.send(message)
                        #expect(try await socket.receive() == message)
                    }
                    #expect(try await socket.ping() > .zero)
                    return socket
                }.closeCode
                #expect(code == .normalClosure)
                #expect(await eventually { session.isEmpty })
            }
        }
    }

    @Test("The request has the fields of the handshake, of the caller and of the session")
    func request() async throws {
        let handler = OriginHandler.webSocket(subprotocol: "b") { socket in
            let names = [
                "Upgrade", "Connection", "Sec-WebSocket-Version", "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions",
                "Authorization", "X-Own",
            ]
            try await socket.send(.text(names.map { socket.request.headers[$0] ?? "-" }.joined(separator: "|")))
            _ = try await socket.receive()
        }
        try await TestOrigin.withOrigin(handler: handler) { (origin) async throws in
            let session = HTTPSession.own(origin) { $0.authentication = .bearer { "secret" } }
            let options = WebSocketOptions { $0.subprotocols = ["a", "b"] }
            try await session.webSocket(origin.webSocketURL(), headers: ["X-Own": "1"], options: options) {
                (socket) async throws in
                #expect(socket.subprotocol == "b")
                #expect(
                    try await socket.receive()
                        == .text("websocket|Upgrade|13|a, b|permessage-deflate; client_max_window_bits|Bearer secret|1")
                )
            }
            // The field of a caller offers subprotocols, too.
            try await session.webSocket(origin.webSocketURL(), headers: ["Sec-WebSocket-Protocol": "b"]) {
                (socket) async throws in
                #expect(socket.subprotocol == "b")
            }
        }
    }

    @Test("Redirects and challenges are followed as the session's policy says")
    func redirects() async throws {
        try await TestOrigin.withOrigin { request in
            switch request.path {
            case "/start": return .redirect(to: "/target", status: 307)
            case "/target" where request.headers["Authorization"] == nil:
                return .text("", status: 401).with { $0.headers["WWW-Authenticate"] = "Basic realm=\"r\"" }
            default: return try await OriginHandler.webSocketEcho().respond(to: request)
            }
        } run: { (origin) async throws in
            let credentials = [try HTTPURL(origin.url("/")).origin: Credentials.basic(user: "u", password: "p")]
            let session = HTTPSession.own(origin) { $0.authentication.credentialsByOrigin = credentials }
            try await session.webSocket(origin.webSocketURL("/start")) { (socket) async throws in
                try await socket.send("hello")
                #expect(try await socket.receive() == .text("hello"))
            }
            let error = await #expect(throws: HTTPError.self) {
                _ = try await session.with { $0.redirects = .doNotFollow }.openWebSocket(origin.webSocketURL("/start"))
            }
            #expect(error?.code == .unacceptableStatus && error?.status == 307)
            #expect(await eventually { session.diagnostics.isIdle })
        }
    }

    @Test("A response that is not a switch is an error with the response")
    func otherResponses() async throws {
        for status in [200, 403, 426, 503] {
            try await TestOrigin.withOrigin { _ in
                .text("no", status: status)
            } run: { (origin) async throws in
                let session = HTTPSession.own(origin)
                let error = await #expect(throws: HTTPError.self) {
                    _ = try await session.openWebSocket(origin.webSocketURL())
                }
                #expect(error?.code == .unacceptableStatus && error?.status == status)
                #expect(error?.exchange?.body == Array("no".utf8))
            }
        }
    }

    @Test(
        "A handshake that RFC 6455 §4.1 does not allow closes the connection",
        arguments: [
            ["Sec-WebSocket-Accept": "x"], ["Sec-WebSocket-Protocol": "other"], ["Sec-WebSocket-Extensions": "other"],
            ["Upgrade": "other"],
        ] as [[String: String]])
    func invalidHandshakes(_ fields: [String: String]) async throws {
        var headers = OriginFields()
        for (name, value) in fields { headers[name] = value }
        let handler = OriginHandler.webSocket(headers: headers) { _ = try await $0.receive() }
        try await TestOrigin.withOrigin(handler: handler) { (origin) async throws in
            let session = HTTPSession.own(origin)
            let error = await #expect(throws: HTTPError.self) {
                _ = try await session.openWebSocket(origin.webSocketURL())
            }
            #expect(error?.code == .protocolViolation, "\(fields)")
            #expect(await eventually { session.isEmpty })
        }
    }

    @Test("Invalid arguments are errors before anything is sent")
    func invalidArguments() async throws {
        let session = HTTPSession(configuration: .ephemeral)
        for (url, options) in [
            ("ftp://127.0.0.1/", WebSocketOptions()), ("ws:", WebSocketOptions()),
            ("ws://127.0.0.1/", WebSocketOptions { $0.subprotocols = ["a b"] }),
        ] {
            let error = await #expect(throws: HTTPError.self) {
                _ = try await session.openWebSocket(url, options: options)
            }
            #expect(error.map { [.invalidURL, .invalidHeader].contains($0.code) } == true, "\(url)")
        }
    }

    @Test("Bytes that arrive with the 101, and in single bytes, are messages")
    func gluedFrames() async throws {
        let handler = OriginHandler.webSocket { socket in
            for byte in text("one") + frame(9, [1]) + text("two") { try await socket.send(raw: [byte]) }
            _ = try await socket.receive()
        }
        try await TestOrigin.withOrigin(handler: handler) { (origin) async throws in
            try await HTTPSession.own(origin).webSocket(origin.webSocketURL()) { (socket) async throws in
                #expect(try await socket.receive() == .text("one"))
                #expect(try await socket.receive() == .text("two"))
            }
        }
    }

    @Test("A closure that throws closes with 1011, and one that returns with 1000")
    func scopes() async throws {
        struct Failure: Error {}
        let codes = Mutex<[UInt16]>([])
        let handler = OriginHandler.webSocket { socket in
            _ = try await socket.receive()
            codes.withLock { $0.append(socket.closeCode?.rawValue ?? 0) }
        }
        try await TestOrigin.withOrigin(handler: handler) { (origin) async throws in
            let session = HTTPSession.own(origin)
            await #expect(throws: Failure.self) {
                try await session.webSocket(origin.webSocketURL()) { _ in throw Failure() }
            }
            try await session.webSocket(origin.webSocketURL()) { _ in }
            #expect(await eventually { codes.withLock { $0 } == [1011, 1000] })
            #expect(await eventually { session.isEmpty })
        }
    }

    @Test("A cancelled task leaves no connection, at each point of a connection")
    func cancellation() async throws {
        let reached = CurrentValue(0)
        let handler = OriginHandler { request in
            reached.change { $0 += 1 }
            // Never completes the handshake.
            if request.path == "/wait" { try await Task.sleep(for: .seconds(3600)) }
            return try await OriginHandler.webSocket { _ = try await $0.receive() }.respond(to: request)
        }
        try await TestOrigin.withOrigin(handler: handler) { (origin) async throws in
            let session = HTTPSession.own(origin)
            for (index, path) in ["/wait", "/read", "/ping"].enumerated() {
                let opened = CurrentValue(false)
                let task = Task {
                    try await session.webSocket(origin.webSocketURL(path)) { (socket) async throws in
                        opened.update { true }
                        if path == "/read" { _ = try await socket.receive() }
                        while true { try await socket.ping() }
                    }
                }
                if path == "/wait" {
                    _ = await reached.next { $0 == index + 1 }
                } else {
                    await opened.becomesTrue()
                }
                task.cancel()
                await #expect(throws: CancellationError.self, "\(path)") { try await task.value }
                #expect(await eventually { session.isEmpty })
            }
        }
    }

    @Test("Invalidating the session ends its connections")
    func invalidation() async throws {
        try await TestOrigin.withOrigin(handler: .webSocketEcho()) { (origin) async throws in
            let session = HTTPSession.own(origin)
            let socket = try await session.openWebSocket(origin.webSocketURL())
            let reader = Task { try await socket.receive() }
            await session.invalidateAndCancel()
            await #expect(throws: WebSocketError.self) { try await reader.value }
        }
    }

    @Test("A slow server slows the sender down, and memory stays bounded")
    func backPressure() async throws {
        let mayRead = CurrentValue(false)
        let handler = OriginHandler.webSocket { socket in
            await mayRead.becomesTrue()
            while let message = try await socket.receive() {
                if message.bytes.isEmpty { try await socket.send(.text("done")) }
            }
        }
        try await TestOrigin.withOrigin(handler: handler) { (origin) async throws in
            // Without pings, which a server that does not read does not answer either.
            let options = WebSocketOptions { ($0.compression, $0.pingInterval) = (nil, nil) }
            try await HTTPSession.own(origin).webSocket(origin.webSocketURL(), options: options) {
                (socket) async throws in
                let sent = CurrentValue(0)
                let message = [UInt8](repeating: 1, count: 1 << 20)
                let sender = Task {
                    for _ in 0..<32 {
                        try await socket.send(message)
                        sent.change { $0 += 1 }
                    }
                    try await socket.send([])
                }
                _ = await sent.next { $0 >= 1 }
                for _ in 0..<1000 { await Task.yield() }
                // The buffers of the kernel hold a few mebibytes.
                #expect(sent.value < 20)
                mayRead.update { true }
                try await sender.value
                #expect(try await socket.receive() == .text("done"))
            }
        }
    }
}
