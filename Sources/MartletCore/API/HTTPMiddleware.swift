/// Code of the program that handles each request of a session, and each response before the caller receives it.
///
/// A middleware may change the request's head and body, respond without the network, or call `next` more than once. It
/// may also change the response's head and body. Examples are signing, compression, recording, and refreshing tokens:
///
///     struct Signed: HTTPMiddleware {
///         let key: Key
///
///         func handle(
///             _ request: HTTPCall.Request, context: CallContext, next: HTTPNext
///         ) async throws -> HTTPCall.Response {
///             var request = request
///             request.headers[.authorization] = key.signature(of: request.head)
///             return try await next(request)
///         }
///     }
///
/// A middleware runs after redirects and retries, and before authentication, cookies and the cache, or after them in
/// ``SessionConfiguration/networkMiddleware``. It is called again for each request that a redirect or a retry causes,
/// and a response that it makes may be followed by a redirect or a retry. Only network middleware is called again for a
/// request that is repeated with credentials.
///
/// A middleware runs in its own task. It may make calls on the same session, also to the same host: while it runs, the
/// connection that its call holds does not count towards the pool's limits. When the call is cancelled, the session is
/// invalidated or the total timeout expires, that task is cancelled, and the call ends without waiting for the task. If
/// the middleware is sending a request at the total timeout, the call waits up to one second for the error of that
/// request, which reports whether it was sent. If the middleware throws an error, the call throws it.
public protocol HTTPMiddleware: Sendable {
    /// Handles a request and returns a response.
    /// - Parameters:
    ///   - request: The request, without the fields added later: cookies, credentials and the session's defaults.
    ///   - context: The current state of the call.
    ///   - next: Sends a request, and returns the response when its head has arrived.
    /// - Returns: The response that the caller receives, unless a redirect or a retry follows.
    func handle(_ request: HTTPCall.Request, context: CallContext, next: HTTPNext) async throws -> HTTPCall.Response

    /// Observes an event of the call. The call waits until this returns, so it must return quickly.
    ///
    /// The events are those of ``HTTPSession/events``, except those of the session itself and of tasks that pause.
    func observe(_ event: SessionEvent, in context: CallContext)
}

extension HTTPMiddleware {
    /// Ignores the event.
    public func observe(_ event: SessionEvent, in context: CallContext) {}
}

/// A middleware that is a closure:
///
///     configuration.middleware = [
///         ClosureMiddleware { request, _, next in
///             var request = request
///             request.headers["X-Trace"] = trace
///             return try await next(request)
///         }
///     ]
public struct ClosureMiddleware: HTTPMiddleware {
    private let body: @Sendable (HTTPCall.Request, CallContext, HTTPNext) async throws -> HTTPCall.Response

    /// Creates a middleware. The closure receives the arguments of ``HTTPMiddleware/handle(_:context:next:)``.
    public init(
        _ body: @escaping @Sendable (HTTPCall.Request, CallContext, HTTPNext) async throws -> HTTPCall.Response
    ) { self.body = body }

    /// Returns the response that the closure returns.
    public func handle(_ request: HTTPCall.Request, context: CallContext, next: HTTPNext) async throws
        -> HTTPCall.Response
    { try await body(request, context, next) }
}

/// A function that sends a request to the stages after a middleware.
///
/// It may be called repeatedly, one call at a time, until the middleware returns. Each call first releases the
/// previous response, whose body can then no longer be read.
public struct HTTPNext: Sendable {
    let send: @Sendable (HTTPCall.Request) async throws -> HTTPCall.Response

    /// Sends a request, and returns the response when its head has arrived. A body with a known length of at most 64
    /// KiB is awaited for up to 50 ms: once it has arrived, its connection is free while the middleware runs.
    ///
    /// A request for another origin is sent without the credentials of the call.
    /// - Throws: An ``HTTPError``, such as `.invalidHeader` for a field that cannot be sent and `.bodyNotReplayable`
    ///   for a body that was already read; `CancellationError`.
    public func callAsFunction(_ request: HTTPCall.Request) async throws -> HTTPCall.Response {
        try await send(request)
    }
}

/// The state of a call when a middleware or the delegate is called.
public struct CallContext: Sendable {
    /// The number of the call, as in ``HTTPExchange/callNumber``.
    public let number: UInt64
    /// The number of requests that the call has sent so far.
    public let sentCount: Int
    /// The number of redirects that were followed.
    public let redirectCount: Int
    /// The time since the call started.
    public let elapsed: Duration
}
