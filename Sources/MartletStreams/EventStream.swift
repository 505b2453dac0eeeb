public import MartletCore
public import HTTPTypes
import MartletTransport
import Synchronization

/// Server-sent events of a URL as an `AsyncSequence` that connects again when the stream ends or breaks
/// (WHATWG HTML §9.2).
///
/// Each pass has a connection of its own, which is opened when the first event is asked for. Where it has to be opened
/// again, `Last-Event-ID` says which event was the last; the wait before is the server's `retry`, within bounds, and grows
/// while connecting fails. A 204 ends the sequence. Cancelling the task that awaits an event throws `CancellationError` at
/// once and closes the connection; so does letting the iterator go.
public struct EventStream: AsyncSequence, Sendable {
    /// An event.
    public typealias Element = ServerSentEvent

    let plan: @Sendable () throws -> EventStreamReader

    /// One pass over the events.
    public struct Iterator: AsyncIteratorProtocol {
        private let plan: @Sendable () throws -> EventStreamReader
        private var run: EventStreamRun?
        private var isOver = false

        init(_ plan: @escaping @Sendable () throws -> EventStreamReader) { self.plan = plan }

        /// The next event; `nil` when the server has no more.
        /// - Throws: An ``HTTPError``: `.unacceptableStatus` and `.unacceptableContentType` when the response is not an
        ///   event stream, `.limitExceeded` when an event is too large, the last fault of the network when connecting has
        ///   failed too often; `CancellationError`. The sequence is over then.
        public mutating func next() async throws -> ServerSentEvent? {
            if isOver { return nil }
            do {
                if run == nil { run = EventStreamRun(try plan()) }
                if let event = try await run?.relay.take() { return event }
            } catch {
                isOver = true
                run = nil
                throw error
            }
            isOver = true
            run = nil
            return nil
        }

        /// The next event; `nil` when the server has no more.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(any Error) -> ServerSentEvent? { try await next() }
    }

    /// A pass, which connects when its first event is asked for.
    public func makeAsyncIterator() -> Iterator { Iterator(plan) }
}

/// How a stream of server-sent events is kept up.
public struct EventStreamOptions: Sendable {
    /// What each of its requests does otherwise than the session. The idle clock is how long the stream may be silent
    /// before it is taken for dead and connected again.
    public var request = RequestOptions()

    /// The identifier that the first request says in `Last-Event-ID`; empty for none.
    public var lastEventID = ""

    /// How long to wait before connecting again, until the server's `retry` says otherwise; 3 s by default.
    public var reconnectionTime = Duration.seconds(3)

    /// The bounds of what a server's `retry` may ask for; from 100 ms, which stops it from making clients spin, to an hour.
    public var reconnectionTimeBounds = Duration.milliseconds(100)...Duration.seconds(3600)

    /// Up to how long the wait grows while connecting fails again and again, doubling each time; 60 s by default. It is
    /// never less than the reconnection time.
    public var backoffLimit = Duration.seconds(60)

    /// How many times in a row connecting may fail before the stream ends with that error; 10 by default, `nil` for no
    /// limit. A response that is accepted starts the count anew.
    public var failureLimit: Int? = 10

    /// Whether it connects again at all when the stream ends or breaks; `true` by default.
    public var reconnects = true

    /// The most bytes of an event's data, and of each line; 16 MiB by default. It stops a server that never ends an event
    /// from filling the memory.
    public var eventLimit = ByteCount.mebibytes(16)

    /// Waits before connecting again; set by tests.
    package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    /// The defaults.
    public init() {}
}

/// A pass over a stream of events while it runs; it ends with its last reference.
final class EventStreamRun: Sendable {
    /// Where the events come out.
    let relay: EventRelay<ServerSentEvent>
    private let task: Task<Void, Never>

    init(_ reader: EventStreamReader) {
        let relay = EventRelay<ServerSentEvent>()
        self.relay = relay
        // A stream is read within the closure of its call, and the caller's loop is outside of it: hence a task of its own.
        task = Task { await reader.read(into: relay) }
    }

    deinit {
        relay.cancel()
        task.cancel()
    }
}

/// Hands elements from the task that reads a stream to the one that asks for them, one at a time.
///
/// The reader waits while the element before has not been taken, so that no more than one is ever kept, and the peer is
/// held by the TCP window. Either side can end it.
final class EventRelay<Element: Sendable>: Sendable {
    private enum Ending {
        case finished
        case failed(any Error)
        /// The taking side has gone.
        case cancelled
    }

