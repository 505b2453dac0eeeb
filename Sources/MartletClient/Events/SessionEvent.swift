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
    public var description: String {
        call.map { "call \($0): \(text)" } ?? text
    }

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
            path: path,
            query: nil, fragment: nil)
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
