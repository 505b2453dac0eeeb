import MartletCredentials
import MartletContent
import MartletURL
import FoundationEssentials
import MartletConnections
import MartletTransport
import MartletWire
import Synchronization

/// A call as the session's core runs it: everything resolved, nothing sent.
///
/// A class, because everything that runs a call holds it, and its many fields would be copied each time.
package final class Call: Sendable {
    /// The method.
    package let method: HTTPRequest.Method
    /// The fields that were given.
    package let fields: HTTPFields
    /// The request, where one was given whole.
    package let givenRequest: HTTPRequest?
    /// Where.
    package let url: HTTPURL
    /// With what.
    package let body: HTTPBody
    /// How otherwise than the session.
    package let options: RequestOptions
    /// The clocks in force.
    package let timeouts: Timeouts
    /// When it began.
    package let start: MonotonicTime
    /// The settings in force.
    package let settings: SessionSettings
    /// The proxy it goes through; `nil` for none.
    package let proxy: ProxyServer?
    /// Whether it is handed to the proxy, rather than sent through a tunnel.
    package let isForwarded: Bool
    /// Whether `Proxy-Authorization` is kept back: it is for a proxy, and this goes to a server.
    let hidesProxyAuthorization: Bool
    /// The name and the password that the URL came with, for its origin.
    package let urlCredentials: Credentials?
    /// What the call's steps add to the request.
    package let supplement: CallSupplement?
    /// The requests of the call that came before this one.
    let hops: [HTTPHop]
    /// Who is told what happens in the call; `nil` where nobody is.
    package let observer: CallObserver?

    package init(
        _ method: HTTPRequest.Method, _ fields: HTTPFields, url: HTTPURL, body: HTTPBody,
        options: RequestOptions, settings: SessionSettings, givenRequest: HTTPRequest? = nil,
        start: MonotonicTime? = nil
    ) throws(HTTPError) {
        self.start = start ?? MonotonicTime.now()
        if method == .connect { throw Call.connectFault(url) }
        let address = url.userInfo == nil ? url : url.withoutUserInfo
        // What is looked at is kept afterwards: it then need not be held twice.
        if settings.isWithoutProxies, options.proxy == nil {
            // Most calls.
            (proxy, isForwarded, hidesProxyAuthorization) = (nil, false, true)
        } else {
            let found = try settings.proxy(for: address, options.proxy) {
                givenRequest ?? HTTPRequest(method: method, url: address, headerFields: fields)
            }
            proxy = found
            isForwarded = found?.forwards(isSecure: url.scheme == .https) ?? false
            hidesProxyAuthorization = !isForwarded
        }
        asksForCoding = Call.asksForCoding(fields, options, settings)
        let isDemanded = options.decompresses == true && !options.isRaw
        undoesCoding = asksForCoding || (isDemanded && fields[.range] == nil)
        timeouts = options.timeouts ?? settings.configuration.timeouts
        urlCredentials =
            url.userInfo == nil ? nil : .basic(user: url.user ?? "", password: url.password ?? "")
        if let key = options.idempotencyKey {
            self.fields = key.added(to: fields)
            self.givenRequest = nil
        } else {
            self.fields = fields
            self.givenRequest = givenRequest
        }
        self.method = method
        self.url = address
        self.body = body
        self.options = options
        self.settings = settings
        supplement = nil
        hops = []
        observer = nil
    }

    convenience init(
        request: HTTPRequest, url: HTTPURL, body: HTTPBody, options: RequestOptions, settings: SessionSettings
    ) throws(HTTPError) {
        try self.init(
            request.method, request.headerFields, url: url, body: body, options: options, settings: settings,
            givenRequest: request)
    }

    /// The same call with what its steps add to the request, or with another body.
    init(
        _ call: Call, supplement: CallSupplement?, hops: [HTTPHop], observer: CallObserver?,
        body: HTTPBody? = nil, timeouts: Timeouts? = nil
    ) {
        self.observer = observer
        method = call.method
        fields = call.fields
        givenRequest = call.givenRequest
        url = call.url
        self.body = body ?? call.body
        options = call.options
        self.timeouts = timeouts ?? call.timeouts
        start = call.start
        settings = call.settings
        proxy = call.proxy
        isForwarded = call.isForwarded
        hidesProxyAuthorization = call.hidesProxyAuthorization
        urlCredentials = call.urlCredentials
        asksForCoding = call.asksForCoding
        undoesCoding = call.undoesCoding
        self.supplement = supplement
        self.hops = hops
    }

    private static func connectFault(_ url: HTTPURL) -> HTTPError {
        HTTPError(
            .invalidRequest, phase: .preparing,
            message: "CONNECT opens tunnels through proxies and is not a request",
            origin: url.origin.description)
    }

    /// Whether content codings are asked for.
    let asksForCoding: Bool
    /// Whether they are undone: where they were asked for, or the caller demands it, whoever asked.
    package let undoesCoding: Bool

    private static func asksForCoding(
        _ fields: HTTPFields, _ options: RequestOptions, _ settings: SessionSettings
    ) -> Bool {
        guard !options.isRaw, options.decompresses ?? settings.configuration.decompressesResponses,
            !settings.defaultsNameAcceptEncoding
        else { return false }
        return (fields.isEmpty || fields[.acceptEncoding] == nil && fields[.range] == nil)
            && !options.omittedFields.contains(.acceptEncoding)
    }

    /// What the request line names: path and query, or `*` for the server as a whole (RFC 9112 §3.2.4).
    /// To a proxy it is the whole URL, from which the last one makes the `*` again where there is no path (§3.2.2).
    var requestTarget: String {
        let isForServer = givenRequest.map { Call.isForServer($0) } ?? false
        if isForwarded { return isForServer ? "\(url.scheme)://\(url.hostFieldValue)" : url.absoluteForm }
        return isForServer ? "*" : url.requestTarget
    }

    /// What the line names that the server gets, behind whatever proxy.
    var serverTarget: String { givenRequest.map { Call.isForServer($0) } ?? false ? "*" : url.requestTarget }

    /// Whether a request is `OPTIONS *`, which asks about the server and not about one of its resources.
    package static func isForServer(_ request: HTTPRequest) -> Bool {
        request.path == "*" && request.method == .options
    }

    /// When it must be over.
    package var totalDeadline: MonotonicTime { start.deadline(after: timeouts.total) }

    /// Where its connection leads: the server, or the proxy that it is handed to.
    var destination: Destination {
        if isForwarded, let proxy { return proxy.forwardingDestination }
        return Destination(isSecure: url.scheme == .https, host: url.host, port: url.port)
    }

    var rule: IdleRaceRule {
        IdleRaceRule(method: method, isDeclaredSafe: isDeclaredSafe, isReplayable: body.isWhole)
    }

    /// Whether the request may be sent again when it was sent and no byte of a response came.
    var maySendAgain: Bool { (method.isIdempotent || isDeclaredSafe) && body.replay != .once }

    private var isDeclaredSafe: Bool {
        options.allowsResendingUnsafeMethods || fields.contains(HTTPField.Name.idempotencyKey)
    }
}