    private struct State {
        var element: Element?
        var ending: Ending?
        var taker: Waiter<Void>?
        var giver: Waiter<Void>?
    }

    /// Guards the slot: both sides.
    private let state = Mutex(State())

    /// Offers an element, once there is room for it.
    /// - Returns: Whether it can still be taken; if not, nobody will ask for more.
    func give(_ element: Element) async -> Bool {
        while true {
            let (isGiven, isOver, taker) = state.withLock { state -> (Bool, Bool, Waiter<Void>?) in
                if state.ending != nil { return (false, true, nil) }
                guard state.element == nil else { return (false, false, nil) }
                state.element = element
                return (true, false, state.taker.take())
            }
            taker?.resume(returning: ())
            if isGiven || isOver { return isGiven }
            await suspend { (waiter: Waiter<Void>) in
                let isLate = state.withLock { state in
                    if state.element == nil || state.ending != nil { return true }
                    state.giver = waiter
                    return false
                }
                if isLate { waiter.resume(returning: ()) }
            }
        }
    }

    /// Ends it from the reader's side; what was given before is still taken.
    func finish(throwing error: (any Error)? = nil) { end(error.map { .failed($0) } ?? .finished) }

    /// Ends it from the taker's side: nothing more is handed out.
    func cancel() { end(.cancelled) }

    /// The next element; `nil` when it was finished.
    /// - Throws: What the reader failed with; `CancellationError` once the task is cancelled.
    func take() async throws -> Element? {
        try await withTaskCancellationHandler {
            while true {
                let (result, giver) = state.withLock {
                    state -> (Result<Element?, any Error>?, Waiter<Void>?) in
                    if case .cancelled = state.ending { return (.failure(CancellationError()), nil) }
                    if let element = state.element.take() { return (.success(element), state.giver.take()) }
                    switch state.ending {
                    case .failed(let error):
                        // An error is thrown once, as sequences do.
                        state.ending = .finished
                        return (.failure(error), nil)
                    case .finished: return (.success(nil), nil)
                    default: return (nil, nil)
                    }
                }
                giver?.resume(returning: ())
                if let result { return try result.get() }
                await suspend { (waiter: Waiter<Void>) in
                    let isLate = state.withLock { state in
                        if state.element != nil || state.ending != nil { return true }
                        state.taker = waiter
                        return false
                    }
                    if isLate { waiter.resume(returning: ()) }
                }
            }
        } onCancel: {
            cancel()
        }
    }

    private func end(_ ending: Ending) {
        let waiters = state.withLock { state -> [Waiter<Void>?] in
            if case .cancelled = ending {
                // Whoever cancels wants nothing more, also of what was there.
                state.element = nil
                state.ending = .cancelled
            } else if state.ending == nil {
                state.ending = ending
            }
            return [state.taker.take(), state.giver.take()]
        }
        for waiter in waiters { waiter?.resume(returning: ()) }
    }
}

extension HTTPSession {
    /// The server-sent events of a URL, connected again when the stream ends or breaks.
    ///
    /// Nothing happens before the first event is asked for; a string that is no URL is an error then.
    /// `Accept: text/event-stream` and `Cache-Control: no-store` are sent unless the fields given say otherwise.
    public nonisolated func events(
        from url: String, headers: HTTPFields = HTTPFields(),
        options: EventStreamOptions = EventStreamOptions()
    ) -> EventStream {
        EventStream {
            let request = try HTTPRequest(method: .get, url: url, headerFields: headers)
            return self.reader(request, .none, options)
        }
    }

    /// The server-sent events that answer a request, such as a POST; else as ``events(from:headers:options:)``.
    /// - Parameter body: Sent with each connection: one that can be read only once allows but one.
    public nonisolated func events(
        for request: HTTPRequest, body: HTTPBody = .none, options: EventStreamOptions = EventStreamOptions()
    ) -> EventStream { EventStream { self.reader(request, body, options) } }

    private nonisolated func reader(
        _ request: HTTPRequest, _ body: HTTPBody, _ options: EventStreamOptions
    ) -> EventStreamReader {
        var request = request
        if request.headerFields[.accept] == nil { request.headerFields[.accept] = "text/event-stream" }
        if request.headerFields[.cacheControl] == nil { request.headerFields[.cacheControl] = "no-store" }
        // Whether to connect again is decided by what went wrong, and not by what a service calls it.
        let session = configuration.errorMapper == nil ? self : with { $0.errorMapper = nil }
        return EventStreamReader(session: session, request: request, body: body, options: options)
    }
}
