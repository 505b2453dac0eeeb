public import MartletCore

/// An event of a stream of server-sent events (WHATWG HTML §9.2).
public struct ServerSentEvent: Hashable, Sendable {
    /// The value of the `event` field, which is the type of the event; `message` if the stream does not name one.
    public var event: String
    /// The values of the `data` fields, joined by line feeds.
    public var data: String
    /// The value of the last `id` field, of this event or an earlier one; empty if none was set. A new connection sends
    /// it in `Last-Event-ID`.
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
        self.event = event
        self.data = data
        self.id = id
    }

    fileprivate init(_ event: String, data: [UInt8], id: String, decoder: PartDecoder?) {
        self.init(event: event.isEmpty ? "message" : event, data: String(decoding: data, as: UTF8.self), id: id)
        source.decoder = decoder
    }

    /// Decodes ``data`` as JSON, by the decoder of the host or session (``SessionConfiguration/decoder``).
    /// - Throws: An ``HTTPError`` with the code `.decodingFailed`, which names the request and the event.
    public func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        try (source.decoder ?? PartDecoder()).value(type, from: data.utf8, "the event “\(event.prefix(100))”")
    }
}

/// A parser of server-sent events in a stream of bytes, however the input is split (WHATWG HTML §9.2.6). An event above
/// the limit is a permanent error. An event that the end of the stream cuts off is never returned.
package struct ServerSentEventParser: PieceParser {
    /// The error of an event, or a line, above the limit.
    package typealias TooLarge = LineParser.TooLong

    static let tooLarge = "an event is larger"

    private var lines: LineParser
    private let limit: Int
    private var data: [UInt8] = []
    private var type = ""
    private var pendingID: String
    private var failure: TooLarge?
    private let decoder: PartDecoder?

    /// The current identifier, which a new connection sends in `Last-Event-ID`.
    package private(set) var lastEventID: String
    /// The last `retry` field: the delay before reconnecting, in milliseconds.
    package private(set) var retryMilliseconds: UInt64?

    /// Creates a parser for the beginning of a stream.
    /// - Parameters:
    ///   - lastEventID: The identifier of the stream before, if this stream continues it.
    ///   - limit: The maximum number of bytes of the data of an event, and of each line.
    ///   - decoder: The decoder for the data of the events.
    package init(lastEventID: String = "", limit: Int, decoder: PartDecoder? = nil) {
        self.decoder = decoder
        self.lastEventID = lastEventID
        pendingID = lastEventID
        self.limit = max(0, limit)
        lines = LineParser(ending: .any, limit: limit)
    }

    /// Adds the next bytes of the stream.
    package mutating func feed(_ piece: some Collection<UInt8>) { lines.feed(piece) }

    /// Returns the next complete event; `nil` when more bytes are needed.
    package mutating func next() throws(TooLarge) -> ServerSentEvent? {
        if let failure { throw failure }
        while let line = try lines.next() {
            if line.isEmpty { if let event = dispatch() { return event } } else { try interpret(line) }
        }
        return nil
    }

    /// Returns `nil`: an event that the end of the stream cuts off is incomplete.
    func rest() -> ServerSentEvent? { nil }

    /// Ends the event at an empty line; `nil` if it has no data.
    private mutating func dispatch() -> ServerSentEvent? {
        lastEventID = pendingID
        defer {
            data.removeAll()
            type = ""
        }
        // Each field has appended an LF, even an empty one; the last LF is removed.
        guard data.popLast() != nil else { return nil }
        return ServerSentEvent(type, data: data, id: lastEventID, decoder: decoder)
    }

    private mutating func interpret(_ line: [UInt8]) throws(TooLarge) {
        let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
        var value = line[min(colon + 1, line.endIndex)...]
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        // A line with an empty name is a comment.
        switch String(decoding: line[..<min(colon, 6)], as: UTF8.self) {
        case "data":
            guard value.count <= limit - data.count else {
                let error = TooLarge(limit: limit)
                (failure, data) = (error, [])
                throw error
            }
            data += value
            data.append(UInt8(ascii: "\n"))
        case "event": type = String(decoding: value, as: UTF8.self)
        case "id" where !value.contains(0): pendingID = String(decoding: value, as: UTF8.self)
        case "retry" where !value.isEmpty && value.allSatisfy({ (0x30...0x39).contains($0) }):
            // A number that overflows becomes the maximum.
            retryMilliseconds = UInt64(String(decoding: value, as: UTF8.self)) ?? .max
        default: break
        }
    }
}

extension ResponseBody {
    /// The server-sent events of a body as they arrive (WHATWG HTML §9.2), as an `AsyncSequence` that reads on demand.
    ///
    /// An event that the end of the body cuts off is not returned. Neither the status nor the content type is checked,
    /// and the sequence does not reconnect: ``HTTPSession/events(from:query:headers:body:options:)`` does both.
    public struct ServerSentEvents: AsyncSequence, Sendable {
        /// An event of the body.
        public typealias Element = ServerSentEvent

        fileprivate let pass: ParsedBody<ServerSentEventParser>

        /// One pass over the events.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate var pass: ParsedBody<ServerSentEventParser>

            /// Returns the next event; `nil` at the end. Cancelling the task throws `CancellationError` and closes the
            /// connection immediately.
            /// - Throws: An ``HTTPError``: that of the body, or `.limitExceeded` for an event above the limit.
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
    /// - Parameter limit: The maximum size of an event's data, and of each line. A larger event throws an ``HTTPError``
    ///   with the code `.limitExceeded` and closes the connection.
    public func serverSentEvents(upTo limit: ByteCount) -> ServerSentEvents {
        ServerSentEvents(pass: ParsedBody(self, ServerSentEventParser(limit: limit.bytes, decoder: PartDecoder(self))))
    }
}
