import FoundationEssentials
import MartletTransport
import MartletWire

extension Call {
    /// Whether the call is one request, unless its answer leads on.
    var isPlain: Bool { isPlainBesideCache && settings.configuration.cache == nil }

    /// The same, but for what a cache does.
    var isPlainBesideCache: Bool {
        !settings.hasSteps && !options.hasSteps && urlCredentials == nil
    }

    var redirectPolicy: RedirectPolicy { options.redirects ?? settings.configuration.redirects }

    var retryPolicy: RetryPolicy { options.retry ?? settings.configuration.retry }

    /// The jar in force.
    var cookieJar: CookieJar? {
        options.usesCookies ? settings.configuration.cookies : nil
    }

    /// With what a 401 is answered. A name and a password in the URL count where the call has none of its own.
    var authentication: AuthenticationSettings? {
        var found = options.authentication ?? settings.configuration.authentication
        if let urlCredentials, options.authentication == nil {
            found.credentials = urlCredentials
            found.tokens = nil
        }
        return found.isEmpty ? nil : found
    }

    /// The request as interceptors and delegates see it.
    var publicRequest: HTTPRequest {
        givenRequest ?? HTTPRequest(method: method, url: url, headerFields: fields)
    }

    /// What authentication has to know of it.
    var authenticated: AuthenticatedRequest {
        let known: AuthenticatedBody =
            switch body.storage {
            case .none: .bytes([])
            case .bytes(let bytes): .bytes(bytes)
            default: .unknown
            }
        // What the session's defaults say counts as the caller's word, as long as it is sent.
        let hasOwnField =
            fields.contains(.authorization)
            || (settings.configuration.headers.contains(.authorization)
                && !options.omittedFields.contains(.authorization))
        return AuthenticatedRequest(
            origin: url.origin, method: method.rawValue, target: serverTarget, body: known,
            isRepeatable: body.isWhole, hasOwnField: hasOwnField)
    }

    /// Bodies above this are worth a round trip that may save them: 1 MiB, as in curl.
    private static let worthAskingByteCount: UInt64 = 1 << 20

    /// Whether the body is one that had better be sent but once: it is gone then, or long, or who knows how long.
    var isWorthAsking: Bool {
        guard body.isPresent else { return false }
        return body.replay == .once || body.length.map { $0 > Call.worthAskingByteCount } ?? true
    }

    /// Whether there is a body that may be held back: the caller does not frame it.
    var mayWithholdBody: Bool {
        body.isPresent && !fields.contains(.contentLength) && !fields.contains(.transferEncoding)
    }

    /// The call with what an interceptor made of its request.
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

    /// The call with what its steps add to the request.
    func supplemented(_ supplement: CallSupplement, hops: [HTTPHop], observer: CallObserver?) -> Call {
        Call(self, supplement: supplement, hops: hops, observer: observer)
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

/// What the steps of a call add to a request: cookies, and an answer to who is calling.
struct CallSupplement: Sendable {
    /// The value of `Cookie` from the jar, beside what the caller set.
    var cookies: [UInt8]?
    /// The value of `Authorization`.
    var authorization: [UInt8]?
    /// Who calls, where ``authorization`` is another for each request of theirs.
    var identity: String?
    /// What the cache adds: conditions, and directives for the caches on the way.
    var cacheFields = FieldBlock()

    /// Whether the body waits until the server has said whether it wants it (RFC 9110 §10.1.1).
    var asksFirst = false
    /// Whether the request is sent with an empty body in place of its own, which follows when the server has answered.
    var withholdsBody = false

    var isEmpty: Bool {
        cookies == nil && authorization == nil && cacheFields.isEmpty && !asksFirst && !withholdsBody
    }
}
