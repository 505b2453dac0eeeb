import MartletURL
public import MartletTransport

/// Something that happened in a session.
///
/// It holds no field, no body, no credentials; URLs are without user, password, query and fragment.
public struct SessionEvent: Sendable {
    /// What happened. More may be added: a `switch` needs a default.
    public enum Kind: Sendable {
        /// A call began.
        case started(method: HTTPRequest.Method, url: String)
        /// A task was paused.
        case suspended
        /// A task goes on after a pause.
        case resumed
        /// A connection was opened for a request.
        case connectionOpened(ConnectionInformation)
        /// A request has a connection that carried another exchange before.
        case connectionReused(ConnectionInformation)
        /// A request went out: its head, and as much of its body as the connection took at once. The first attempt is 1;
        /// repetitions of every kind count on.
        case requestSent(attempt: Int)
        /// A redirect is followed.
        case redirected(status: Int, to: String)
        /// A challenge is answered with credentials.
        case challenged(status: Int)
        /// The request is made again after the delay: after a status, or after a failure.
        case retrying(status: Int?, error: HTTPError.Code?, delay: Duration)
        /// The answer's head has come, and no further request follows; the length of the body is `nil` where it is not
        /// known yet.
        case responseReceived(status: Int, byteCount: UInt64?)
        /// The call ended with an answer.
        case finished(HTTPMetrics)
        /// The call ended with an error; the code is `nil` where it is no ``HTTPError``.
        case failed(HTTPError.Code?)
        /// The call was cancelled.
        case cancelled
        /// The subscriber was too slow: so many events, which came before those that follow, were dropped.
        case dropped(Int)
        /// The session was invalidated, and its last call has ended. Nothing follows.
        case sessionInvalidated
    }

    /// What happened.
    public let kind: Kind
    /// The number of the call it happened in, as in ``CallContext/number`` and ``HTTPTask/id``; `nil` where it happened to
    /// the session.
    public let call: UInt64?
    /// How long the call had lasted; zero where it happened to the session.
    public let elapsed: Duration

    init(_ kind: Kind, call: UInt64? = nil, elapsed: Duration = .zero) {
        self.kind = kind
        self.call = call
        self.elapsed = elapsed
    }
}

extension SessionEvent: CustomStringConvertible {
    /// The number of the call and what happened, in a line.
    public var description: String { call.map { "call \($0): \(text)" } ?? text }

    private var text: String {
        switch kind {
        case .started(let method, let url): "started \(method.rawValue) \(url)"
        case .suspended: "suspended"
        case .resumed: "resumed"
        case .connectionOpened: "connection opened"
        case .connectionReused: "connection reused"
        case .requestSent(let attempt): "request sent, attempt \(attempt)"
        case .redirected(let status, let url): "redirected by \(status) to \(url)"
        case .challenged(let status): "challenged by \(status)"
        case .retrying(let status, let error, let delay):
            "retrying in \(delay) after \(status.map(String.init) ?? error?.rawValue ?? "an answer")"
        case .responseReceived(let status, let count):
            "response \(status), \(count.map(String.init) ?? "?") bytes"
        case .finished(let metrics): "finished after \(metrics.total)"
        case .failed(let code): "failed: \(code?.rawValue ?? "another error")"
        case .cancelled: "cancelled"
        case .dropped(let count): "\(count) events dropped"
        case .sessionInvalidated: "session invalidated"
        }
    }
}

extension HTTPURL {
    /// Where it leads, without what may be secret in it: user, password, query and fragment.
    var bare: HTTPURL {
        HTTPURL(
            scheme: scheme, userInfo: nil, host: host, hostKind: hostKind, explicitPort: explicitPort,
            path: path, query: nil, fragment: nil)
    }
}

extension HTTPMetrics {
    /// The same, without what may be secret in the addresses of earlier requests.
    var bare: HTTPMetrics {
        var bare = self
        for index in bare.hops.indices { bare.hops[index].url = bare.hops[index].url.bare }
        return bare
    }
}

