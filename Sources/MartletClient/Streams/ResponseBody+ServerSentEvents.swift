extension ResponseBody {
    /// The server-sent events of a body as they arrive (WHATWG HTML §9.2): an `AsyncSequence`, pulled.
    ///
    /// An event that the body ends within is not handed out. Neither the status nor the content type is looked at here, and
    /// nothing is connected again: ``HTTPSession/events(from:headers:options:)`` does that.
    public struct ServerSentEvents: AsyncSequence, Sendable {
        /// An event.
        public typealias Element = ServerSentEvent

        let body: ResponseBody
        let limit: ByteCount

        /// One pass over the events.
        public struct Iterator: AsyncIteratorProtocol {
            private let reader: BodyReader
            private var parser: ServerSentEventParser
            private var isEnded = false

            init(_ events: ServerSentEvents) {
                reader = events.body.reader
                parser = ServerSentEventParser(limit: events.limit.bytes)
            }

            /// The next event; `nil` at the end.
            ///
            /// When the task is cancelled it throws `CancellationError` at once, and the connection is closed.
            /// - Throws: An ``HTTPError``: as the body does, and `.limitExceeded` when an event is larger than the limit.
            public mutating func next() async throws -> ServerSentEvent? {
                do {
                    while !isEnded {
                        if let event = try parser.next() { return event }
                        guard let piece = try await reader.next() else {
                            isEnded = true
                            return nil
                        }
                        parser.feed(piece)
                    }
                    return nil
                } catch let error as ServerSentEventParser.TooLarge {
                    throw reader.limitExceeded("an event is larger than the limit of \(error.limit) bytes")
                }
            }

            /// The next event; `nil` at the end.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws(any Error) -> ServerSentEvent? {
                try await next()
            }
        }

        /// A pass that begins with what was not yet read.
        public func makeAsyncIterator() -> Iterator { Iterator(self) }
    }

    /// The server-sent events of the body, of at most 16 MiB each.
    public var serverSentEvents: ServerSentEvents { serverSentEvents(upTo: .mebibytes(16)) }

    /// The server-sent events of the body.
    /// - Parameter limit: The most bytes of an event's data, and of each line; more are an ``HTTPError`` with the code
    ///   `.limitExceeded`, and cost the connection.
    public func serverSentEvents(upTo limit: ByteCount) -> ServerSentEvents {
        ServerSentEvents(body: self, limit: limit)
    }
}
