import Martlet
import MartletTestSupport
import MartletTesting
import Synchronization
import Testing

@Suite("Upgrade: the handshake", .timeLimit(.minutes(10)))
struct UpgradeTests {
    @Test("The server switches, and both directions carry bytes")
    func echo() async throws {
        try await TestOrigin.withOrigin(handler: .echoing()) { origin in
            let session = HTTPSession.own(origin)
            let connection = try await session.upgraded(origin.url("/a"))
            #expect(connection.protocolName == "echo" && connection.response.status.code == 101)
            #expect(connection.url.description == origin.url("/a") && connection.information.tls == nil)
            try await connection.write("hello")
            #expect(try await connection.read(exactly: 5) == bytes("hello"))
            let counts = session.diagnostics
            #expect(counts.runningCalls == 1 && counts.pool.leased == 1 && counts.hosts.map(\.leased) == [1])
            let tasks = await session.tasks
            #expect(tasks.map(\.kind) == [.stream] && tasks.first?.id == connection.callNumber)
            try await connection.closeWriting()
            #expect(try await connection.readAll().isEmpty)
            #expect(await eventually { session.isEmpty })
            #expect(try await connection.read() == nil)
        }
    }

    @Test("The closure's connection is closed when the closure returns or throws")
    func scoped() async throws {
        try await TestOrigin.withOrigin(handler: .echoing()) { origin in
            let session = HTTPSession.own(origin)
            let echoed = try await session.upgrade(origin.url(), to: "echo") { connection in
                #expect(session.runningCallCount == 1)
                try await connection.write("hi")
                return try await connection.read(exactly: 2)
            }
            #expect(echoed == bytes("hi") && session.isEmpty)
            await #expect(throws: NotUpgraded.self) {
                try await session.upgrade(origin.url(), to: "echo") { _ in throw NotUpgraded() }
            }
            #expect(session.isEmpty)
        }
    }

    struct Offer: Sendable, CustomTestStringConvertible {
        let given: HTTPHeaders
        let defaults: HTTPHeaders
        let connection: String
        var testDescription: String { connection }
    }

    @Test(
        "The request has one Upgrade field, and the caller's tokens in Connection",
        arguments: [
            Offer(given: [:], defaults: [:], connection: "Upgrade"),
            Offer(given: ["Connection": "X-Hop"], defaults: [:], connection: "X-Hop, Upgrade"),
            Offer(
                given: ["Connection": "upgrade, X-Hop", "Upgrade": "a, b"], defaults: [:], connection: "upgrade, X-Hop"),
            Offer(
                given: [:], defaults: ["Connection": "keep-alive", "Upgrade": "c"], connection: "keep-alive, Upgrade"),
            Offer(given: ["X-Other": "1"], defaults: ["X-Default": "2"], connection: "Upgrade"),
        ])
    func fields(_ offer: Offer) async throws {
        try await TestOrigin.withOrigin(handler: .echoing("IRC/6.9")) { origin in
            let session = HTTPSession.own(origin) { $0.headers = offer.defaults }
            try await session.upgrade(origin.url(), to: "irc/6.9", headers: offer.given) { _ in }
            let request = try #require(origin.recorder.requests.first)
            #expect(request.method == .get && request.body.isEmpty)
            #expect(request.headers.filter { $0.name.lowercased() == "upgrade" }.map { $0.value } == ["irc/6.9"])
            #expect(
                request.headers.filter { $0.name.lowercased() == "connection" }.map { $0.value } == [offer.connection])
        }
    }

    @Test("Every other status is a normal response", arguments: [200, 204, 401, 404, 426, 503])
    func others(_ status: Int) async throws {
        let response = OriginResponse(
            status, headers: ["Upgrade": "echo", "Connection": "Upgrade"], body: .text(status == 204 ? "" : "no"))
        try await TestOrigin.withOrigin(handler: .fixed(response)) { origin in
            let session = HTTPSession.own(origin) { $0.retry = .transient(maximumAttempts: 3) }
            guard case .response(let exchange) = try await session.upgrade(origin.url(), to: "echo") else {
                Issue.record("upgraded")
                return
            }
            #expect(exchange.statusCode == status && exchange.text == (status == 204 ? "" : "no"))
            let error = await #expect(throws: HTTPError.self) {
                try await session.upgrade(origin.url(), to: "echo") { _ in Issue.record("upgraded") }
            }
            #expect(error?.code == .unacceptableStatus && error?.exchange?.statusCode == status)
            #expect(origin.recorder.counts.requests == 2)
            #expect(await eventually { session.diagnostics.isIdle })
        }
    }

    @Test("Interim responses before the 101 are reported")
    func interim() async throws {
        let statuses = Mutex<[Int]>([])
        try await TestOrigin.withOrigin { _ in
            OriginResponse.upgrade(to: "echo") { try await $0.write("!") }.with {
                $0.interim = [.proceed, .earlyHints("</a>"), InterimResponse(102)]
            }
        } run: { (origin) async throws in
            let options = RequestOptions {
                $0.onInterimResponse = { response in statuses.withLock { $0.append(response.status.code) } }
            }
            let connection = try await HTTPSession.own(origin).upgraded(origin.url(), options: options)
            #expect(try await connection.readAll() == bytes("!"))
            #expect(statuses.withLock { $0 } == [100, 103, 102])
        }
    }

    @Test("Redirects are followed, and the new request offers the protocol again", arguments: [302, 303, 307])
    func redirected(_ status: Int) async throws {
        try await TestOrigin.withOrigin { request in
            if request.path == "/old" { return .redirect(to: "/new", status: status) }
            return .upgrade(to: "echo") { try await $0.write(request.headers["Upgrade"] ?? "none") }
        } run: { (origin) async throws in
            let connection = try await HTTPSession.own(origin).upgraded(origin.url("/old"))
            #expect(try await connection.readAll() == bytes("echo"))
            #expect(connection.url.description == origin.url("/new"))
        }
    }

    @Test("A request that is challenged offers the protocol again with credentials")
    func authenticated() async throws {
        try await TestOrigin.withOrigin { request in
            guard let authorization = request.headers["Authorization"] else {
                return OriginResponse(401, headers: ["WWW-Authenticate": "Basic realm=\"a\""], body: .text("who?"))
            }
            return .upgrade(to: "echo") { try await $0.write("\(authorization) \(request.headers["Upgrade"] ?? "")") }
        } run: { (origin) async throws in
            let session = HTTPSession.own(origin)
            let url = origin.url().replacing("http://", with: "http://u:p@")
            let connection = try await session.upgraded(url)
            #expect(try await connection.readAll() == bytes("Basic dTpw echo"))
            connection.close()
            #expect(await eventually { session.diagnostics.isIdle })
        }
    }

    @Test("Cookies of the jar are sent, and those of the 101 are stored")
    func cookies() async throws {
        try await TestOrigin.withOrigin { request in
            .upgrade(to: "echo", headers: ["Set-Cookie": "a=1"]) {
                try await $0.write(request.headers["Cookie"] ?? "-")
            }
        } run: { (origin) async throws in
            let session = HTTPSession.own(origin) { $0.cookies = CookieJar() }
            #expect(try await session.upgraded(origin.url()).readAll() == bytes("-"))
            #expect(try await session.upgraded(origin.url()).readAll() == bytes("a=1"))
        }
    }

    @Test(
        "The name of the protocol is checked before anything is sent",
        arguments: ["", "a b", "a/", "/1", "a/1/2", "a, b", "a\r\nX: 1"])
    func names(_ name: String) async throws {
        try await TestOrigin.withOrigin(handler: .echoing()) { origin in
            let error = await #expect(throws: HTTPError.self) {
                _ = try await HTTPSession.own(origin).upgrade(origin.url(), to: name)
            }
            #expect(error?.code == .invalidRequest && error?.wasSent == false)
            #expect(origin.recorder.counts.connections == 0)
        }
    }

    @Test("HTTP/1.0 has no upgrades")
    func version() async throws {
        try await TestOrigin.withOrigin(handler: .echoing()) { origin in
            let error = await #expect(throws: HTTPError.self) {
                _ = try await HTTPSession.own(origin).upgrade(
                    origin.url(), to: "a", options: .init { $0.version = .http10 })
            }
            #expect(error?.code == .invalidRequest)
        }
    }

    @Test(
        "A 101 for another protocol is an error, and closes the connection",
        arguments: [
            "", "Upgrade: other\r\n", "Upgrade: echo, other\r\n", "Upgrade: echo/2\r\n",
            "Upgrade: echo\r\nUpgrade: echo\r\n",
        ])
    func wrongProtocol(_ field: String) async throws {
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\(field)\r\n"),
            .awaitClose, .signal("closed"))
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own(origin)
            let error = await #expect(throws: HTTPError.self) {
                _ = try await session.upgrade(origin.url(), to: "echo")
            }
            #expect(error?.code == .protocolViolation && error?.wasSent == true)
            try await origin.signals.wait(for: "closed")
            #expect(await eventually { session.isEmpty })
        }
    }

    @Test("A 101 without an offer is an error", arguments: [false, true])
    func unrequested(namesProtocol: Bool) async throws {
        let script = ServerScript.respond("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\n\r\n")
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let headers: HTTPHeaders = namesProtocol ? ["Upgrade": "echo", "Connection": "Upgrade"] : [:]
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.own(origin).get(origin.url(), headers: headers)
            }
            #expect(error?.code == .protocolViolation)
        }
    }

    @Test(
        "Fields of a 101 that describe a body are ignored: all later bytes belong to the protocol",
        arguments: ["Content-Length: 2\r\n", "Transfer-Encoding: chunked\r\n", "Content-Encoding: gzip\r\n"])
    func bodyFields(_ field: String) async throws {
        let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\(field)\r\n"
        try await TestOrigin.withOrigin(scripts: ServerScript.respond(head + "all of this")) { origin in
            let connection = try await HTTPSession.own(origin).upgraded(origin.url())
            #expect(try await connection.readAll() == bytes("all of this"))
        }
    }

    @Test("Bytes that arrive with the 101 are read first, wherever the server's writes are split")
    func glued() async throws {
        let text = bytes(
            "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\n\r\nhello, world")
        let scripts = (1..<text.count).map {
            ServerScript(
                .expectRequestHead, .send(Array(text[..<$0])), .send(Array(text[$0...])), .expect("ok"), .close)
        }
        let pieces = ServerScript(.expectRequestHead, .sendPieces(text, size: 1), .expect("ok"), .close)
        try await TestOrigin.withOrigin(scripts: scripts + [pieces]) { origin in
            let session = HTTPSession.own(origin)
            for index in 0...scripts.count {
                let connection = try await session.upgraded(origin.url())
                let size = index % 2 == 0 ? 1 : 100
                var received: [UInt8] = []
                while received.count < 12, let piece = try await connection.read(upTo: size) {
                    #expect(piece.count <= size)
                    received += piece
                }
                #expect(received == bytes("hello, world"))
                try await connection.write("ok")
                #expect(try await connection.read() == nil)
            }
            #expect(origin.recorder.problems.isEmpty)
        }
    }

    // MARK: Bodies

    @Test(
        "The body is sent completely before the connection is returned, even after an early 101",
        arguments: [false, true])
    func body(expectsContinue: Bool) async throws {
        let count = 3_000_000
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: tcp\r\n\r\nnow"), .readBody(count),
            .expect("raw"), .send("done"), .close)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own(origin)
            let result = try await session.upgrade(
                origin.url(), to: "tcp", body: .bytes([UInt8](repeating: 7, count: count)),
                headers: expectsContinue ? ["Expect": "100-continue"] : [:])
            guard case .upgraded(let connection) = result else { throw NotUpgraded() }
            try await connection.write("raw")
            #expect(try await connection.readAll() == bytes("nowdone"))
            #expect(origin.recorder.problems.isEmpty)
            connection.close()
            #expect(await eventually { session.isEmpty })
        }
    }

    @Test("A body that fails after an early 101 fails the call, and closes the connection")
    func failingBody() async throws {
        struct Broken: Error {}
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: tcp\r\n\r\n"), .signal("switched"),
            .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let (session, signals) = (HTTPSession.own(origin), origin.signals)
            let body = HTTPBody.stream {
                AsyncThrowingStream<[UInt8], any Error> {
                    try await signals.wait(for: "switched")
                    throw Broken()
                }
            }
            let error = await #expect(throws: HTTPError.self) {
                _ = try await session.upgrade(origin.url(), to: "tcp", body: body)
            }
            #expect(error?.code == .bodySourceFailed)
            #expect(await eventually { session.isEmpty })
        }
    }

    @Test("A request with a body and another method is sent as such")
    func method() async throws {
        try await TestOrigin.withOrigin { request in
            let body = try await request.collectText()
            return .upgrade(to: "tcp") { try await $0.write("\(request.method) \(body)") }
        } run: { (origin) async throws in
            let session = HTTPSession.own(origin)
            let result = try await session.upgrade(origin.url(), to: "tcp", method: .put, body: .text("{}"))
            guard case .upgraded(let connection) = result else { throw NotUpgraded() }
            #expect(try await connection.readAll() == bytes("PUT {}"))
        }
    }

    // MARK: Settings

    @Test("The cache neither serves nor stores an upgrade, and calls do not share it", arguments: [false, true])
    func cache(sharesTransfers: Bool) async throws {
        try await TestOrigin.withOrigin { request in
            request.headers["Upgrade"] == nil
                ? OriginResponse(headers: ["Cache-Control": "max-age=1000"], body: .text("stored"))
                : .upgrade(to: "echo", headers: ["Cache-Control": "max-age=1000"]) { try await $0.write("live") }
        } run: { (origin) async throws in
            let session = HTTPSession.own(origin) {
                if sharesTransfers { $0.sharesTransfers = true } else { $0.cache = .memoryOnly() }
            }
            #expect(try await session.get(origin.url()).text == "stored")
            let (one, other) = (try await session.upgraded(origin.url()), try await session.upgraded(origin.url()))
            #expect(try await one.readAll() == bytes("live"))
            #expect(try await other.readAll() == bytes("live"))
            #expect(try await session.get(origin.url()).text == "stored")
            #expect(origin.recorder.counts.requests == (sharesTransfers ? 4 : 3))
        }
    }

    private struct Labeling: HTTPMiddleware {
        let replacesBody: Bool

        func handle(_ request: HTTPCall.Request, context: CallContext, next: HTTPNext) async throws -> HTTPCall.Response
        {
            var request = request
            request.headers["X-Label"] = "1"
            let response = try await next(request)
            return replacesBody ? HTTPCall.Response(response.head, body: "made".utf8) : response
        }
    }

    @Test("Middleware passes an upgrade on, and cannot replace its stream", arguments: [false, true])
    func middleware(replacesBody: Bool) async throws {
        try await TestOrigin.withOrigin { request in
            .upgrade(to: "echo") { try await $0.write(request.headers["X-Label"] ?? "-") }
        } run: { (origin) async throws in
            let session = HTTPSession.own(origin) { $0.middleware = [Labeling(replacesBody: replacesBody)] }
            if replacesBody {
                let error = await #expect(throws: HTTPError.self) { _ = try await session.upgraded(origin.url()) }
                #expect(error?.code == .invalidRequest)
            } else {
                #expect(try await session.upgraded(origin.url()).readAll() == bytes("1"))
            }
            #expect(await eventually { session.diagnostics.isIdle })
        }
    }

    @Test("A request on a reused connection that was closed is sent again, once")
    func stale() async throws {
        let first = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), .expectRequestHead, .close)
        let second = ServerScript.respond("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\n\r\nhi")
        try await TestOrigin.withOrigin(scripts: first, second) { origin in
            let session = HTTPSession.own(origin)
            _ = try await session.get(origin.url())
            #expect(try await session.upgraded(origin.url()).readAll() == bytes("hi"))
            #expect(origin.recorder.counts.connections == 2)
        }
    }

    @Test("The retry policy does not repeat a request that was sent")
    func retries() async throws {
        let script = ServerScript(.expectRequestHead, .close)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own(origin) {
                $0.retry = .transient(maximumAttempts: 5, backoff: .constant(.zero), budget: nil)
            }
            let error = await #expect(throws: HTTPError.self) { _ = try await session.upgraded(origin.url()) }
            #expect(error?.code == .emptyResponse && origin.recorder.counts.connections == 1)
        }
    }

    @Test("The total timeout limits the handshake")
    func totalTimeout() async throws {
        try await TestOrigin.withOrigin(scripts: ServerScript(.expectRequestHead, .awaitClose)) { origin in
            let session = HTTPSession.own(origin)
            let error = await #expect(throws: HTTPError.self) {
                _ = try await session.upgrade(origin.url(), to: "echo", timeout: .milliseconds(50))
            }
            #expect(error?.code == .timedOut && error?.timeout == .total)
            #expect(await eventually { session.isEmpty })
        }
    }
}
