public import MartletCore

/// The response to a request that offered to switch to another protocol.
public enum UpgradeResult: Sendable {
    /// The server has switched protocols.
    case upgraded(UpgradedConnection)
    /// The server has not switched, and has sent a normal response instead, such as a 401, a 426 or a 200.
    case response(HTTPExchange)
}

extension HTTPSession {
    /// Offers to switch to another protocol on the connection of a request (RFC 9110 §7.8).
    ///
    /// ```swift
    /// switch try await session.upgrade(url, to: "tcp", method: .post, body: .json(options)) {
    /// case .upgraded(let connection): try await attach(connection)
    /// case .response(let exchange): print("not switched:", exchange.status)
    /// }
    /// ```
    ///
    /// The request has `Upgrade` with this protocol, and `Connection: Upgrade` in addition to tokens of the caller. The
    /// settings of the session apply: credentials, cookies, middleware, redirects, proxies and timeouts. HTTP proxies open
    /// a tunnel, also for `http` URLs. The cache is not used. The request is retried only if it was not sent, or if a
    /// reused connection was closed. ``Timeouts/total`` ends with the 101, and a body is sent completely before the
    /// connection is returned. Cancelling the task cancels the call, but no longer after this function has returned.
    ///
    /// The call runs until the connection is closed: see ``UpgradedConnection``.
    /// - Parameters:
    ///   - target: The URL, or a request with a method and header fields.
    ///   - protocolName: The name of the protocol, with or without a version: `websocket`, `IRC/6.9`. Letter case is
    ///     ignored in the response.
    ///   - method: `nil` (the default) for the method of the request; for a URL, GET without a body and POST with one.
    /// - Throws: An ``HTTPError``: `.protocolViolation` if the 101 is for another protocol; `.invalidRequest` for an
    ///   invalid name, or with HTTP/1.0. `CancellationError`.
    public nonisolated func upgrade(
        _ target: some HTTPTarget, to protocolName: String, method: HTTPRequest.Method? = nil,
        query: ParameterValue = .null, body: HTTPBody = .none, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions()
    ) async throws -> UpgradeResult {
        let call = try offering(protocolName, headers, options) {
            try self.call(method, target, query, $0, body, timeout, $1, nil)
        }
        let (control, results) = (TransferControl(reportsProgress: false), Handoff<UpgradeResult>())
        let loop = core.loop
        // Unstructured, because the connection outlives its caller. The task ends with the connection.
        Task {
            do {
                try await run(call, control, kind: .stream) { answer in
                    let ended = OneShot<Void>()
                    try await offer(answer, call, control, to: protocolName, ended, results)
                    guard answer.head.status == 101 else { return }
                    let cancellation = control.beginWait { ended.fulfill(()) }
                    _ = await ended.wait(until: .distantFuture, on: loop)
                    control.endWait(cancellation)
                }
                results.finish()
            } catch { results.finish(throwing: error) }
        }
        defer { results.cancel() }
        let result = try await withTaskCancellationHandler {
            try await results.take()
        } onCancel: {
            control.cancel()
        }
        // The call may have been cancelled at the same time as the server switched.
        guard let result, !control.isCancelled else { throw CancellationError() }
        return result
    }

    /// Offers to switch to another protocol, and passes the connection to a closure. It is closed when the closure
    /// returns or throws, or when the task is cancelled; otherwise like
    /// ``upgrade(_:to:method:query:body:headers:timeout:options:)``.
    /// - Throws: The errors of that function and of the closure. If the server does not switch, an ``HTTPError`` with the
    ///   code `.unacceptableStatus` that carries the response.
    public nonisolated func upgrade<Result>(
        _ target: some HTTPTarget, to protocolName: String, method: HTTPRequest.Method? = nil,
        query: ParameterValue = .null, body: HTTPBody = .none, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions(),
        _ handle: (UpgradedConnection) async throws -> Result
    ) async throws -> Result {
        let call = try offering(protocolName, headers, options) {
            try self.call(method, target, query, $0, body, timeout, $1, nil)
        }
        let control = TransferControl(reportsProgress: false)
        return try await run(call, control, kind: .stream) { answer in
            guard let connection = try await answer.upgraded(to: protocolName, ended: OneShot()) else {
                throw answer.call.error(
                    .unacceptableStatus, .processingResponse, "the server did not switch to \(protocolName)",
                    wasSent: true, attempts: answer.attempts, exchange: try await collect(answer, call, control))
            }
            defer { connection.close() }
            return try await UserCode.handle(control, core) { try await handle(connection) }
        }
    }

    /// Returns the call that offers a protocol.
    private nonisolated func offering(
        _ protocolName: String, _ headers: HTTPHeaders, _ options: RequestOptions,
        _ makeCall: (HTTPHeaders, RequestOptions) throws -> Call
    ) throws -> Call {
        var (headers, options) = (headers, options)
        options[UpgradeKey.self] = true
        // The fields that are sent without the offer contain the tokens of the caller.
        let call = try makeCall(headers, options)
        let parts = protocolName.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, parts.allSatisfy({ HTTPField.Name(String($0)) != nil }) else {
            throw call.error(.invalidRequest, .preparing, "“\(protocolName)” is not the name of a protocol")
        }
        guard options.version != .http10 else {
            throw call.error(.invalidRequest, .preparing, "HTTP/1.0 has no Upgrade: change options.version")
        }
        let tokens = call.sentFields.values(of: "connection")
        let isNamed = call.sentFields.contains("connection", token: "upgrade")
        headers[.connection] = (isNamed ? tokens : tokens + ["Upgrade"]).joined(separator: ", ")
        headers[.upgrade] = protocolName
        return try makeCall(headers, options)
    }

    /// Passes the result of a call to the function that waits for it. A separate function, so that the call does not
    /// retain the connection.
    private nonisolated func offer(
        _ answer: StreamedResponse, _ call: Call, _ control: TransferControl, to protocolName: String,
        _ ended: OneShot<Void>, _ results: Handoff<UpgradeResult>
    ) async throws {
        let result: UpgradeResult
        if let connection = try await answer.upgraded(to: protocolName, ended: ended) {
            result = .upgraded(connection)
        } else {
            result = .response(try await collect(answer, call, control))
        }
        answer.channel.heldExchange?.holdBegins()
        _ = await results.give(result)
    }
}

extension StreamedResponse {
    /// Takes over the connection of a 101; `nil` for another response.
    fileprivate func upgraded(to protocolName: String, ended: OneShot<Void>) async throws -> UpgradedConnection? {
        guard head.status == 101 else { return nil }
        guard case .exchange(let exchange) = channel else {
            throw call.error(
                .invalidRequest, .processingResponse, "a middleware made or changed the body of a 101", wasSent: true)
        }
        let names = head.fields.values(of: "upgrade").joined(separator: ", ")
        guard names.lowercased() == protocolName.lowercased() else {
            throw call.error(
                .protocolViolation, .processingResponse,
                "the server switched to “\(names)” instead of “\(protocolName)”", wasSent: true, attempts: attempts)
        }
        do throws(ExchangeError) { try await exchange.beginUpgrade() } catch {
            throw call.failure(error, attempts: attempts, status: 101)
        }
        return UpgradedConnection(self, exchange, to: protocolName, ended: ended)
    }
}
