@testable import MartletCredentials
@testable import MartletPool
import MartletTesting
import MartletTransport
import MartletWire
import Testing

@testable import MartletCore
@testable import MartletStreams

@Suite("Transient failures")
struct TransientFailureTests {
    /// A failure, and whether a GET, a POST and an event stream are retried after it.
    struct Row: Sendable, CustomTestStringConvertible {
        var error: HTTPError
        var get: Bool
        var post: Bool
        var events: Bool

        var testDescription: String { "\(error) \(error.phase) sent: \(error.wasSent)" }
    }

    private static func row(
        _ code: HTTPError.Code, _ phase: HTTPError.Phase, _ underlying: (any Error)? = nil,
        sent: Bool = false,
        timeout: HTTPError.Timeout? = nil, get: Bool, post: Bool, events: Bool
    ) -> Row {
        let error = HTTPError(
            code, phase: phase, message: "x", wasSent: sent, timeout: timeout, underlying: underlying)
        return Row(error: error, get: get, post: post, events: events)
    }

    private static func proxy(_ error: MartletPool.ProxyHandshakeError) -> ProxyError {
        ProxyError(error, proxy: "http://p:1")
    }

    private static func rejected(_ status: Int) -> ProxyError {
        let head = ResponseHead(status: status)
        return proxy(.rejected(TunnelRejection(head: head, body: [], isBodyComplete: true)))
    }

    /// Transient failures before any byte reached the server: everything is retried.
    private static let passing: [Row] = [
        row(.resolutionFailed, .resolving, get: true, post: true, events: true),
        row(.connectFailed, .connecting, get: true, post: true, events: true),
        row(.connectionLost, .tlsHandshake, get: true, post: true, events: true),
        row(.timedOut, .connecting, timeout: .connect, get: true, post: true, events: true),
        row(.timedOut, .tunneling, timeout: .connect, get: true, post: true, events: true),
        row(.timedOut, .waitingForConnection, timeout: .poolWait, get: true, post: true, events: true),
        row(.tlsFailed, .tlsHandshake, TLSError(.truncated), get: true, post: true, events: true),
        row(
            .proxyFailed, .tunneling, proxy(.wire(WireError(.emptyResponse, at: 0))), get: true, post: true,
            events: true),
        row(
            .proxyFailed, .tunneling, proxy(.wire(WireError(.truncated(.head(received: 7)), at: 7))),
            get: true, post: true,
            events: true),
        row(
            .proxyFailed, .tunneling, proxy(.lost(.system(SystemError(operation: "recv", code: 104)))),
            get: true, post: true, events: true),
        row(
            .proxyFailed, .tunneling, proxy(.socks(.truncated(receivedByteCount: 1))), get: true, post: true,
            events: true),
        row(
            .proxyFailed, .tunneling, proxy(.socks(.rejected(Socks5Reply(rawValue: 5)))), get: true,
            post: true, events: true),
        row(.proxyFailed, .tunneling, rejected(502), get: true, post: true, events: true),
        row(.proxyFailed, .tunneling, rejected(503), get: true, post: true, events: true),
        row(.proxyFailed, .tunneling, rejected(504), get: true, post: true, events: true),
    ]

    /// Transient failures after the server may have received the request.
    private static let sent: [Row] = [
        row(.connectionLost, .awaitingHead, sent: true, get: true, post: false, events: true),
        row(.emptyResponse, .awaitingHead, sent: true, get: true, post: false, events: true),
        row(.truncated, .receivingBody, sent: true, get: true, post: false, events: true),
        row(.timedOut, .receivingBody, sent: true, timeout: .idle, get: true, post: false, events: true),
        row(
            .tlsFailed, .receivingBody, TLSError(.alert(number: 20, text: "bad record mac")), sent: true,
            get: true, post: false, events: true),
    ]

    /// Permanent failures, which are never retried.
    private static let lasting: [Row] = [
        row(.tlsFailed, .tlsHandshake, TLSError(.expired), get: false, post: false, events: false),
        row(.tlsFailed, .tlsHandshake, TLSError(.unknownAuthority), get: false, post: false, events: false),
        row(
            .tlsFailed, .awaitingHead, TLSError(.clientCertificateRequired), sent: true, get: false,
            post: false, events: false),
        row(.proxyFailed, .tunneling, rejected(403), get: false, post: false, events: false),
        row(.proxyFailed, .tunneling, rejected(407), get: false, post: false, events: false),
        row(.proxyFailed, .tunneling, rejected(500), get: false, post: false, events: false),
        row(
            .proxyFailed, .tunneling, proxy(.socks(.credentialsRejected)), get: false, post: false,
            events: false),
        row(
            .proxyFailed, .tunneling, proxy(.socks(.rejected(Socks5Reply(rawValue: 2)))), get: false,
            post: false, events: false),
        row(
            .proxyFailed, .tunneling, proxy(.wire(WireError(.headTooLarge(limit: 1), at: 0))), get: false,
            post: false,
            events: false),
        row(.proxyFailed, .preparing, get: false, post: false, events: false),
        row(
            .authenticationFailed, .preparing, HTTPError(.connectFailed, phase: .connecting, message: "x"), get: true,
            post: true, events: true),
        row(.authenticationFailed, .processingResponse, sent: true, get: false, post: false, events: false),
        row(.cancelledByDelegate, .processingResponse, sent: true, get: false, post: false, events: false),
        row(.protocolViolation, .awaitingHead, sent: true, get: false, post: false, events: false),
        row(.limitExceeded, .receivingBody, sent: true, get: false, post: false, events: false),
        row(.sessionInvalidated, .waitingForConnection, get: false, post: false, events: false),
        // An event stream reconnects, with a new total timeout and when descriptors may be available.
        row(.timedOut, .receivingBody, sent: true, timeout: .total, get: false, post: false, events: true),
        row(.systemFailed, .connecting, get: false, post: false, events: true),
    ]

