import MartletCredentials
import MartletURL
package import MartletWire

/// A response as its bytes were, with its body still to be read: what programs show that speak for the wire.
package struct DetailedResponse: Sendable {
    let answer: Answer

    /// The body, as it arrives.
    package let body: ResponseBody

    /// The final head, byte by byte.
    package var head: ResponseHead { answer.head }

    /// The interim heads that came first, byte by byte.
    package var interim: [ResponseHead] { answer.interim }

    /// Fields behind a chunked body, once it has been read to its end.
    package var trailers: FieldBlock? { answer.trailers }

    /// What has happened so far.
    package var metrics: HTTPMetrics { answer.metrics }

    /// The URL that answered, without user info.
    package var url: HTTPURL { answer.call.url }

    /// The method that was answered, which redirects may have changed.
    package var method: HTTPRequest.Method { answer.call.method }

    /// Where the answer came from.
    package var source: HTTPExchange.Source { answer.source }

    /// What the cache did and why, as a member of `Cache-Status` (RFC 9211); `nil` without a cache.
    package var cacheStatus: String? { answer.provenance?.cacheStatus }

    /// Whether nothing but the cache might answer, and it had nothing: the head is a 504 of its own making
    /// (RFC 9111 §5.2.1.7). A stored response of that status is none of these.
    package var isUnsatisfied: Bool { answer.provenance?.isUnsatisfied ?? false }

    /// The exchange so far, with the body that was collected of it.
    package func exchange(with body: [UInt8]) -> HTTPExchange { answer.exchange(with: body) }
}

extension HTTPSession {
    /// As `stream`, with all that is known of the response. The URL is used as it is parsed, dot segments included.
    ///
    /// - Throws: An ``HTTPError``; `CancellationError`; what the closure throws, as it is.
    package nonisolated func streamDetailed<Result>(
        _ request: HTTPRequest, to url: HTTPURL, body: HTTPBody = .none,
        options: RequestOptions = RequestOptions(),
        control: TransferControl = TransferControl(), _ handle: (DetailedResponse) async throws -> Result
    ) async throws -> Result {
        let call = try Call(request: request, url: url, body: body, options: options, settings: settings)
        return try await run(call, control) { answer in
            let reader = BodyReader(answer, control: control, byteLimit: options.bodyLimit?.bytes)
            let body = ResponseBody(reader: reader, announcedByteCount: answer.announcedByteCount)
            return try await UserCode.handle(control, core) {
                try await handle(DetailedResponse(answer: answer, body: body))
            }
        }
    }

    /// The head that a request would have on the wire, its last empty line included. Nothing is sent, but the body is
    /// opened as if it were: one that can be read only once is used up.
    package nonisolated func composedHead(
        _ request: HTTPRequest, to url: HTTPURL, body: HTTPBody = .none,
        options: RequestOptions = RequestOptions()
    ) async throws -> [UInt8] {
        let call = try Call(request: request, url: url, body: body, options: options, settings: settings)
        let composer = RequestComposer(call: call)
        return try composer.compose(try await composer.prepareBody()).head
    }
}

extension TransferControl {
    /// How far the request's body has gone.
    package var uploadProgress: ProgressSequence { ProgressSequence(state: upload ?? ProgressState()) }

    /// How far the response's body has come.
    package var downloadProgress: ProgressSequence { ProgressSequence(state: download ?? ProgressState()) }

    /// Bytes of the response's body that have come, from the network or from the cache, before any coding is undone.
    package var downloadedByteCount: UInt64 { download?.value.completedByteCount ?? 0 }

    /// Bytes of the request's body that were sent.
    package var uploadedByteCount: UInt64 { upload?.value.completedByteCount ?? 0 }
}

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
        /// A middleware sent another.
        case middleware
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
        error: HTTPError.Code? = nil, ended: Duration, delay: Duration = .zero
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