extension HTTPField.Name {
    /// `Host`, which HTTPTypes does not name: there it is the authority.
    package static let hostField = HTTPField.Name("Host") ?? .expect

    /// `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header).
    package static let idempotencyKey = HTTPField.Name("Idempotency-Key") ?? .expect
}

extension Call {
    /// What the answer must be: the call's own word, else the session's.
    package var validator: ResponseValidator? { options.validator ?? settings.configuration.validator }
}

/// Numbers calls, across all sessions of the process.
enum CallNumber {
    private static let last = Atomic<UInt64>(0)

    /// The next number; the first is 1.
    static func next() -> UInt64 { last.wrappingAdd(1, ordering: .relaxed).newValue }
}

extension Call {
    /// Whether the call is one request, unless its answer leads on.
    var isPlain: Bool { !settings.hasStages && hasNoStages }

    /// Whether the call itself adds no stage to those of its session.
    private var hasNoStages: Bool { !options.hasStages && urlCredentials == nil }

    /// The answer of the session's one stage, if that has one without waiting.
    @inline(never)
    func answerAtOnce(_ core: SessionCore, _ dialer: Dialer, _ control: TransferControl) -> Answer? {
        guard let stage = settings.onlyStage, hasNoStages, !core.events.isWatched, !control.isCancelled
        else { return nil }
        return stage.answerAtOnce(self, core, dialer, control)
    }

    /// The stages that features add, in the order of the pipeline.
    var stageSources: [StageSource] {
        let added = options.settings?.stages.filter { own in !settings.stages.contains { $0.key == own.key } }
        guard let added, !added.isEmpty else { return settings.stages }
        return StageSource.ordered(settings.stages + added)
    }

    var redirectPolicy: RedirectPolicy { options.redirects ?? settings.configuration.redirects }

    var retryPolicy: RetryPolicy { options.retry ?? settings.configuration.retry }

    /// The request as middleware and delegates see it.
    var publicRequest: HTTPRequest {
        givenRequest ?? HTTPRequest(method: method, url: url, headerFields: fields)
    }

    /// The call with what a middleware made of its request.
    func adapted(_ request: HTTPRequest) throws(HTTPError) -> Call {
        if request == publicRequest { return self }
        let url = try HTTPSession.url(of: request)
        var fields = request.headerFields
        var options = options
        if url.origin != self.url.origin {
            // Whoever sends a request elsewhere says itself what goes along.
            for name in redirectPolicy.fieldsOfOrigin where fields[name] == self.fields[name] {
                fields[name] = nil
            }
            options.omittedFields.formUnion(redirectPolicy.defaultsOfOrigin)
        }
        return try Call(
            request.method, fields, url: url, body: body, options: options, settings: settings,
            givenRequest: request.path == "*" ? request : nil, start: start)
    }

