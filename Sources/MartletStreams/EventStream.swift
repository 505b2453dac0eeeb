public import MartletCore

/// The server-sent events of a URL (WHATWG HTML §9.2), with a reconnection when the stream ends or breaks.
///
/// Each pass has its own connection, opened when the first event is requested. A reconnection sends the last identifier
/// in `Last-Event-ID`, after the server's `retry` delay, within bounds; the delay grows while connecting fails. A 204
/// ends the sequence. Cancelling the task that awaits an event throws `CancellationError` and closes the connection
/// immediately; releasing the iterator also closes it.
public struct EventStream: AsyncSequence, Sendable {
    /// An event of the stream.
    public typealias Element = ServerSentEvent

    private let plan: @Sendable () throws -> EventStreamReader
    private let errors: @Sendable (any Error) -> any Error

    init(reader: EventStreamReader) {
        plan = { reader }
        errors = { $0 }
    }

    /// Creates the events of a stream that is opened for each pass.
    /// - Parameter errors: The mapper of the error that ends a pass, except `CancellationError`.
    package init(
        mapping errors: @escaping @Sendable (any Error) -> any Error,
        _ make: @escaping @Sendable () throws -> EventStream
    ) {
        plan = { try make().plan() }
        self.errors = errors
    }

    /// One pass over the events.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let stream: EventStream
        fileprivate var run: BackgroundRead<ServerSentEvent>?
        fileprivate var isOver = false

        /// Returns the next event; `nil` when the server has no more events.
        /// - Throws: An ``HTTPError``: `.unacceptableStatus` or `.unacceptableContentType` for a response that is not
        ///   an event stream, `.limitExceeded` for an event that is too large, the last network error after too many
        ///   failed connections; `CancellationError`. An error ends the sequence.
        public mutating func next() async throws -> ServerSentEvent? {
            if isOver { return nil }
            let current = run
            // The sequence continues only after an event.
            (run, isOver) = (nil, true)
            do {
                let next: BackgroundRead<ServerSentEvent>
                if let current {
                    next = current
                } else {
                    let reader = try stream.plan()
                    next = BackgroundRead { await reader.read(into: $0) }
                }
                guard let event = try await next.elements.take() else { return nil }
                (run, isOver) = (next, false)
                return event
            } catch  where !(error is CancellationError) { throw stream.errors(error) }
        }

        /// Returns the next event; `nil` when the server has no more events.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> ServerSentEvent? {
            try await next()
        }
    }

    /// Returns a pass, which connects when its first event is requested.
    public func makeAsyncIterator() -> Iterator { Iterator(stream: self) }
}

/// The options of a stream of server-sent events: `options: .init { $0.reconnects = false }`.
public struct EventStreamOptions: Sendable {
    /// The options of the requests, which override the session's. After its idle timeout, a stream reconnects.
    public var request = RequestOptions()
    /// The identifier that the first request sends in `Last-Event-ID`; empty for none.
    public var lastEventID = ""
    /// The delay before a reconnection, until the server's `retry` sets another one; 3 s by default.
    public var reconnectionTime = Duration.seconds(3)
    /// The bounds of a server's `retry`; by default 100 ms, which prevents a busy loop, to one hour. The upper bound is
    /// also that of `Retry-After`.
    public var reconnectionTimeBounds = Duration.milliseconds(100)...Duration.seconds(3600)
    /// The maximum delay before a reconnection, at least ``reconnectionTime``; 60 s by default. The delay is random;
    /// its upper bound doubles with each further consecutive failure to connect. A longer `Retry-After` replaces it.
    public var backoffLimit = Duration.seconds(60)
    /// The number of consecutive failures to connect after which the stream ends with the error; 10 by default, `nil`
    /// for no limit. An accepted response resets the count. A status of 429, 502, 503 or 504 is such a failure, and its
    /// `Retry-After` is respected; a 204 ends the stream, and any other status ends it with an error.
    public var failureLimit: Int? = 10
    /// Whether the stream reconnects when it ends or breaks; `true` by default.
    public var reconnects = true
    /// The maximum size of an event's data, and of each line; 16 MiB by default. It limits the memory for an event.
    public var eventLimit = ByteCount.mebibytes(16)
    /// The function that waits before a reconnection; tests replace it.
    package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    /// Creates the default options.
    public init() {}

    /// Creates options that a closure sets.
    public init(_ change: (inout EventStreamOptions) -> Void) { change(&self) }

    /// Returns the options with an identifier, if one is given.
    package func continuing(after id: String?) -> EventStreamOptions {
        var options = self
        if let id { options.lastEventID = id }
        return options
    }
}

extension HTTPHeaders {
    /// Returns the fields of a request for events: these, those of the target, and the defaults.
    package func forEvents(from target: HTTPTargetForm) -> HTTPHeaders {
        var headers = self
        if case .request(let request) = target { headers.fill(from: request.headerFields) }
        headers.fill(from: ["Accept": "text/event-stream", "Cache-Control": "no-store"] as HTTPHeaders)
        return headers
    }
}

extension HTTPSession {
    /// Returns the server-sent events of a URL, with reconnections when the stream ends or breaks. The stream connects,
    /// and reports an invalid URL, when the first event is requested. `Accept: text/event-stream` and `Cache-Control:
    /// no-store` are sent unless the given fields override them.
    /// - Parameters:
    ///   - target: The URL, or a request with a method and header fields. For a URL: GET, or POST with a body.
    ///   - body: The body; it must be replayable if the stream is to reconnect.
    ///   - headers: Fields that replace those of the request.
    ///   - lastEventID: The identifier that the first request sends in `Last-Event-ID`, to continue an earlier stream;
    ///     `nil` for that of the options. Identifiers of received events replace it.
    public nonisolated func events(
        _ target: some HTTPTarget, query: ParameterValue = .null, body: HTTPBody = .none,
        headers: HTTPHeaders = HTTPHeaders(), lastEventID: String? = nil,
        options: EventStreamOptions = EventStreamOptions()
    ) -> EventStream {
        // The decision to reconnect needs the original error, not the result of an error mapper.
        let session = configuration.errors == nil ? self : with { $0.errors = nil }
        let target = target.httpTarget
        return EventStream(
            reader: EventStreamReader(
                session: session, target: target, query: query, body: body, headers: headers.forEvents(from: target),
                options: options.continuing(after: lastEventID)))
    }
}
