public import MartletCore

/// The lines of a response as an `AsyncSequence`, as they are received.
///
/// Each iterator makes its own call, when its first line is requested. Cancelling the task that awaits a line throws
/// `CancellationError` and closes the connection immediately; releasing the iterator also closes it.
public struct LineStream: AsyncSequence, Sendable {
    /// A line, without its line break.
    public typealias Element = String

    fileprivate let read: @Sendable (Handoff<[String]>) async throws -> Void

    /// One pass over the lines.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var pass: BackgroundPass<String>

        /// Returns the next line; `nil` after the last one.
        /// - Throws: An ``HTTPError`` of the call: also `.unacceptableStatus` for a status that is not 2xx,
        ///   `.limitExceeded` for a line that is too long, and `.decodingFailed` for a charset other than those of
        ///   ``ResponseBody/Lines``; `CancellationError`. An error ends the sequence.
        public mutating func next() async throws -> String? { try await pass.next() }

        /// Returns the next line; `nil` after the last one.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> String? {
            try await next()
        }
    }

    /// Returns a pass, which makes its call when its first line is requested.
    public func makeAsyncIterator() -> Iterator { Iterator(pass: BackgroundPass(read)) }
}

extension HTTPSession {
    /// Returns the lines of a response, as they are received. The call is made when the first line is requested.
    ///
    /// Lines are as in ``ResponseBody/Lines``. The status must be 2xx unless the options or session have a validator.
    /// - Parameters:
    ///   - target: The URL, or a request with a method and header fields. For a URL: GET, or POST with a body.
    ///   - timeout: The maximum duration of the whole call, including the caller's processing of the lines.
    ///   - limit: The maximum size of a line; 16 MiB by default.
    public nonisolated func lines(
        from target: some HTTPTarget, query: ParameterValue = .null, body: HTTPBody = .none,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions = RequestOptions(),
        upTo limit: ByteCount = .mebibytes(16)
    ) -> LineStream {
        let target = target.httpTarget
        let validator = options.validator ?? configuration.validator ?? .success
        return LineStream { pieces in
            try await self.stream(
                target, query: query, body: body, headers: headers, timeout: timeout, options: options,
                validate: validator
            ) { _, body in
                var lines = body.lines(upTo: limit).makeAsyncIterator()
                while let piece = try await lines.nextLines(), await pieces.give(piece) {}
            }
        }
    }
}
