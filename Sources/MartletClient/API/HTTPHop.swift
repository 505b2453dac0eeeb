/// A request of a call that was followed by another: one that was redirected, challenged, or failed and was made again.
public struct HTTPHop: Hashable, Sendable {
    /// Why another followed.
    public enum Reason: String, Hashable, Sendable {
        /// The server named another place.
        case redirect
        /// The server, or the proxy, asked who is calling.
        case challenge
        /// It failed, or was refused for the time being.
        case retry
        /// An interceptor asked for it.
        case interceptor
    }

    /// Why another followed.
    public var reason: Reason
    /// The method.
    public var method: HTTPRequest.Method
    /// Where it went, without user info.
    public var url: HTTPURL
    /// The status it was answered with; `nil` where it failed.
    public var status: Int?
    /// How it failed; `nil` where it was answered.
    public var error: HTTPError.Code?
    /// From the call's start to its end.
    public var ended: Duration
    /// How long was waited before the next.
    public var delay: Duration

    /// A request that was followed by another.
    public init(
        reason: Reason, method: HTTPRequest.Method, url: HTTPURL, status: Int? = nil,
        error: HTTPError.Code? = nil,
        ended: Duration, delay: Duration = .zero
    ) {
        self.reason = reason
        self.method = method
        self.url = url
        self.status = status
        self.error = error
        self.ended = ended
        self.delay = delay
    }
}
