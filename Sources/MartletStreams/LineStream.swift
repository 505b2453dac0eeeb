public import MartletCore

/// The lines of a response as an `AsyncSequence`, as they are received.
///
/// Each iterator makes its own call, when its first line is requested. Cancelling the task that awaits a line throws
/// `CancellationError` and closes the connection immediately; releasing the iterator closes it too.
public struct LineStream: AsyncSequence, Sendable {
    /// A line, without its line break.
    public typealias Element = String

    fileprivate let limit: Int
    fileprivate let read: @Sendable (Handoff<[UInt8]>) async -> Void

    /// One pass over the lines.
    public struct Iterator: AsyncIteratorProtocol {
        private let lines: LineStream
        private var parser: LineParser
        private var pieces: BackgroundRead<[UInt8]>?
        private var isOver = false

        fileprivate init(_ lines: LineStream) {
            self.lines = lines
            parser = LineParser(ending: .lineFeed, limit: lines.limit)
        }

        /// The next line; `nil` after the last one.
        /// - Throws: An ``HTTPError``: `.unacceptableStatus` for a status that is not 2xx, `.limitExceeded` for a line that is
        ///   too long; `CancellationError`. It ends the sequence.
        public mutating func next() async throws -> String? {
            if isOver { return nil }
            let current = pieces ?? BackgroundRead(lines.read)
            // Only a line lets it continue: the connection is closed with the last reference to the pieces.
            (pieces, isOver) = (nil, true)
            do {
                while true {
                    if let line = try parser.next() {
                        (pieces, isOver) = (current, false)
                        return String(decoding: line, as: UTF8.self)
                    }
                    guard let piece = try await current.elements.take() else {
                        return try parser.rest().map { String(decoding: $0, as: UTF8.self) }
                    }
                    parser.feed(piece)
                }
            } catch let error as LineParser.TooLong {
                throw HTTPError(
                    .limitExceeded, phase: .receivingBody,
                    message: "\(LineParser.tooLarge) than the limit of \(error.limit) bytes", wasSent: true)
            }
        }

        /// The next line; `nil` after the last one.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(any Error) -> String? { try await next() }
    }

    /// A pass, which makes its call when its first line is requested.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }
}

extension HTTPSession {
    /// The lines of a response, as they are received. The call is made, and an invalid URL is reported, when the first line is
    /// requested.
    ///
    /// A line ends with LF or CR LF. The status must be 2xx unless the options or the session have a validator. Invalid UTF-8 is
    /// replaced by U+FFFD.
    /// - Parameters:
    ///   - target: The URL, or a request with a method and header fields. The default method is GET, with a body POST.
    ///   - timeout: The maximum duration of the whole call, including the time the caller takes for the lines.
    ///   - limit: The maximum length of a line; 16 MiB by default.
    public nonisolated func lines(
        from target: some HTTPTarget, query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        body: HTTPBody = .none, timeout: Duration? = nil, options: RequestOptions = RequestOptions(),
        upTo limit: ByteCount = .mebibytes(16)
    ) -> LineStream {
        let target = target.httpTarget
        let validator = options.validator ?? configuration.validator ?? .success
        return LineStream(limit: limit.bytes) { pieces in
            do {
                try await self.stream(
                    target, query: query, headers: headers, body: body, timeout: timeout, options: options,
                    validate: validator
                ) { _, body in
                    for try await piece in body {
                        guard await pieces.give(piece) else { return }
                    }
                }
                pieces.finish()
            } catch {
                pieces.finish(throwing: error)
            }
        }
    }
}
