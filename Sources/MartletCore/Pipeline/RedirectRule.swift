import MartletContent
import MartletURL
package import MartletWire

/// What a response with a 3xx status leads to.
package struct RedirectRule: Sendable {
    /// What is allowed.
    package let policy: RedirectPolicy

    /// A rule.
    package init(policy: RedirectPolicy) { self.policy = policy }

    /// What follows.
    package enum Decision: Equatable, Sendable {
        /// The response is the call's answer.
        case deliver
        /// Another request.
        case follow(Redirect)
        /// The call fails.
        case fail(Refusal)
    }

    /// The request that follows a redirect.
    package struct Redirect: Equatable, Sendable {
        /// Where to; without user info.
        package var url: HTTPURL
        /// How.
        package var method: HTTPRequest.Method
        /// Whether the body stays behind, and what describes it.
        package var dropsBody: Bool
        /// Whether scheme, host or port change.
        package var leavesOrigin: Bool

        /// A request that follows.
        package init(url: HTTPURL, method: HTTPRequest.Method, dropsBody: Bool, leavesOrigin: Bool) {
            self.url = url
            self.method = method
            self.dropsBody = dropsBody
            self.leavesOrigin = leavesOrigin
        }
    }

    /// Why a redirect is not followed.
    package enum Refusal: Equatable, Sendable {
        /// The limit was reached.
        case tooMany(limit: Int)
        /// From https to an origin of http.
        case downgrade(to: HTTPURL.Origin)
        /// To a scheme that the policy leaves out.
        case refusedScheme(HTTPURL.Origin)
        /// Neither http nor https.
        case unsupportedScheme(HTTPURL.ParseError)
        /// No reference to anything.
        case malformed(HTTPURL.ParseError)
        /// Several that differ.
        case ambiguous
    }

    /// Decides about a response.
    /// - Parameters:
    ///   - url: Where it came from.
    ///   - isReplayable: Whether the request's body can be sent again.
    ///   - followed: How many redirects the call has followed before.
    package func decide(
        _ head: ResponseHead, from url: HTTPURL, method: HTTPRequest.Method, isReplayable: Bool, followed: Int
    ) -> Decision {
        guard policy.isFollowing, RedirectRule.mayFollow(head.status) else { return .deliver }
        let locations = head.fields.rawValues(of: "location")
        if locations.contains(where: { $0 != locations.first }) { return .fail(.ambiguous) }
        guard let location = locations.first, !location.isEmpty else { return .deliver }
        let (next, dropsBody) = rewritten(method, status: head.status)
        guard dropsBody || isReplayable else { return .deliver }
        guard followed < policy.limit else { return .fail(.tooMany(limit: policy.limit)) }
        let target: HTTPURL
        do throws(HTTPURL.ParseError) {
            target = try url.resolving(RedirectRule.text(of: location))
        } catch {
            if error.code == .unsupportedScheme { return .fail(.unsupportedScheme(error)) }
            return .fail(.malformed(error))
        }
        guard policy.schemes.contains(target.scheme) else { return .fail(.refusedScheme(target.origin)) }
        if url.scheme == .https, target.scheme == .http, !policy.allowsDowngrade {
            return .fail(.downgrade(to: target.origin))
        }
        return .follow(
            Redirect(
                url: target.redirected(from: url), method: next, dropsBody: dropsBody,
                leavesOrigin: target.origin != url.origin))
    }

    /// Whether a status may lead to another request.
    @inline(__always)
    static func mayFollow(_ status: Int) -> Bool {
        switch status {
        case 301, 302, 303, 307, 308: true
        default: false
        }
    }

    /// The method of the next request, and whether it has no body (RFC 9110 §15.4.2–15.4.4).
    private func rewritten(_ method: HTTPRequest.Method, status: Int) -> (HTTPRequest.Method, Bool) {
        if policy.statusesThatKeepMethod.contains(status) { return (method, false) }
        switch status {
        case 303 where method != .get && method != .head: return (.get, true)
        case 301 where method == .post, 302 where method == .post: return (.get, true)
        default: return (method, false)
        }
    }

    /// A location as text: what is no UTF-8 is percent-encoded byte by byte, as browsers do, and so are white space inside, and
    /// backslashes behind the path, where nobody takes them for slashes.
    private static func text(of location: ArraySlice<UInt8>) -> String {
        let isText = String(validating: location, as: UTF8.self) != nil
        var bytes: [UInt8] = []
        bytes.reserveCapacity(location.count)
        var isBehindPath = false
        for byte in location {
            if byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#") { isBehindPath = true }
            let isBackslash = byte == UInt8(ascii: "\\") && isBehindPath
            if isBackslash || byte == 0x20 || byte == 0x09 || (byte >= 0x80 && !isText) {
                PercentEncoding.append(escaped: byte, to: &bytes)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The fields of the next request.
    package func fields(_ fields: HTTPFields, after redirect: Redirect) -> HTTPFields {
        var kept = fields
        if redirect.dropsBody {
            for name in RedirectRule.fieldsOfBody { kept[name] = nil }
        }
        if redirect.leavesOrigin {
            kept[.hostField] = nil
            if !policy.trustsOtherOrigins {
                for name in policy.fieldsOfOrigin { kept[name] = nil }
            }
        }
        return kept
    }

    /// What says something about a body that is not sent (RFC 9110 §15.4).
    private static let fieldsOfBody: [HTTPField.Name] = [
        .contentType, .contentLength, .contentEncoding, .contentLanguage, .contentLocation, .contentRange,
        .contentDisposition, .transferEncoding, .trailer, .expect, .digest, .contentDigest, .lastModified,
    ]
}

extension HTTPField.Name {
    /// `Digest` (RFC 3230).
    static let digest = HTTPField.Name("Digest") ?? .expect
    /// `Content-Digest` (RFC 9530).
    static let contentDigest = HTTPField.Name("Content-Digest") ?? .expect
}

extension RedirectRule.Refusal: CustomStringConvertible {
    /// Why `Location` is no URL, where that is what is wrong.
    package var parseError: HTTPURL.ParseError? {
        switch self {
        case .unsupportedScheme(let error), .malformed(let error): error
        case .tooMany, .downgrade, .refusedScheme, .ambiguous: nil
        }
    }

    /// What is wrong, in words.
    package var description: String {
        switch self {
        case .tooMany(let limit): "more than \(limit) redirects"
        case .downgrade(let origin): "a redirect from https to \(origin), which is not encrypted"
        case .refusedScheme(let origin): "a redirect to \(origin), whose scheme is not allowed for redirects"
        case .unsupportedScheme(let error), .malformed(let error): "Location: \(error)"
        case .ambiguous: "several fields Location that differ"
        }
    }
}

/// Whether redirects are followed, and what goes along (RFC 9110 §15.4).
///
/// Followed are 301, 302, 303, 307 and 308 with a `Location`. 303 turns every method but HEAD into GET, 301 and 302 turn
/// POST into GET; a body that is sent again must be replayable, else the redirect itself is the answer. 300, 304 and 305 are
/// answers. Only http and https are followed.
///
/// When the scheme, the host or the port changes, `Authorization`, `Cookie`, `Proxy-Authorization`, `Host` and the fields of
/// ``secretFields`` are left behind, those of the session's defaults too, and do not come back when the chain does. A name
/// and a password in a `Location` are never used.
public struct RedirectPolicy: Hashable, Sendable {
    /// Whether they are followed at all.
    public var isFollowing: Bool
    /// How many are followed in one call before it fails with ``HTTPError/Code/tooManyRedirects``; 20 by default.
    public var limit: Int
    /// Whether one from https to http is followed; `false` by default, and the call fails.
    public var allowsDowngrade = false
    /// The schemes that a redirect may lead to, as curl's `--proto-redir`; http and https by default. One to another fails
    /// the call.
    public var schemes = Set(HTTPURL.Scheme.allCases)
    /// Statuses among 301, 302 and 303 after which POST stays POST, as curl's `--post301`; none by default.
    public var statusesThatKeepMethod: Set<Int> = []
    /// Fields besides the usual ones that must not reach another origin, such as `X-Api-Key`.
    public var secretFields: Set<HTTPField.Name> = []
    /// Whether other origins get everything that the first one gets, as curl's `--location-trusted`; `false` by default.
    public var trustsOtherOrigins = false

    /// They are followed, so many in one call at most.
    public static func follow(limit: Int = 20) -> RedirectPolicy {
        RedirectPolicy(isFollowing: true, limit: max(0, limit))
    }

    /// They are answers like any other.
    public static let refuse = RedirectPolicy(isFollowing: false, limit: 0)

    private init(isFollowing: Bool, limit: Int) {
        self.isFollowing = isFollowing
        self.limit = limit
    }

    /// The fields that stay at their origin.
    package var fieldsOfOrigin: Set<HTTPField.Name> {
        secretFields.union([.authorization, .cookie, .proxyAuthorization, .hostField])
    }

    /// The session's defaults that are not sent elsewhere. `Host` is never one of those: each URL has its own.
    package var defaultsOfOrigin: Set<HTTPField.Name> { fieldsOfOrigin.subtracting([.hostField]) }
}
