public import MartletCore
public import HTTPTypes

/// The server-sent events of a URL as an `AsyncSequence` that reconnects when the stream ends or breaks (WHATWG HTML §9.2).
///
/// Each pass has its own connection, opened when the first event is requested. A reconnection sends the last identifier in
/// `Last-Event-ID`, after the server's `retry` delay, within bounds; the delay grows while connecting fails. A 204 ends the
/// sequence. Cancelling the task that awaits an event throws `CancellationError` and closes the connection immediately;
/// releasing the iterator closes it too.
public struct EventStream: AsyncSequence, Sendable {
    /// An event.
    public typealias Element = ServerSentEvent

    let plan: @Sendable () throws -> EventStreamReader

    /// One pass over the events.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let plan: @Sendable () throws -> EventStreamReader
        fileprivate var run: EventStreamRun?
        fileprivate var isOver = false

        /// The next event; `nil` when the server has no more.
        /// - Throws: An ``HTTPError``: `.unacceptableStatus` or `.unacceptableContentType` for a response that is not an
        ///   event stream, `.limitExceeded` for an event that is too large, the last network error after too many failed
        ///   connections; `CancellationError`. It ends the sequence.
        public mutating func next() async throws -> ServerSentEvent? {
            if isOver { return nil }
            let current = run
            // Only an event lets it continue.
            (run, isOver) = (nil, true)
            let next = try current ?? EventStreamRun(try plan())
            guard let event = try await next.events.take() else { return nil }
            (run, isOver) = (next, false)
            return event
        }

        /// The next event; `nil` when the server has no more.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(any Error) -> ServerSentEvent? { try await next() }
    }

    /// A pass, which connects when its first event is requested.
    public func makeAsyncIterator() -> Iterator { Iterator(plan: plan) }
}

/// The options of a stream of server-sent events.
public struct EventStreamOptions: Sendable {
    /// Options of its requests that override the session's. The idle timeout is the longest silence before it reconnects.
    public var request = RequestOptions()
    /// The identifier that the first request sends in `Last-Event-ID`; empty for none.
    public var lastEventID = ""
    /// The delay before reconnecting, until the server's `retry` sets another; 3 s by default.
    public var reconnectionTime = Duration.seconds(3)
    /// The bounds of a server's `retry`: by default 100 ms, which keeps clients from spinning, to one hour.
    public var reconnectionTimeBounds = Duration.milliseconds(100)...Duration.seconds(3600)
    /// The limit of the delay, which doubles with each failure to connect; 60 s by default, at least the reconnection time.
    public var backoffLimit = Duration.seconds(60)
    /// The number of consecutive failures to connect after which the stream ends with the error; 10 by default, `nil` for
    /// no limit. A response that is accepted resets the count.
    public var failureLimit: Int? = 10
    /// Whether it reconnects when the stream ends or breaks; `true` by default.
    public var reconnects = true
    /// The maximum size of an event's data, and of each line; 16 MiB by default. It keeps a server that never ends an event
    /// from filling the memory.
    public var eventLimit = ByteCount.mebibytes(16)
    /// Waits before reconnecting; replaced by tests.
    package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    /// The defaults.
    public init() {}
}

/// A running pass over a stream of events; it ends with its last reference.
final class EventStreamRun: Sendable {
    let events = Handoff<ServerSentEvent>()
    private let task: Task<Void, Never>

    init(_ reader: EventStreamReader) {
        // A stream is read within the closure of its call, and the caller's loop is outside of it: hence a task of its own.
        task = Task { [events] in await reader.read(into: events) }
    }

    deinit {
        events.cancel()
        task.cancel()
    }
}

extension HTTPSession {
    /// The server-sent events of a URL, with reconnections when the stream ends or breaks. It connects, and reports an
    /// invalid URL, when the first event is requested. `Accept: text/event-stream` and `Cache-Control: no-store` are sent
    /// unless the given fields override them.
    public nonisolated func events(
        from url: String, headers: HTTPFields = HTTPFields(),
        options: EventStreamOptions = EventStreamOptions()
    ) -> EventStream {
        EventStream {
            let request = try HTTPRequest(method: .get, url: url, headerFields: headers)
            return self.reader(request, .none, options)
        }
    }

    /// The server-sent events in the response to a request, such as a POST; otherwise as ``events(from:headers:options:)``.
    /// - Parameter body: Sent with each connection; a body that can be read once allows one connection.
    public nonisolated func events(
        for request: HTTPRequest, body: HTTPBody = .none, options: EventStreamOptions = EventStreamOptions()
    ) -> EventStream { EventStream { self.reader(request, body, options) } }

    private nonisolated func reader(
        _ request: HTTPRequest, _ body: HTTPBody, _ options: EventStreamOptions
    ) -> EventStreamReader {
        var request = request
        if request.headerFields[.accept] == nil { request.headerFields[.accept] = "text/event-stream" }
        if request.headerFields[.cacheControl] == nil { request.headerFields[.cacheControl] = "no-store" }
        // The decision to reconnect needs the original error, not what an error mapper makes of it.
        let session = configuration.errorMapper == nil ? self : with { $0.errorMapper = nil }
        return EventStreamReader(session: session, request: request, body: body, options: options)
    }
}