    /// The call with more fields that its stages add.
    package func supplemented(_ change: (inout CallSupplement) -> Void) -> Call {
        var supplement = supplement ?? CallSupplement()
        change(&supplement)
        return supplement.isEmpty ? self : Call(self, supplement: supplement, hops: hops, observer: observer)
    }

    /// The call with another body.
    func with(_ body: HTTPBody) -> Call {
        Call(self, supplement: supplement, hops: hops, observer: observer, body: body)
    }

    /// The call with somebody who is told what happens in it.
    func observed(by observer: CallObserver) -> Call {
        Call(self, supplement: supplement, hops: hops, observer: observer)
    }

    /// The call that follows a redirect.
    func redirected(_ redirect: RedirectRule.Redirect, by rule: RedirectRule) throws(HTTPError) -> Call {
        var options = options
        if redirect.dropsBody { options.trailers = HTTPFields() }
        if redirect.leavesOrigin, !rule.policy.trustsOtherOrigins {
            // The session's own fields are meant for where calls begin.
            options.omittedFields.formUnion(rule.policy.defaultsOfOrigin)
        }
        return try Call(
            redirect.method, rule.fields(fields, after: redirect), url: redirect.url,
            body: redirect.dropsBody ? .none : body, options: options, settings: settings, start: start)
    }
}

extension Call {
    /// The codings of a response that are to be undone.
    package func codings(of head: ResponseHead) throws(ContentDecodingError) -> [ContentCoding] {
        guard undoesCoding, head.fields.contains("content-encoding") else { return [] }
        return try ContentCodingPlan(
            fieldValues: head.fields.values(of: "content-encoding"),
            limits: settings.configuration.decompressionLimits
        ).codings
    }

    /// The call as it is sent for several calls at once: without a total time limit, since each of them has its own.
    package var shared: Call {
        var timeouts = timeouts
        timeouts.total = nil
        return Call(self, supplement: supplement, hops: hops, observer: observer, timeouts: timeouts)
    }

    /// The call without an observer.
    package var unobserved: Call { Call(self, supplement: supplement, hops: hops, observer: nil) }

    /// The fields that the request is sent with, except those that frame its body.
    package var sentFields: FieldBlock {
        let own = fields
        let cookies = supplement?.cookies
        if let lines = settings.defaultLines, options.omittedFields.isEmpty, lines.suit(own) {
            var block = asksForCoding ? lines.askingFields : lines.plainFields
            if own.isEmpty, supplement == nil { return block }
            append(own, cookies, to: &block)
            return block
        }
        var block = FieldBlock()
        let defaults = settings.configuration.defaultFields(asksForCoding: asksForCoding) { name in
            own[name] != nil || options.omittedFields.contains(name)
        }
        for field in defaults { block.append(field) }
        append(own, cookies, to: &block)
        return block
    }

    private func append(_ own: HTTPFields, _ cookies: [UInt8]?, to block: inout FieldBlock) {
        for field in own where !RequestComposer.isSetHere(field.name) || field.name == .cookie {
            block.append(field)
        }
        if let cookies { block.append(name: "Cookie".utf8, value: cookies) }
        if let authorization = supplement?.authorization {
            block.append(name: "Authorization".utf8, value: authorization)
        }
    }
}

/// The calendar's time.
enum WallClock {
    /// Now, in whole seconds.
    static var secondsSince1970: Int64 { Int64(Date().timeIntervalSince1970) }
}

extension HTTPURL {
    /// The address that a redirect leads to: without user info, and with the fragment of the one before where it has none.
    func redirected(from url: HTTPURL) -> HTTPURL {
        let target = userInfo == nil ? self : withoutUserInfo
        return target.inheritingFragment(of: url)
    }
}

/// What the stages of a call add to a request: cookies, and an answer to who is calling.
package struct CallSupplement: Sendable {
    /// The value of `Cookie` from the jar, beside what the caller set.
    package var cookies: [UInt8]?
    /// The value of `Authorization`.
    var authorization: [UInt8]?
    /// Who calls, where ``authorization`` is another for each request of theirs.
    package var identity: String?
    /// What the cache adds: conditions, and directives for the caches on the way.
    package var cacheFields = FieldBlock()

    /// Whether the body waits until the server has said whether it wants it (RFC 9110 §10.1.1).
    var asksFirst = false
    /// Whether the request is sent with an empty body in place of its own, which follows when the server has answered.
    var withholdsBody = false

    var isEmpty: Bool {
        cookies == nil && authorization == nil && cacheFields.isEmpty && !asksFirst && !withholdsBody
    }
}
