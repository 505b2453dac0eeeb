import Synchronization

/// A call whose settings are resolved: URL, proxy, timeouts and header fields. It has not been sent.
///
/// A class, because every stage holds it, and its many fields would be copied each time.
package final class Call: Sendable {
    /// The number of the call, unique in the process. All requests of the call have the same number.
    package let number: UInt64
    package let method: HTTPRequest.Method
    /// The header fields that the caller gave.
    package let fields: HTTPFields
    /// The complete request, if the caller gave one.
    package let givenRequest: HTTPRequest?
    /// The URL of the call, without user info.
    package let url: HTTPURL
    package let body: HTTPBody
    /// The settings that override those of the session.
    package let options: RequestOptions
    /// The timeouts in force.
    package let timeouts: Timeouts
    package let start: MonotonicTime
    package let settings: SessionSettings
    /// The proxy of the call; `nil` for none.
    package let proxy: ProxyServer?
    /// Whether the request is forwarded by the proxy, rather than sent through a tunnel.
    package let isForwarded: Bool
    /// The user name and password from the URL, for its origin.
    package let urlCredentials: Credentials?
    /// The fields that stages add to the request; `nil` if they add none.
    package let supplement: RequestAdditions?
    /// The earlier requests of the call.
    let hops: [HTTPHop]
    /// The emitter of the events of the call; `nil` if nothing receives them.
    package let observer: CallEventEmitter?
    private let acceptsContentCoding: Bool
    /// Whether content codings are decoded: Martlet requested them, or the caller did and wants them decoded.
    package let decodesContentCoding: Bool
    /// The header fields that the request is sent with.
    let sent: SentFields

    package init(
        _ method: HTTPRequest.Method, _ fields: HTTPFields, url: HTTPURL, body: HTTPBody, options: RequestOptions,
        settings: SessionSettings, givenRequest: HTTPRequest? = nil, following former: Call? = nil
    ) throws(HTTPError) {
        number = former?.number ?? CallNumber.next()
        start = former?.start ?? MonotonicTime.now()
        guard method != .connect else {
            throw HTTPError(
                .invalidRequest, phase: .preparing,
                message: "CONNECT opens tunnels through proxies and is not a request", method: method, url: url)
        }
        if let error = settings.headerError { throw error }
        var givenRequest = givenRequest
        let given = url
        let url = settings.effective(given, options)
        if url != given {
            givenRequest?.scheme = url.scheme.rawValue
            givenRequest?.authority = url.hostFieldValue
        }
        if options.hasTrailers { _ = try options.trailers.checked(url) }
        let address = url.withoutUserInfo
        if settings.isWithoutProxies, options.proxy == nil {
            // Most calls have no proxy.
            (proxy, isForwarded) = (nil, false)
        } else {
            proxy = try settings.proxy(for: address, options.proxy, tunnels: options.acceptsUpgrade) {
                givenRequest ?? HTTPRequest(method: method, url: address, headers: fields)
            }
            isForwarded = proxy?.forwards(isSecure: url.scheme == .https) ?? false
        }
        acceptsContentCoding = Call.acceptsContentCoding(fields, options, settings)
        let isDemanded = options.decompresses == true && options.returnsRawBody != true
        decodesContentCoding = acceptsContentCoding || (isDemanded && fields[.range] == nil)
        timeouts = options.timeouts.merged(over: settings.timeouts)
        urlCredentials = url.userInfo == nil ? nil : .basic(user: url.user ?? "", password: url.password ?? "")
        if let key = options.idempotencyKey {
            self.fields = try key.added(to: fields)
            self.givenRequest = nil
        } else {
            (self.fields, self.givenRequest) = (fields, givenRequest)
        }
        self.method = method
        self.url = address
        self.body = body.encoded(by: settings.configuration.encoder)
        (self.options, self.settings) = (options, settings)
        supplement = nil
        hops = []
        observer = nil
        sent = settings.sentFields(
            self.fields, options, acceptsContentCoding: acceptsContentCoding, hidesProxyAuthorization: !isForwarded, nil
        )
    }

    convenience init(
        request: HTTPRequest, url: HTTPURL, body: HTTPBody, options: RequestOptions, settings: SessionSettings
    ) throws(HTTPError) {
        try self.init(
            request.method, request.headerFields, url: url, body: body, options: options, settings: settings,
            givenRequest: request)
    }

    /// Creates the same call with other additions, another body or other timeouts.
    private init(
        _ call: Call, supplement: RequestAdditions?, hops: [HTTPHop], observer: CallEventEmitter?,
        body: HTTPBody? = nil, options: RequestOptions? = nil, timeouts: Timeouts? = nil
    ) {
        (number, method, fields, givenRequest) = (call.number, call.method, call.fields, call.givenRequest)
        (url, self.options, start, settings) = (call.url, options ?? call.options, call.start, call.settings)
        (proxy, isForwarded, urlCredentials) = (call.proxy, call.isForwarded, call.urlCredentials)
        self.body = body?.encoded(by: call.settings.configuration.encoder) ?? call.body
        self.timeouts = timeouts ?? call.timeouts
        (self.supplement, self.hops, self.observer) = (supplement, hops, observer)
        (acceptsContentCoding, decodesContentCoding) = (call.acceptsContentCoding, call.decodesContentCoding)
        let former = call.supplement
        if supplement?.cookies == former?.cookies, supplement?.authorization == former?.authorization {
            sent = call.sent
        } else {
            sent = settings.sentFields(
                fields, self.options, acceptsContentCoding: acceptsContentCoding, hidesProxyAuthorization: !isForwarded,
                supplement)
        }
    }

    private static func acceptsContentCoding(
        _ fields: HTTPFields, _ options: RequestOptions, _ settings: SessionSettings
    ) -> Bool {
        guard options.returnsRawBody != true, options.decompresses ?? settings.configuration.decompressesResponses,
            !settings.defaultsNameAcceptEncoding
        else { return false }
        return (fields.isEmpty || fields[.acceptEncoding] == nil && fields[.range] == nil)
            && !options.omittedFields.contains(.acceptEncoding)
    }

    // MARK: The request

    /// The header fields that the request is sent with, except `Host` and the fields of the cache and the body.
    ///
    /// The encoder, the keys of the cache, `Vary` and HAR logs use these fields.
    package var sentFields: FieldBlock { sent.block }

    /// The target of the request line: path and query, or `*` for the server as a whole. For a forwarding proxy it is
    /// the whole URL; without a path for `*`, so that the last proxy sends `*` to the server (RFC 9112 §3.2.4).
    var requestTarget: String {
        guard isForwarded else { return serverTarget }
        return isAsteriskForm ? "\(url.scheme)://\(url.hostFieldValue)" : url.absoluteForm
    }

    /// The target of the request line that the server receives.
    var serverTarget: String { isAsteriskForm ? "*" : url.requestTarget }

    private var isAsteriskForm: Bool { givenRequest.map { Call.isAsteriskForm($0) } ?? false }

    /// Whether a request is `OPTIONS *`, which is for the server as a whole and not for one of its resources.
    package static func isAsteriskForm(_ request: HTTPRequest) -> Bool {
        request.path == "*" && request.method == .options
    }

    /// The request as middleware and delegates receive it.
    package var publicRequest: HTTPRequest { givenRequest ?? HTTPRequest(method: method, url: url, headers: fields) }

    /// The end of the total timeout.
    package var totalDeadline: MonotonicTime { start.deadline(after: timeouts.total) }

    /// The other end of the connection: the server, or the proxy that forwards the request.
    var destination: Destination {
        if isForwarded, let proxy { return proxy.forwardingDestination }
        return Destination(isSecure: url.scheme == .https, host: url.host, port: url.port)
    }

    /// Whether it is harmless to send the request twice: by its method, its `Idempotency-Key`, or the caller's option.
    var isIdempotent: Bool {
        method.isIdempotent || options.allowsResendingNonIdempotentMethods == true
            || fields.contains(HTTPField.Name.idempotencyKey)
    }

    /// Whether the request may be sent again if no byte of a response was received.
    var maySendAgain: Bool { isIdempotent && body.replay != .once }

    /// Whether the request is sent again after its reused connection was closed (RFC 9110 §9.2.2, RFC 9112 §9.3.1).
    ///
    /// A server may close an idle connection at the moment when a request is sent on it. The server has usually
    /// processed nothing then, but the client cannot know. So a request is repeated only if it was not sent at all or
    /// may be sent twice, and only if no byte of a response was received. Like Go, unlike curl and OkHttp, a POST is
    /// not repeated.
    func maySendAgain(after error: ExchangeError, isReused: Bool, hasReceivedAnyByte: Bool) -> Bool {
        guard isReused, !hasReceivedAnyByte, error.isConnectionLoss else { return false }
        return !error.wasSent || (body.isWhole && isIdempotent)
    }

    /// The conditions for the response: those of the call, otherwise those of the session.
    package var validators: [ResponseValidator] {
        (options.validator ?? settings.configuration.validator).map { [$0] } ?? []
    }

    /// The priority among requests that wait for a connection.
    package var priority: RequestPriority {
        options.priority ?? options.serviceClass?.priority ?? settings.priority
    }

    var redirectPolicy: RedirectPolicy { options.redirects ?? settings.configuration.redirects }

    var retryPolicy: RetryPolicy { options.retry ?? settings.configuration.retry }

    /// Returns the codings of a response that the call decodes.
    package func codings(of head: ResponseHead) throws(ContentDecodingError) -> [ContentCoding] {
        guard decodesContentCoding, head.fields.contains("content-encoding") else { return [] }
        return try ContentCodingPlan(
            fieldValues: head.fields.values(of: "content-encoding"), limits: settings.configuration.decompressionLimits
        ).codings
    }

    // MARK: Derived calls

    /// Returns the call with a request that a middleware or a delegate made.
    package func adapted(_ request: HTTPRequest) throws(HTTPError) -> Call {
        if request == publicRequest { return self }
        let url = settings.effective(try HTTPSession.url(of: request), options)
        var fields = request.headerFields
        var options = options
        let leavesOrigin = url.origin != self.url.origin
        if leavesOrigin {
            // The caller's credentials are for the former origin. Fields that the code has set for the new one are
            // kept.
            for name in redirectPolicy.fieldsOfOrigin where fields[name] == self.fields[name] { fields[name] = nil }
            options.leaveOrigin(redirectPolicy)
        }
        let call = try Call(
            request.method, fields, url: url, body: body, options: options, settings: settings,
            givenRequest: request.path == "*" ? request : nil, following: self)
        var supplement = supplement
        if leavesOrigin { supplement?.cookies = nil }
        if leavesOrigin || fields.contains(.authorization) {
            supplement?.authorization = nil
            supplement?.identity = nil
        }
        return Call(call, supplement: supplement, hops: hops, observer: observer, timeouts: timeouts)
    }

    func redirected(_ redirect: RedirectRule.Redirect, by rule: RedirectRule) throws(HTTPError) -> Call {
        var options = options
        if redirect.dropsBody { options.trailers = HTTPHeaders() }
        if redirect.leavesOrigin, !rule.policy.sendsCredentialsCrossOrigin {
            options.leaveOrigin(rule.policy)
        }
        return try Call(
            redirect.method, rule.fields(fields, after: redirect), url: redirect.url,
            body: redirect.dropsBody ? .none : body, options: options, settings: settings, following: self)
    }

    /// Returns the call with additional fields from its stages.
    package func supplemented(_ change: (inout RequestAdditions) -> Void) -> Call {
        var supplement = supplement ?? RequestAdditions()
        change(&supplement)
        if supplement == RequestAdditions() { return self }
        return Call(self, supplement: supplement, hops: hops, observer: observer)
    }

    func with(_ body: HTTPBody) -> Call {
        Call(self, supplement: supplement, hops: hops, observer: observer, body: body)
    }

    /// The call with its body sent uncompressed.
    var uncompressed: Call {
        guard body.compression?.isEnabled == true else { return self }
        var body = body
        body.compression?.isEnabled = false
        return with(body)
    }

    func observed(by observer: CallEventEmitter) -> Call {
        Call(self, supplement: supplement, hops: hops, observer: observer)
    }

    func following(_ hops: [HTTPHop], observer: CallEventEmitter?) -> Call {
        Call(self, supplement: supplement, hops: hops, observer: observer)
    }

    /// The call for a transfer that several calls share: without a total timeout, because each call has its own.
    package var shared: Call {
        var timeouts = timeouts
        timeouts.total = nil
        return Call(self, supplement: supplement, hops: hops, observer: observer, timeouts: timeouts)
    }

    /// Returns the call with another ``RequestOptions/onInterimResponse``.
    package func reportingInterimResponses(to receive: (@Sendable (HTTPResponse) -> Void)?) -> Call {
        var options = options
        options.onInterimResponse = receive
        return Call(self, supplement: supplement, hops: hops, observer: observer, options: options)
    }

    /// The call without an observer.
    package var unobserved: Call { Call(self, supplement: supplement, hops: hops, observer: nil) }
}

