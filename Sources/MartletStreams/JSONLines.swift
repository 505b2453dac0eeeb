public import MartletCore

extension ResponseBody {
    /// The values of a body of JSON lines (NDJSON) as they arrive, as an `AsyncSequence` that reads on demand.
    ///
    /// Each line is one value; blank lines are skipped. The body can be read in one pass.
    public struct JSONLines<Value: Decodable & Sendable>: AsyncSequence, Sendable {
        /// A value of one line.
        public typealias Element = Value

        fileprivate let lines: Lines
        fileprivate let decoder: PartDecoder

        /// One pass over the values.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate var lines: Lines.Iterator
            fileprivate let decoder: PartDecoder
            fileprivate var number: UInt64 = 0

            /// Returns the next value; `nil` at the end. Cancelling the task closes the connection immediately.
            /// - Throws: An ``HTTPError``: that of the body, `.limitExceeded` for a line above the limit, or
            ///   `.decodingFailed` for an invalid line, after which the next can be read; `CancellationError`.
            public mutating func next() async throws -> Value? {
                while let line = try await lines.nextBytes() { if let value = try value(of: line) { return value } }
                return nil
            }

            /// Returns the next values, or the errors of invalid lines, of the lines that are already available; `nil`
            /// at the end.
            mutating func nextValues() async throws -> [Result<Value, any Error>]? {
                while let lines = try await lines.nextByteLines() {
                    var values: [Result<Value, any Error>] = []
                    for line in lines {
                        do { if let value = try value(of: line) { values.append(.success(value)) } } catch {
                            values.append(.failure(error))
                        }
                    }
                    if !values.isEmpty { return values }
                }
                return nil
            }

            /// Decodes the next line; returns `nil` for a blank one.
            private mutating func value(of line: [UInt8]) throws -> Value? {
                number += 1
                if line.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }) { return nil }
                return try decoder.value(Value.self, from: line, "line \(number) of the body")
            }

            /// Returns the next value; `nil` at the end.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> Value? {
                try await next()
            }
        }

        /// Returns a pass that starts with the bytes that were not read yet.
        public func makeAsyncIterator() -> Iterator { Iterator(lines: lines.makeAsyncIterator(), decoder: decoder) }
    }

    /// Returns the values of JSON lines, decoded by the host's decoder or ``SessionConfiguration/decoder``.
    /// - Parameter limit: The maximum size of a line; 16 MiB by default. A longer line closes the connection.
    public func jsonLines<Value>(of type: Value.Type, upTo limit: ByteCount = .mebibytes(16)) -> JSONLines<Value> {
        JSONLines(lines: lines(upTo: limit), decoder: PartDecoder(self))
    }
}

/// The values of a response of JSON lines (NDJSON) as an `AsyncSequence`, as they are received.
///
/// Each iterator makes its own call, when its first value is requested. Cancelling the task that awaits a value throws
/// `CancellationError` and closes the connection immediately; releasing the iterator also closes it.
public struct ValueStream<Value: Decodable & Sendable>: AsyncSequence, Sendable {
    /// A value of one line.
    public typealias Element = Value

    private let read: @Sendable (Handoff<[Result<Value, any Error>]>) async throws -> Void

    /// Creates a stream that makes a call for each pass.
    /// - Parameter open: Makes the call, and passes the body to the closure.
    package init(
        upTo limit: ByteCount, _ open: @escaping @Sendable ((ResponseBody) async throws -> Void) async throws -> Void
    ) {
        read = { pieces in
            try await open { body in
                var values = body.jsonLines(of: Value.self, upTo: limit).makeAsyncIterator()
                while let piece = try await values.nextValues(), await pieces.give(piece) {}
            }
        }
    }

    /// One pass over the values.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var pass: BackgroundPass<Result<Value, any Error>>

        /// Returns the next value; `nil` after the last one.
        /// - Throws: An ``HTTPError`` of the call: also `.unacceptableStatus` for a status that is not 2xx,
        ///   `.limitExceeded` for a line above the limit, and `.decodingFailed` for an invalid line, with its number;
        ///   `CancellationError`. Only after an invalid line can the next value be read.
        public mutating func next() async throws -> Value? { try await pass.next()?.get() }

        /// Returns the next value; `nil` after the last one.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> Value? {
            try await next()
        }
    }

    /// Returns a pass, which makes its call when its first value is requested.
    public func makeAsyncIterator() -> Iterator { Iterator(pass: BackgroundPass(read)) }
}

extension HTTPSession {
    /// Returns the values of a response of JSON lines (NDJSON), as they are received. The call is made when the first
    /// value is requested.
    ///
    /// Each line is one value, decoded by ``SessionConfiguration/decoder``. Blank lines and a byte order mark are
    /// skipped, CR LF also ends a line, and the last line needs no ending. The content type is not checked. The status
    /// must be 2xx unless the options or session have a validator.
    /// - Parameters:
    ///   - target: The URL, or a request with a method and header fields. For a URL: GET, or POST with a body.
    ///   - timeout: The maximum duration of the whole call, including the caller's processing of the values.
    ///   - limit: The maximum size of a line; 16 MiB by default.
    public nonisolated func values<Value>(
        _ type: Value.Type = Value.self, from target: some HTTPTarget, query: ParameterValue = .null,
        body: HTTPBody = .none, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions = RequestOptions(), upTo limit: ByteCount = .mebibytes(16)
    ) -> ValueStream<Value> {
        let target = target.httpTarget
        let validator = options.validator ?? configuration.validator ?? .success
        return ValueStream(upTo: limit) { handle in
            try await self.stream(
                target, query: query, body: body, headers: headers, timeout: timeout, options: options,
                validate: validator
            ) { _, body in try await handle(body) }
        }
    }
}
