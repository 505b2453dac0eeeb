/// An event of a session or of one of its calls.
///
/// An event contains no header fields, body or credentials. Its URLs have no user, password, query or fragment.
public struct SessionEvent: Sendable {
    /// The kind of an event. More kinds may be added: a `switch` needs a default.
    public enum Kind: Sendable {
        /// A call was started.
        case started(method: HTTPRequest.Method, url: String)
        /// A task was paused.
        case suspended
        /// A task was resumed after a pause.
        case resumed
        /// A connection was opened for a request.
        case connectionOpened(ConnectionInformation)
        /// A request uses a connection that an earlier exchange used.
        case connectionReused(ConnectionInformation)
        /// A request was sent: its head, and the part of its body that the connection accepted immediately. The number
        /// of the first attempt is 1. Requests after redirects, challenges and retries are counted, too.
        case requestSent(attempt: Int)
        /// An interim response (1xx, also 100) was received: see ``RequestOptions/onInterimResponse``.
        case interimResponseReceived(status: Int)
        /// A redirect is followed.
        case redirected(status: Int, to: String)
        /// Credentials are sent in reply to a challenge.
        case challenged(status: Int)
        /// The request is retried after the delay, because of a status or a failure.
        case retrying(status: Int?, error: HTTPError.Code?, delay: Duration)
        /// The final head of the response was received; another event follows if the request is sent again because the
        /// body was cut or corrupt. The length of the body is `nil` if it is not known. The source is the network, a
        /// middleware or a feature, such as `.cache` and `.validatedCache` (after a 304).
        case responseReceived(status: Int, byteCount: UInt64?, source: HTTPExchange.Source)
        /// The call ended with a response.
        case finished(HTTPMetrics)
        /// The call ended with an error; the code is `nil` if it is not an ``HTTPError``.
        case failed(HTTPError.Code?)
        /// The call was cancelled.
        case cancelled
        /// The subscriber was too slow: this number of earlier events was dropped.
        case dropped(Int)
        /// The session was invalidated, and its last call has ended. No other event follows.
        case sessionInvalidated
    }

    /// The kind of the event.
    public let kind: Kind
    /// The number of the call, as in ``HTTPExchange/callNumber``; `nil` for an event of the session.
    public let call: UInt64?
    /// The time since the call started; zero for an event of the session.
    public let elapsed: Duration

    init(_ kind: Kind, call: UInt64? = nil, elapsed: Duration = .zero) {
        (self.kind, self.call, self.elapsed) = (kind, call, elapsed)
    }
}

extension SessionEvent: CustomStringConvertible {
    /// The number of the call and the event, in one line.
    public var description: String { call.map { "call \($0): \(text)" } ?? text }

    private var text: String {
        switch kind {
        case .started(let method, let url): "started \(method.rawValue) \(url)"
        case .suspended: "suspended"
        case .resumed: "resumed"
        case .connectionOpened: "connection opened"
        case .connectionReused: "connection reused"
        case .requestSent(let attempt): "request sent, attempt \(attempt)"
        case .interimResponseReceived(let status): "interim response \(status)"
        case .redirected(let status, let url): "redirected by \(status) to \(url)"
        case .challenged(let status): "challenged by \(status)"
        case .retrying(let status, let error, let delay):
            "retrying in \(delay) after \(status.map(String.init) ?? error?.rawValue ?? "a response")"
        case .responseReceived(let status, let count, let source):
            "response \(status), \(count.map(String.init) ?? "?") bytes, source \(source)"
        case .finished(let metrics): "finished after \(metrics.total)"
        case .failed(let code): "failed: \(code?.rawValue ?? "another error")"
        case .cancelled: "cancelled"
        case .dropped(let count): "\(count) events dropped"
        case .sessionInvalidated: "session invalidated"
        }
    }
}

extension SessionEvent: Encodable {
    /// Encodes the event for logs as an object: `event`, the name of its kind; `call` and `elapsed`, for an event of a
    /// call; and the values of the kind by their names, or `connection`, `metrics` and `count`. Durations are in
    /// seconds, and values that are not known are omitted.
    public func encode(to encoder: any Encoder) throws {
        let subject: JSONMembers = ["call": call, "elapsed": call.map { _ in elapsed }]
        try (members + subject).json.removingNulls().encode(to: encoder)
    }

