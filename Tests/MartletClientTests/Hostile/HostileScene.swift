import MartletCore
import MartletTesting
import MartletTestSupport
import Testing

/// A client and a server whose first connection plays a hostile script. Later connections answer every request with
/// `good`.
struct HostileScene: Sendable {
    /// The response of an honest connection.
    static let good = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood"

    let session: HTTPSession
    let base: String
    let recorder: OriginRecorder
    let signals: OriginSignals
    /// The base URL of an honest server. It equals `base` unless that server does not speak HTTP.
    var honestBase: String
    /// The ports that may have sockets; empty for streams in memory.
    var ports: [Int] = []

    /// Runs a closure in a scene.
    /// - Parameters:
    ///   - script: The script of the first connection.
    ///   - configure: Changes the client's default configuration.
    static func with(
        _ route: HostileRoute = .plain, _ script: ServerScript,
        configure: (inout SessionConfiguration) -> Void = { _ in },
        run body: (HostileScene) async throws -> Void
    ) async throws {
        var configuration = SessionConfiguration.patient
        // A hang shows as an error of this timeout.
        configuration.timeouts.total = TestTimeouts.long
        let honest = ServerScript.keepAlive(good, times: 4)
        switch route {
        case .memory:
            let mock = MockTransport(scripts: script, honest)
            configuration.connector = mock
            configure(&configuration)
            try await body(
                HostileScene(
                    session: HTTPSession(configuration: configuration), base: "http://mock.example",
                    recorder: mock.recorder, signals: mock.signals, honestBase: "http://mock.example"))
            await mock.stop()
        case .plain, .tls:
            let options = route == .tls ? OriginOptions.tls() : .plain
            try await TestOrigin.withOrigin(options, scripts: script, honest) { origin in
                if let authority = origin.authorityPEM { configuration.tls.trust = .only(.text(authority)) }
                configure(&configuration)
                try await body(
                    HostileScene(
                        session: HTTPSession(configuration: configuration), base: origin.base,
                        recorder: origin.recorder, signals: origin.signals, honestBase: origin.base,
                        ports: [origin.port]))
            }
        case .handshake:
            try await TestOrigin.withOrigin(.tls(), scripts: honest) { honest in
                configuration.tls.trust = .only(.text(honest.authorityPEM ?? ""))
                configure(&configuration)
                try await TestOrigin.withOrigin(scripts: script) { origin in
                    try await body(
                        HostileScene(
                            session: HTTPSession(configuration: configuration),
                            base: "https://127.0.0.1:\(origin.port)", recorder: origin.recorder,
                            signals: origin.signals, honestBase: honest.base,
                            ports: [origin.port, honest.port]))
                }
            }
        }
    }

    /// Sends a request to the hostile peer and collects or streams the response.
    func request(_ request: HostileRequest, isStreamed: Bool) async -> HostileReceipt {
        await self.request(
            request.method, isStreamed: isStreamed, headers: request.headers, body: request.body,
            options: request.options)
    }

    /// Sends a request and collects or streams the response.
    func request(
        _ method: HTTPRequest.Method = .get, _ path: String = "/", isStreamed: Bool = false,
        headers: HTTPHeaders = HTTPHeaders(), body: HTTPBody = .none,
        options: RequestOptions = RequestOptions()
    ) async -> HostileReceipt {
        await send(to: base + path, method, isStreamed: isStreamed, headers, body, options)
    }

    private func send(
        to url: String, _ method: HTTPRequest.Method, isStreamed: Bool, _ headers: HTTPHeaders,
        _ body: HTTPBody, _ options: RequestOptions
    ) async -> HostileReceipt {
        var receipt = HostileReceipt()
        do {
            let request = try HTTPRequest(method: method, url: url, headers: headers.validated())
            if isStreamed {
                let box = ReceiptBox()
                do {
                    try await session.stream(request, body: body, options: options) { response, body in
                        box.update { $0.fields = response.headers }
                        for try await piece in body { box.update { $0.body += piece } }
                        box.update { $0.trailers = body.trailers }
                    }
                    receipt = box.receipt
                } catch {
                    receipt = box.receipt
                    throw error
                }
            } else {
                let exchange = try await session.send(request, body: body, options: options)
                receipt.fields = exchange.response.headerFields
                receipt.body = exchange.body
                receipt.trailers = exchange.trailers
                receipt.interim = exchange.interimResponses
            }
        } catch let error as HTTPError {
            receipt.error = error
        } catch {
            receipt.strangeError = "\(error)"
        }
        return receipt
    }

    /// Sends a request to the honest server on the same session.
    func next() async -> String {
        let receipt = await send(
            to: honestBase + "/next", .get, isStreamed: false, HTTPHeaders(), .none, RequestOptions())
        return receipt.error.map { "\($0)" } ?? receipt.text
    }

    /// Expects that the finished calls left nothing but one idle connection.
    func expectBaseline(_ manner: String, sourceLocation: SourceLocation = #_sourceLocation) async {
        let status = session.poolStatus
        #expect(status.leased == 0, "\(manner)", sourceLocation: sourceLocation)
        #expect(status.dialing == 0, "\(manner)", sourceLocation: sourceLocation)
        #expect(status.waiting == 0, "\(manner)", sourceLocation: sourceLocation)
        #expect(session.runningCallCount == 0, "\(manner)", sourceLocation: sourceLocation)
        if ports.isEmpty { return }
        let isClosed = await eventually {
            ports.reduce(0) { $0 + OpenSockets.count(toPort: $1) } == session.poolStatus.idle
        }
        #expect(isClosed, "a descriptor was left open: \(manner)", sourceLocation: sourceLocation)
    }
}
