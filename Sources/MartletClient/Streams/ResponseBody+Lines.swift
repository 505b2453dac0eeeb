extension ResponseBody {
    /// The lines of a body as they arrive, in UTF-8: an `AsyncSequence` of strings, pulled.
    ///
    /// A line ends with LF or CR LF, which it is handed out without; what follows the last ending is a line too. A byte
    /// order mark at the beginning is passed over, and bytes that are no UTF-8 become U+FFFD. One pass reads the body: what
    /// a pass has received and not handed out goes with it.
    public struct Lines: AsyncSequence, Sendable {
        /// A line.
        public typealias Element = String

        let body: ResponseBody
        let limit: ByteCount

        /// One pass over the lines.
        public struct Iterator: AsyncIteratorProtocol {
            private let reader: BodyReader
            private var parser: LineParser
            private var isEnded = false

            init(_ lines: Lines) {
                reader = lines.body.reader
                parser = LineParser(ending: .lineFeed, limit: lines.limit.bytes)
            }

            /// The next line; `nil` at the end.
            ///
            /// When the task is cancelled it throws `CancellationError` at once, and the connection is closed.
            /// - Throws: An ``HTTPError``: as the body does, and `.limitExceeded` when a line is longer than the limit.
            public mutating func next() async throws -> String? {
                try await nextBytes().map { String(decoding: $0, as: UTF8.self) }
            }

            /// The same as it came, in whatever encoding.
            package mutating func nextBytes() async throws -> [UInt8]? {
                do {
                    while true {
                        if let line = try parser.next() { return line }
                        if isEnded { return nil }
                        if let piece = try await reader.next() {
                            parser.feed(piece)
                        } else {
                            isEnded = true
                            return try parser.rest()
                        }
                    }
                } catch let error as LineParser.TooLong {
                    throw reader.limitExceeded("a line is longer than the limit of \(error.limit) bytes")
                }
            }

            /// The next line; `nil` at the end.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws(any Error) -> String? {
                try await next()
            }
        }

        /// A pass that begins with what was not yet read.
        public func makeAsyncIterator() -> Iterator { Iterator(self) }
    }

    /// The lines of the body, of at most 16 MiB each.
    public var lines: Lines { lines(upTo: .mebibytes(16)) }

    /// The lines of the body.
    /// - Parameter limit: The most bytes of a line; one that is longer is an ``HTTPError`` with the code
    ///   `.limitExceeded`, and costs the connection.
    public func lines(upTo limit: ByteCount) -> Lines { Lines(body: self, limit: limit) }
}
