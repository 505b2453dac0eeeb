public import MartletCore
import MartletStreams

extension HTTPSession {
    /// Opens a WebSocket connection, passes it to a closure, and closes it when the closure ends: after a return with
    /// the code 1000, after an error with 1011, and after a cancellation immediately.
    ///
    /// The opening handshake is a GET request with the settings of the session: credentials, cookies, middleware,
    /// redirects, proxies, TLS and timeouts. Each redirect to another server repeats it there.
    /// - Parameters:
    ///   - target: The URL, with the scheme `ws`, `wss`, `http` or `https`, or a request.
    ///   - headers: Fields that replace those of the request. Those of the handshake are always replaced.
    ///   - options: The limits, timeouts, compression and subprotocols of the connection.
    ///   - handle: The closure, which stays on the caller's actor.
    /// - Throws: The errors of `openWebSocket(_:headers:options:)` and of the closure.
    public nonisolated func webSocket<Result>(
        _ target: some HTTPTarget, headers: HTTPHeaders = HTTPHeaders(), options: WebSocketOptions = WebSocketOptions(),
        _ handle: (WebSocket) async throws -> Result
    ) async throws -> Result {
        let socket = try await openWebSocket(target, headers: headers, options: options)
        let result: Result
        do { result = try await handle(socket) } catch {
            if error is CancellationError || Task.isCancelled {
                socket.cancel()
            } else if socket.closeCode == nil {
                try? await socket.close(code: .internalError)
            }
            throw error
        }
        try await socket.close()
        return result
    }

    /// Opens a WebSocket connection that outlives this call: close it with ``WebSocket/close(code:reason:)``.
    /// Cancelling the task cancels the opening handshake.
    /// - Throws: An `HTTPError`, such as `.unacceptableStatus` if the server does not switch protocols, with its response
    ///   in `exchange`; `.protocolViolation` for an invalid handshake; `.invalidURL`; `.invalidHeader` for an invalid
    ///   subprotocol. `CancellationError`.
    public nonisolated func openWebSocket(
        _ target: some HTTPTarget, headers: HTTPHeaders = HTTPHeaders(), options: WebSocketOptions = WebSocketOptions()
    ) async throws -> WebSocket {
        try await openWebSocket(target.httpTarget, headers, options, endsQuietly: false)
    }

    nonisolated func openWebSocket(
        _ target: HTTPTargetForm, _ headers: HTTPHeaders, _ options: WebSocketOptions, endsQuietly: Bool
    ) async throws -> WebSocket {
        var (target, headers, options) = (target.withHTTPScheme, headers, options)
        if case .request(var request) = target {
            // An absent field replaces none, so those of the request are moved or removed.
            let own = request.headerFields[.secWebSocketProtocol]
            headers[.secWebSocketProtocol] = headers[.secWebSocketProtocol] ?? own
            (request.headerFields[.secWebSocketProtocol], request.headerFields[.secWebSocketExtensions]) = (nil, nil)
            target = .request(request)
        }
        if options.subprotocols.isEmpty, let given = headers[.secWebSocketProtocol] {
            // Many programs set the field themselves, as with other libraries.
            options.subprotocols = given.split(separator: ",").map(DeflateNegotiation.trimmed)
        }
        let handshake = try OpeningHandshake(options)
        handshake.complete(&headers)
        switch try await upgrade(target, to: "websocket", method: .get, headers: headers, options: options.request) {
        case .upgraded(let connection):
            do throws(WebSocketError) {
                let (subprotocol, negotiation) = try handshake.check(connection.response.headerFields)
                return WebSocket(
                    UpgradedTransport(connection: connection), response: connection.response, subprotocol: subprotocol,
                    negotiation: negotiation, options: options, endsQuietly: endsQuietly)
            } catch {
                connection.close()
                throw HTTPError(
                    .protocolViolation, phase: .processingResponse, message: "\(error)", wasSent: true, method: .get,
                    url: connection.url, status: 101)
            }
        case .response(let exchange):
            throw HTTPError(
                .unacceptableStatus, phase: .processingResponse,
                message: "the server did not open a WebSocket connection: the status is \(exchange.statusCode)",
                wasSent: true, method: .get, url: exchange.url, exchange: exchange)
        }
    }
}

extension HTTPTargetForm {
    /// The target with the scheme `http` for `ws`, and `https` for `wss` (RFC 6455 §3).
    package var withHTTPScheme: HTTPTargetForm {
        switch self {
        case .text(let text):
            let scheme = text.prefix { $0 != ":" }
            return HTTPTargetForm.httpScheme(String(scheme)).map { .text($0 + text.dropFirst(scheme.count)) } ?? self
        case .request(var request):
            guard let scheme = HTTPTargetForm.httpScheme(request.scheme ?? "") else { return self }
            request.scheme = scheme
            return .request(request)
        case .url, .segments: return self
        }
    }

    private static func httpScheme(_ scheme: String) -> String? {
        switch scheme.lowercased() {
        case "ws": "http"
        case "wss": "https"
        default: nil
        }
    }
}

/// An upgraded connection of a session under a WebSocket connection.
private struct UpgradedTransport: WebSocketTransport {
    let connection: UpgradedConnection

    func read(upTo byteCount: Int) async throws -> [UInt8] { try await connection.read(upTo: byteCount) ?? [] }
    func write(_ bytes: [UInt8]) async throws { try await connection.write(bytes) }
    func closeWriting() async throws { try await connection.closeWriting() }
    func close() { connection.close() }
}
