public import MartletCore

/// An event of a stream of server-sent events (WHATWG HTML §9.2).
public struct ServerSentEvent: Hashable, Sendable {
    /// The type of the event, from its `event` field; `message` without this field.
    public var event: String
    /// The values of the `data` fields, joined by line feeds.
    public var data: String
    /// The last `id` field of this event or an earlier one, or empty. A new connection sends it in `Last-Event-ID`.
    public var id: String
    /// The decoder of the data; it is ignored in comparisons.
    private var source = Source()

    private struct Source: Hashable {
        var decoder: PartDecoder?

        static func == (_: Source, _: Source) -> Bool { true }
        func hash(into hasher: inout Hasher) {}
    }

    /// Creates an event, for tests and for programs that make their own.
    public init(event: String = "message", data: String, id: String = "") {
        (self.event, self.data, self.id) = (event, data, id)
    }

    init(_ event: String, data: [UInt8], id: String, decoder: PartDecoder?) {
        self.init(event: event.isEmpty ? "message" : event, data: String(decoding: data, as: UTF8.self), id: id)
        source.decoder = decoder
    }

    /// Decodes ``data`` as JSON, by the decoder of the host or session (``SessionConfiguration/decoder``).
    /// - Throws: An ``HTTPError`` with the code `.decodingFailed`, which names the request and the event.
    public func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        try (source.decoder ?? PartDecoder()).value(type, from: data.utf8, "the event “\(event.prefix(100))”")
    }
}

extension ResponseBody {
    /// The server-sent events of a body as they arrive (WHATWG HTML §9.2), as an `AsyncSequence` that reads on demand.
    ///
    /// An event that the end of the body cuts off is not returned. Neither the status nor the content type is checked,
    /// and the sequence does not reconnect, unlike
    /// ``HTTPSession/events(_:query:body:headers:lastEventID:options:)``.
    public struct ServerSentEvents: AsyncSequence, Sendable {
        /// An event of the body.
        public typealias Element = ServerSentEvent

        let pass: ParsedBody<ServerSentEventParser>

        /// One pass over the events.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate var pass: ParsedBody<ServerSentEventParser>

            /// Returns the next event; `nil` at the end. Cancelling the task closes the connection immediately.
            /// - Throws: An ``HTTPError``: that of the body, or `.limitExceeded`; `CancellationError`.
            public mutating func next() async throws -> ServerSentEvent? { try await pass.next() }

            /// Returns the next event; `nil` at the end.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error)
                -> ServerSentEvent?
            { try await next() }
        }

        /// Returns a pass that starts with the bytes that were not read yet.
        public func makeAsyncIterator() -> Iterator { Iterator(pass: pass) }
    }

    /// The server-sent events of the body, of at most 16 MiB each.
    public var serverSentEvents: ServerSentEvents { serverSentEvents(upTo: .mebibytes(16)) }

    /// Returns the server-sent events of the body.
    /// - Parameter limit: The maximum size of an event's data, and of each line. A larger event closes the connection.
    public func serverSentEvents(upTo limit: ByteCount) -> ServerSentEvents {
        ServerSentEvents(pass: ParsedBody(self, ServerSentEventParser(limit: limit.bytes, decoder: PartDecoder(self))))
    }
}
