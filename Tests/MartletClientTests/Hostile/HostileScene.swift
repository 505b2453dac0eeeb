import MartletClient
import MartletTesting

/// A client and a server whose first connection plays a hostile script; the second one, and those after it, answer
/// every request with `good`.
struct HostileScene: Sendable {
    /// What an honest connection answers.
    static let good = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood"

    let session: HTTPSession
    let base: String
    let ledger: OriginLedger
    let signals: OriginSignals

    /// Runs a closure in a scene.
    /// - Parameters:
    ///   - script: What the first connection plays.
    ///   - configure: What the client does otherwise than by default.
    static func with(
        _ route: HostileRoute = .plain, _ script: ServerScript,
        configure: (inout SessionConfiguration) -> Void = { _ in },
        run body: (HostileScene) async throws -> Void
    ) async throws {
        var configuration = SessionConfiguration.default
        // A hang shows as this clock's error.
        configuration.timeouts.total = .seconds(30)
        let honest = ServerScript.keepAlive(good, times: 4)
        if route == .memory {
            let mock = MockTransport(scripts: script, honest)
            configuration.connector = mock
            configure(&configuration)
            let scene = HostileScene(
                session: HTTPSession(configuration: configuration), base: "http://mock.example",
                ledger: mock.ledger, signals: mock.signals)
            try await body(scene)
            await mock.stop()
            return
        }
        let options = route == .tls ? OriginOptions.tls() : .plain
        try await TestOrigin.withOrigin(options, scripts: script, honest) { origin in
            if let authority = origin.authorityPEM { configuration.tls.trust = .only(.text(authority)) }
            configure(&configuration)
            let scene = HostileScene(
                session: HTTPSession(configuration: configuration), base: origin.base, ledger: origin.ledger,
                signals: origin.signals)
            try await body(scene)
        }
    }

    /// Sends a request and collects or streams the answer.
    func request(
        _ method: HTTPRequest.Method = .get, _ path: String = "/", isStreamed: Bool = false,
        headers: HTTPFields = HTTPFields(), body: HTTPBody = .none, options: RequestOptions = RequestOptions()
    ) async -> HostileReceipt {
        var receipt = HostileReceipt()
        do {
            let request = try HTTPRequest(method: method, url: base + path, headerFields: headers)
            if isStreamed {
                let box = ReceiptBox()
                do {
                    try await session.stream(request, body: body, options: options) { response, body in
                        box.update { $0.fields = response.headerFields }
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

    /// The honest answer to a request on the same session.
    func next() async -> String {
        let receipt = await request(.get, "/next")
        return receipt.error.map { "\($0)" } ?? receipt.text
    }
}