/// The fields that the stages of a call add to a request, and how its body is sent.
package struct RequestAdditions: Equatable, Sendable {
    /// The value of `Cookie` from the jar, in addition to the caller's cookies.
    package var cookies: [UInt8]?
    /// The value of `Authorization`, if a stage sets it.
    var authorization: [UInt8]?
    /// The identity of the user, if ``authorization`` differs from request to request.
    package var identity: String?
    /// The fields of the cache: conditions, and directives for intermediate caches.
    package var cacheFields = FieldBlock()
    /// The names of the fields that instruments have set, in lower case. They differ from call to call.
    package var tracingFields: Set<String> = []
    /// The reason why the request may not be sent; `nil` if it may.
    package var networkDenial: NetworkDenial?
    /// Whether the body waits until the server has accepted or declined it (RFC 9110 §10.1.1).
    var expectsChallenge = false
    /// Whether the request is sent with an empty body first. Its own body follows after the response.
    var withholdsBody = false
    /// The verification of the response's content; `nil` for none.
    package var verification: ContentVerification?
}

/// The reason why a call may not use the current network, and the error's code.
package struct NetworkDenial: Hashable, Sendable {
    let code: HTTPError.Code
    let message: String

    package init(_ code: HTTPError.Code, _ message: String) { (self.code, self.message) = (code, message) }
}

/// Whether the request offers to switch to another protocol (RFC 9110 §7.8), so that a 101 is accepted.
package enum UpgradeKey: SettingKey { package static var defaultValue: Bool { false } }

extension RequestOptions { package var acceptsUpgrade: Bool { self[UpgradeKey.self] == true } }

/// The counter of calls across all sessions of the process.
enum CallNumber {
    private static let last = Atomic<UInt64>(0)

    /// Returns the next number; the first is 1.
    static func next() -> UInt64 { last.wrappingAdd(1, ordering: .relaxed).newValue }
}

extension RequestOptions {
    /// Removes what is meant for the former origin: the session's default fields, and secret trailers.
    fileprivate mutating func leaveOrigin(_ policy: RedirectPolicy) {
        omittedFields.formUnion(policy.defaultsOfOrigin)
        guard hasTrailers else { return }
        for name in policy.fieldsOfOrigin { trailers[name] = nil }
    }
}