    @Test(
        "A transient failure is retried if that is safe",
        arguments: passing + sent + lasting)
    func table(_ row: Row) {
        func isRetried(isIdempotent: Bool) -> Bool {
            RetryRule(policy: .transient(), isIdempotent: isIdempotent, isReplayable: true).delay(
                after: .failure(row.error), attempt: 1, timeouts408: 0, elapsed: .zero, random: 1) != nil
        }
        #expect(isRetried(isIdempotent: true) == row.get)
        #expect(isRetried(isIdempotent: false) == row.post)
        #expect(EventStreamReader.isTransient(row.error) == row.events)
    }

    /// The failure of a proxy on its first connection.
    enum ProxyFailure: CaseIterable, Sendable {
        case closes
        case closesAfterRequest
        case resets
        case cutsItsAnswer
        case answers502
        case answers503
        case answers504

        var script: ServerScript {
            switch self {
            case .closes: ServerScript(.close)
            case .closesAfterRequest: ServerScript(.expectRequestHead, .close)
            case .resets: ServerScript(.expectRequestHead, .reset)
            case .cutsItsAnswer: ServerScript(.expectRequestHead, .send("HTTP/1.1 20"), .close)
            case .answers502: ServerScript(.expectRequestHead, .rejection(502), .close)
            case .answers503: ServerScript(.expectRequestHead, .rejection(503), .close)
            case .answers504: ServerScript(.expectRequestHead, .rejection(504), .close)
            }
        }
    }

    private func session(through proxy: TestOrigin) throws -> HTTPSession {
        let server = try ProxyServer("127.0.0.1:\(proxy.port)").alwaysTunneling()
        return HTTPSession.own {
            $0.proxy = .server(server)
            $0.retry = .transient(backoff: .constant(.zero))
        }
    }

    @Test(
        "A POST is retried after a proxy failed before the tunnel was open", arguments: ProxyFailure.allCases)
    func post(_ failure: ProxyFailure) async throws {
        let good = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\n\r\n"), .expectRequestHead, .readBody(5), .sendOK,
            .awaitClose)
        try await TestOrigin.withOrigin(scripts: failure.script, good) { proxy in
            let exchange = try await session(through: proxy).post("http://a.test/", body: .text("hello"))
            #expect(exchange.text == "ok")
            #expect(proxy.connectionCount == 2)
        }
    }

    @Test("An event stream reconnects after a proxy failure", arguments: ProxyFailure.allCases)
    func events(_ failure: ProxyFailure) async throws {
        let good = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\n\r\n"), .expectRequestHead,
            .send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: a\n\n"), .awaitClose)
        try await TestOrigin.withOrigin(scripts: failure.script, good) { proxy in
            var options = EventStreamOptions()
            options.request.retry = .never
            options.sleep = { _ in }
            let session = try session(through: proxy)
            var events = session.events("http://a.test/", options: options).makeAsyncIterator()
            #expect(try await events.next()?.data == "a")
        }
    }

    @Test("An event stream over TLS reconnects when the server ends a handshake")
    func cutHandshake() async throws {
        try await TestOrigin.withOrigin(.tls()) { request in
            let isFirst = request.headers["Last-Event-ID"] == nil
            return OriginResponse(
                200, headers: ["Content-Type": "text/event-stream", "Connection": "close"],
                body: .text(isFirst ? "id: 1\ndata: a\n\n" : "id: 2\ndata: b\n\n"))
        } run: { origin in
            let relay = try CuttingRelay(to: origin.port)
            defer { relay.close() }
            let waits = Counter()
            var options = EventStreamOptions()
            options.sleep = { _ in
                waits.add()
                relay.use(waits.count == 1 ? .cut(20) : .none)
            }
            let session = HTTPSession.trusting(origin)
            var events = session.events("https://127.0.0.1:\(relay.port)/", options: options)
                .makeAsyncIterator()
            #expect(try await events.next()?.data == "a")
            #expect(try await events.next()?.data == "b")
            // The stream reconnects without a request for the next event.
            #expect(waits.count >= 2)
        }
    }
}

extension ScriptStep {
    /// Returns a rejection of CONNECT.
    fileprivate static func rejection(_ status: Int) -> ScriptStep {
        .send("HTTP/1.1 \(status) Refused\r\nContent-Length: 0\r\n\r\n")
    }
}