/// What happens in a session, as an `AsyncSequence`: one subscription, with a buffer of its own.
///
/// It begins where the sequence is made, and ends when the last copy of it and the last of its iterators are gone, which
/// leaves nothing behind. A slow subscriber holds nobody up: when its buffer is full the oldest event is dropped, and an
/// event ``SessionEvent/Kind/dropped(_:)`` says how many were, before those that follow. The sequence ends behind
/// ``SessionEvent/Kind/sessionInvalidated``, or when the session is gone, which it does not keep; what is buffered then is
/// still given. Tasks that iterate one sequence share its events: each goes to one of them.
public struct SessionEvents: AsyncSequence, Sendable {
    /// What iteration gives.
    public typealias Element = SessionEvent
    /// Iteration does not fail.
    public typealias Failure = Never

    /// How many events are buffered unless said otherwise: 256.
    public static let defaultBufferCount = 256

    private let subscription: EventSubscription<SessionEvent>

    init(hub: EventHub<SessionEvent>, limit: Int) {
        subscription = EventSubscription(hub: hub, limit: limit) { SessionEvent(.dropped($0)) }
    }

    /// One pass over the events.
    public struct Iterator: AsyncIteratorProtocol {
        let subscription: EventSubscription<SessionEvent>

        /// The next event; `nil` behind the last one, or when the task is cancelled.
        public mutating func next() async -> SessionEvent? { await subscription.queue.next() }

        /// The next event; `nil` behind the last one, or when the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> SessionEvent? {
            await subscription.queue.next()
        }
    }

    /// A pass that goes on where the others are.
    public func makeAsyncIterator() -> Iterator { Iterator(subscription: subscription) }
}

/// A subscriber's hold on its queue: with the last reference to it the hub forgets the queue.
package final class EventSubscription<Event: Sendable>: Sendable {
    package let queue: EventQueue<Event>
    private let hub: EventHub<Event>
    private let number: UInt64

    package init(hub: EventHub<Event>, limit: Int, dropped: @escaping @Sendable (Int) -> Event) {
        queue = EventQueue(limit: limit, dropped: dropped)
        self.hub = hub
        number = hub.add(queue)
    }

    deinit { hub.remove(number) }
}

/// How many calls of a session run, as an `AsyncSequence` of newest values: what an activity indicator shows.
///
/// The first value comes at once; a slow consumer skips what it missed and is never queued for. It ends when the session
/// was invalidated and its last call has ended, or when the session is gone, which it does not keep. Any number of tasks
/// may iterate.
public struct SessionActivity: AsyncSequence, Sendable {
    /// What iteration gives.
    public typealias Element = Int
    /// Iteration does not fail.
    public typealias Failure = Never

    let registry: CallRegistry

    /// One pass over the values.
    public struct Iterator: AsyncIteratorProtocol {
        let registry: CallRegistry
        var seen: Int?

        /// The newest number, once it is another than the one before; `nil` at the end, or when cancelled.
        public mutating func next() async -> Int? {
            guard let count = await registry.runningCount(otherThan: seen) else { return nil }
            seen = count
            return count
        }

        /// The newest number, once it is another than the one before; `nil` at the end, or when cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Int? { await next() }
    }

    /// A pass that begins with the present number.
    public func makeAsyncIterator() -> Iterator { Iterator(registry: registry) }
}

extension HTTPSession {
    /// What happens in this session and its views from now on, up to ``SessionEvents/defaultBufferCount`` events ahead of
    /// its reader: a subscription of its own each time.
    ///
    /// Calls that run already are not told of, but for their pause. While nobody is subscribed there are no events, and
    /// they cost nothing.
    public nonisolated var events: SessionEvents { events(buffering: SessionEvents.defaultBufferCount) }

    /// The same as ``events`` with another buffer.
    /// - Parameter count: How many events are kept for a slow subscriber; at least 1.
    public nonisolated func events(buffering count: Int) -> SessionEvents {
        SessionEvents(hub: core.events, limit: count)
    }

    /// How many subscribers of ``events`` there are.
    package nonisolated var eventSubscriberCount: Int { core.events.count }

    /// How many calls of this session and its views run, as newest values.
    public nonisolated var activity: SessionActivity { SessionActivity(registry: core.calls) }

    /// The tasks of this session and its views that have not ended, in the order they were made.
    ///
    /// Calls that are awaited, as ``send(_:body:options:)``, are no tasks; ``runningCallCount`` counts both.
    public var tasks: [HTTPTask] { core.tasks.all }

    /// The tasks of a kind that have not ended, in the order they were made.
    public func tasks(of kind: HTTPTask.Kind) -> [HTTPTask] { core.tasks.all.filter { $0.kind == kind } }
}