    private var members: JSONMembers {
        switch kind {
        case .started(let method, let url): ["event": "started", "method": method.rawValue, "url": url]
        case .suspended: ["event": "suspended"]
        case .resumed: ["event": "resumed"]
        case .connectionOpened(let connection): ["event": "connectionOpened", "connection": connection.members]
        case .connectionReused(let connection): ["event": "connectionReused", "connection": connection.members]
        case .requestSent(let attempt): ["event": "requestSent", "attempt": attempt]
        case .interimResponseReceived(let status): ["event": "interimResponseReceived", "status": status]
        case .redirected(let status, let url): ["event": "redirected", "status": status, "to": url]
        case .challenged(let status): ["event": "challenged", "status": status]
        case .retrying(let status, let error, let delay):
            ["event": "retrying", "status": status, "error": error?.rawValue, "delay": delay]
        case .responseReceived(let status, let count, let source):
            ["event": "responseReceived", "status": status, "byteCount": count, "source": source.rawValue]
        case .finished(let metrics): ["event": "finished", "metrics": metrics.members]
        case .failed(let error): ["event": "failed", "error": error?.rawValue]
        case .cancelled: ["event": "cancelled"]
        case .dropped(let count): ["event": "dropped", "count": count]
        case .sessionInvalidated: ["event": "sessionInvalidated"]
        }
    }
}

extension HTTPURL {
    /// The URL without parts that may be secret: user, password, query and fragment.
    var bare: HTTPURL {
        HTTPURL(
            scheme: scheme, userInfo: nil, host: host, hostKind: hostKind, explicitPort: explicitPort, path: path,
            query: nil, fragment: nil)
    }
}

extension HTTPMetrics {
    /// The metrics, without the parts of the earlier requests' URLs that may be secret.
    var bare: HTTPMetrics {
        var bare = self
        for index in bare.hops.indices { bare.hops[index].url = bare.hops[index].url.bare }
        return bare
    }
}

/// The events of a session as an `AsyncSequence`: one subscription with its own buffer.
///
/// A slow subscriber delays no call: when its buffer is full, the oldest event is dropped, and an event
/// ``SessionEvent/Kind/dropped(_:)`` reports the number of dropped ones. The sequence does not retain the session. It
/// ends after ``SessionEvent/Kind/sessionInvalidated``, or when the session is released.
public typealias SessionEvents = EventSequence<SessionEvent>

extension EventSequence<SessionEvent> {
    /// The default number of events in the buffer: 256.
    public static var defaultBufferCount: Int { 256 }
}

/// The number of running calls of a session as an `AsyncSequence` of its latest values, for an activity indicator.
///
/// The first value is delivered immediately; a slow consumer misses intermediate ones. Any number of tasks may iterate.
/// The sequence ends after the last call of an invalidated session, or when the session, which it does not retain, is
/// released.
public typealias SessionActivity = LatestValues<Int>

extension HTTPSession {
    /// The events of this session and its views from now on, with a buffer of `defaultBufferCount` events. Each access
    /// creates a new subscription.
    ///
    /// Of calls that are already running, only pauses are reported, unless the session has a delegate or middleware.
    public nonisolated var events: SessionEvents { events(buffering: SessionEvents.defaultBufferCount) }

    /// Returns the events, like ``events``, with the given buffer size.
    /// - Parameter count: The number of events that are buffered for a slow subscriber; at least 1.
    public nonisolated func events(buffering count: Int) -> SessionEvents {
        let subscription = EventSubscription(hub: core.events, limit: count) { SessionEvent(.dropped($0)) }
        return SessionEvents { await subscription.queue.next() }
    }

    /// The number of running calls of this session and its views; only the latest value is delivered.
    public nonisolated var activity: SessionActivity {
        let calls = core.calls
        // The version of a number is the number plus 1. Version 0 means that no number was delivered.
        return LatestValues { seen in
            await calls.runningCount(otherThan: seen == 0 ? nil : Int(seen - 1)).map { (UInt64($0) + 1, $0) }
        } latest: {
            calls.runningCount
        }
    }
}
