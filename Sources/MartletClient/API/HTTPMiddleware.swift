/// A step of the program's own in every call of a session: it sees the request before it goes out, and the response before
/// the caller does.
///
/// A middleware may change the request's head and body, answer without the network, call `next` more than once, and change or
/// wrap the response's head and body. Signing, compressing, recording, caching and refreshing tokens need nothing else:
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
/// It stands behind redirects and retries, and before authentication, cookies and the cache. So it is asked again for each
/// request that a redirect or a retry leads to, and its response may be redirected or retried; a repetition for a challenge
/// is made with what it sent. The middleware of ``SessionConfiguration/middleware`` stands in the order of the list, the first
/// outermost.
///
/// It runs in a task of its own, without a place in the pool: it may make calls on the same session, to the same host as well.
/// When the call is cancelled, the session is invalidated or the total clock runs out, that task is cancelled, and the call
/// ends without waiting for it. What it throws is what the call throws.
public protocol HTTPMiddleware: Sendable {
    /// Answers a request.
    ///
    /// - Parameters:
    ///   - request: The request, without the fields that come later: cookies, credentials and the session's defaults.
    ///   - context: Where in the call this is.
    ///   - next: Sends a request on its way, and returns the response when its head has come.
    /// - Returns: The response that the caller gets, unless a redirect or a retry follows.
    func handle(
        _ request: HTTPCall.Request, context: CallContext, next: HTTPNext
    ) async throws -> HTTPCall.Response

    /// Sees what happens in the call, where it happens. The call waits for it, so it must neither block nor take long.
    ///
    /// The events are those of ``HTTPSession/events``, but for those of the session itself and of tasks that pause.
    func observe(_ event: SessionEvent, in context: CallContext)
}

extension HTTPMiddleware {
    /// Passes the request on, and the response back.
    public func handle(
        _ request: HTTPCall.Request, context: CallContext, next: HTTPNext
    ) async throws -> HTTPCall.Response {
        try await next(request)
    }

    /// Does nothing.
    public func observe(_ event: SessionEvent, in context: CallContext) {}
}

/// Sends a request on its way behind a middleware.
///
/// It may be called any number of times, one call at a time, until the middleware returns. A further call first releases the
/// response of the one before, whose body cannot be read any more then.
public struct HTTPNext: Sendable {
    let send: @Sendable (HTTPCall.Request) async throws -> HTTPCall.Response

    /// Sends a request, and returns the response when its head has come.
    ///
    /// A request for another origin is sent without the credentials of the call.
    /// - Throws: An ``HTTPError``, `.bodyNotReplayable` for a body that is gone among them; `CancellationError`.
    public func callAsFunction(_ request: HTTPCall.Request) async throws -> HTTPCall.Response {
        try await send(request)
    }
}

/// Where in a call a middleware is asked.
public struct CallContext: Sendable {
    /// The call's number, which differs from that of every other call of the process.
    public let number: UInt64
    /// The number of requests of the call that went out before.
    public let sentCount: Int
    /// The number of redirects that were followed.
    public let redirectCount: Int
    /// The time since the call began.
    public let elapsed: Duration
}

/// What middleware handles.
public enum HTTPCall {
    /// A request: head and body.
    public struct Request: Sendable {
        /// The head: method, address and fields.
        public var head: HTTPRequest
        /// The body.
        public var body: HTTPBody

        /// The head's fields.
        public var headers: HTTPFields {
            get { head.headerFields }
            set { head.headerFields = newValue }
        }

        /// A request.
        public init(_ head: HTTPRequest, body: HTTPBody = .none) {
            self.head = head
            self.body = body
        }
    }

    /// A response: head and body.
    public struct Response: Sendable {
        /// A body other than that of the network's answer.
        enum Replacement: Sendable {
            case bytes([UInt8])
            case source(any BodySource, length: UInt64?)
        }

        /// The head: status and fields.
        public var head: HTTPResponse
        /// The answer that `next` gave; `nil` for a response that was made.
        let answer: OpenAnswer?
        var replacement: Replacement?

        init(_ answer: OpenAnswer) {
            head = HeadConversion.response(answer.answer.head)
            self.answer = answer
        }

        /// A response without the network, whose body is bytes in memory.
        public init(_ head: HTTPResponse, body: some Sequence<UInt8> = []) {
            self.head = head
            answer = nil
            replacement = .bytes(Array(body))
        }

        /// The status.
        public var status: HTTPResponse.Status {
            get { head.status }
            set { head.status = newValue }
        }

        /// The head's fields.
        public var headers: HTTPFields {
            get { head.headerFields }
            set { head.headerFields = newValue }
        }

        /// The body that came from the network, with its content coding undone; `nil` for a response that was made.
        ///
        /// What is read of it here, the caller does not get. It can be read until the middleware returns or calls `next` again;
        /// and behind that by a body that wraps it.
        public var body: ResponseBody? { answer?.body }

        /// Gives the response a body of bytes in memory.
        public mutating func setBody(_ bytes: some Sequence<UInt8>) {
            replacement = .bytes(Array(bytes))
        }

        /// Gives the response a body that is read as the caller asks for it; it may wrap ``body``.
        ///
        /// When the call is cancelled or its total clock runs out, reading ends without waiting for the sequence.
        /// - Parameter length: The length in bytes, where it is known.
        public mutating func setBody<Pieces: AsyncSequence & Sendable>(
            _ pieces: Pieces, length: UInt64? = nil
        ) where Pieces.Element: Sequence<UInt8>, Pieces.AsyncIterator: SendableMetatype {
            replacement = .source(SequenceSource(pieces), length: length)
        }
    }
}
