public import FoundationEssentials

/// A response whose body is not read yet.
///
/// The response of ``HTTPSession/stream(_:method:query:body:headers:timeout:options:validate:_:)`` can be read within
/// the closure it is passed to. The response of
/// ``HTTPSession/open(_:method:query:body:headers:timeout:options:validate:)`` outlives the call: the response and its
/// ``body`` together hold the connection, which returns to the pool when the body has been read to its end. When all
/// copies of both are released, a small rest of the body is read in the background. A larger rest closes the
/// connection, as after the closure of a stream. ``cancel()`` closes the connection immediately.
public struct OpenResponse: HTTPResponseHead {
    private let answer: StreamedResponse
    /// The status and the fields.
    public let response: HTTPResponse
    /// The body. Only one task may read it at a time; it is never read ahead.
    ///
    /// It may be stored without the response, and read in any task. Cancelling a task that reads it ends the body. After
    /// its end, another pass throws an ``HTTPError`` with the code `.bodyAlreadyRead`; after a failure, the same error.
    public let body: ResponseBody

    init(_ answer: StreamedResponse, _ reader: BodyReader) {
        self.answer = answer
        response = HeadConversion.response(answer.head)
        body = ResponseBody(reader: reader)
    }

    /// The status of the response.
    public var status: HTTPResponse.Status { response.status }
    /// The header fields, in the order received.
    public var headers: HTTPFields { response.headerFields }
    /// The URL of the response, after redirects, without user info.
    public var url: HTTPURL { answer.call.url }
    /// The length of the body in the head, before content codings are decoded; `nil` if the head has none.
    public var expectedContentLength: UInt64? { body.expectedContentLength }
    /// The trailers of a chunked body; available after the body was read to its end.
    public var trailers: HTTPFields? { body.trailers }
    /// The interim responses that preceded the final one: 100, 102, 103 (RFC 9110 §15.2).
    public var interimResponses: [HTTPResponse] { answer.interim.map(HeadConversion.response) }
    /// The number of the call, as in ``HTTPExchange/callNumber``.
    public var callNumber: UInt64 { answer.call.number }
    /// The source of the response, such as the network.
    public var source: HTTPExchange.Source { answer.source }
    /// The action of the cache so far, like ``HTTPExchange/cacheStatus``: `stored` is added after the end of the body.
    public var cacheStatus: String? { answer.provenance?.cacheStatus }
    /// The times and byte counts so far; final once the body has ended.
    public var metrics: HTTPMetrics { answer.metrics }

    /// Collects the rest of the body as text, see ``ResponseBody/text(upTo:)``.
    public func text(upTo limit: ByteCount = .mebibytes(16)) async throws -> String { try await body.text(upTo: limit) }

    /// Collects the rest of the body and decodes it as JSON, see ``ResponseBody/decode(_:upTo:using:)``.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, upTo limit: ByteCount = .mebibytes(16), using decoder: JSONDecoder? = nil
    ) async throws -> Value { try await body.decode(type, upTo: limit, using: decoder) }

    /// Ends the body: reading it throws `CancellationError`, and the connection is closed. Does nothing after the end.
    public func cancel() { body.reader.control.cancel() }
}

extension HTTPSession {
    /// Sends a request and returns the response with an unread body, which the caller can read later, in any task.
    ///
    /// ```swift
    /// let open = try await session.open("https://origin.internal/file")
    /// return Response(status: open.status, body: .init(asyncSequence: open.body))
    /// ```
    ///
    /// When this returns, redirects, retries, authentication, middleware and the cache have handled the head.
    /// Cancelling the task that awaits this function cancels the call, but no longer after this has returned.
    ///
    /// The call runs until its body ends: ``tasks``, ``runningCallCount`` and ``diagnostics`` count it,
    /// ``finishAndInvalidate()`` waits for it, and ``invalidateAndCancel()`` ends it. An empty body ends immediately.
    ///
    /// ``Timeouts/total`` covers the call and its body, also while the body is not read. ``Timeouts/idle`` limits the
    /// wait for the server during a read, and ``Timeouts/unread`` the time between two reads, so that a forgotten
    /// response does not hold a connection forever.
    ///
    /// - Parameters:
    ///   - target: The URL, or a request with a method and header fields.
    ///   - method: `nil` (the default) for the method of the request; for a URL, GET without a body and POST with one.
    ///   - validate: The conditions for the head; `nil` to use those of `options` or the session. A rejection carries
    ///     up to 64 KiB of the body, see ``ResponseValidator``.
    /// - Throws: An ``HTTPError``; `CancellationError`. Errors of the body are thrown where it is read.
    public nonisolated func open(
        _ target: some HTTPTarget, method: HTTPRequest.Method? = nil, query: ParameterValue = .null,
        body: HTTPBody = .none, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions = RequestOptions(), validate: ResponseValidator? = nil
    ) async throws -> OpenResponse {
        try await open(call(method, target, query, headers, body, timeout, options, validate), nil)
    }

    /// Opens the response of a call.
    /// - Parameter validators: The conditions for the head; `nil` to use those of the call.
    package nonisolated func open(_ call: Call, _ validators: [ResponseValidator]?) async throws -> OpenResponse {
        let control = TransferControl(reportsProgress: false)
        let lease = BodyLease(control, limit: call.timeouts.unread, totalDeadline: call.totalDeadline)
        let loop = core.loop
        // Unstructured, because the call outlives its caller. It ends with the body: see ``BodyLease``.
        Task {
            do {
                try await run(call, control, kind: .stream) { answer in
                    for validator in validators ?? call.validators {
                        try await validator.admit(answer, control, BodyReader(answer, control: control, byteLimit: nil))
                    }
                    lease.open(answer)
                    try await lease.ended(call, on: loop)
                }
                lease.close(.success(()))
            } catch { lease.close(.failure(error)) }
        }
        return try await lease.response()
    }
}
