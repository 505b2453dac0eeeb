/// Changes requests before they go out, and decides about sending them again: signatures, tracing fields, rules of one's own.
///
/// Every function has a default that does nothing. The call waits for each in turn, in the order of
/// ``SessionConfiguration/interceptors``; what they throw is what the call throws. They may make calls of their own, on the
/// same session and to the same host as well.
///
/// The asynchronous functions run in tasks of their own. When the call is cancelled, the session is invalidated or the
/// total clock runs out, the task is cancelled, and the call ends without waiting for it.
public protocol HTTPInterceptor: Sendable {
    /// The request to send in place of this one: asked before each that goes out, so also before those that follow a redirect,
    /// a challenge or a failure.
    ///
    /// Its address may differ in path and query. A request for another origin is sent without the credentials and cookies of
    /// the first one.
    func adapt(_ request: HTTPRequest, in context: CallContext) async throws -> HTTPRequest

    /// Whether to send once more, after an answer or a failure that the call would end with; asked for as long as the answer
    /// is another one than ``HTTPRetryVerdict/proceed``, up to ``CallContext/interceptorRetryLimit`` times in a call.
    ///
    /// The body must be replayable, or there is no more to decide.
    func verdict(on outcome: HTTPCallOutcome, in context: CallContext) async throws -> HTTPRetryVerdict

    /// Sees what happens in the call, where it happens: the call waits for it, so it must neither block nor take long.
    ///
    /// The events are those of ``HTTPSession/events``, but for those of the session itself and of tasks that pause.
    func observe(_ event: SessionEvent, in context: CallContext)
}

extension HTTPInterceptor {
    /// The request as it is.
    public func adapt(_ request: HTTPRequest, in context: CallContext) async throws -> HTTPRequest { request }

    /// Nothing more.
    public func verdict(on outcome: HTTPCallOutcome, in context: CallContext) async throws -> HTTPRetryVerdict
    {
        .proceed
    }

    /// Nothing.
    public func observe(_ event: SessionEvent, in context: CallContext) {}
}

/// Where in a call an interceptor is asked.
public struct CallContext: Sendable {
    /// How many times interceptors can have a call sent again: 10.
    public static let interceptorRetryLimit = 10

    /// The call's number, which differs from that of every other call of the process.
    public let number: UInt64
    /// How many requests of the call went out before.
    public let sentCount: Int
    /// How many redirects were followed.
    public let redirectCount: Int
    /// How long the call has taken so far.
    public let elapsed: Duration
}

/// What a call would end with.
public enum HTTPCallOutcome: Sendable {
    /// An answer, whose body has not been read.
    case response(HTTPResponse)
    /// A failure.
    case failure(HTTPError)
}

/// What an interceptor says to it.
public enum HTTPRetryVerdict: Hashable, Sendable {
    /// Let it be.
    case proceed
    /// Send the request again after a while, within the call's total clock.
    case again(after: Duration = .zero)
}
