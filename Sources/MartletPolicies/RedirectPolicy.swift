public import HTTPTypes
public import MartletURL
package import MartletWire

/// The rule that decides whether a response with a 3xx status leads to another request.
package struct RedirectRule: Sendable {
    package let policy: RedirectPolicy
    /// Returns the URL that a request for a target is sent to.
    private let effective: @Sendable (HTTPURL) -> HTTPURL

    package init(policy: RedirectPolicy, effective: @escaping @Sendable (HTTPURL) -> HTTPURL = { $0 }) {
        (self.policy, self.effective) = (policy, effective)
    }

    /// The action after a response.
    package enum Decision: Equatable, Sendable {
        /// Return the response to the caller.
        case deliver
        case follow(Redirect)
        case fail(Rejection)
    }

    /// The request that follows a redirect.
    package struct Redirect: Equatable, Sendable {
        /// The target URL, without user info.
        package var url: HTTPURL
        package var method: HTTPRequest.Method
        /// Whether the body and the fields about it are dropped.
        package var dropsBody: Bool
        /// Whether the scheme, the host or the port changes.
        package var leavesOrigin: Bool
    }

    /// The reason why a redirect is not followed.
    package enum Rejection: Equatable, Sendable {
        case tooMany(limit: Int)
        /// The redirect leads from https to an http origin.
        case downgrade(to: HTTPURL.Origin)
        /// The redirect leads to a scheme that the policy excludes.
        case rejectedScheme(HTTPURL.Origin)
        /// The scheme is neither http nor https.
        case unsupportedScheme(HTTPURL.ParseError)
        /// The location is not a valid URL reference.
        case malformed(HTTPURL.ParseError)
        /// The response has several different locations.
        case ambiguous
    }

    /// Decides whether the call follows a response.
    /// - Parameters:
    ///   - url: The URL of the response.
    ///   - isReplayable: Whether the request's body can be sent again.
    ///   - followed: The number of redirects that the call has already followed.
    package func decide(
        _ head: ResponseHead, from url: HTTPURL, method: HTTPRequest.Method, isReplayable: Bool, followed: Int
    ) -> Decision {
        guard policy.followsRedirects, RedirectRule.mayFollow(head.status) else { return .deliver }
        let locations = head.fields.rawValues(of: "location")
        if locations.contains(where: { $0 != locations.first }) { return .fail(.ambiguous) }
        guard let location = locations.first, !location.isEmpty else { return .deliver }
        let (next, dropsBody) = rewritten(method, status: head.status)
        guard dropsBody || isReplayable else { return .deliver }
        if policy.staysOnHost, RedirectRule.leavesHost(url, to: location) { return .deliver }
        guard followed < policy.limit else { return .fail(.tooMany(limit: policy.limit)) }
        let target: HTTPURL
        do throws(HTTPURL.ParseError) {
            target = effective(try url.resolving(RedirectRule.text(of: location)))
        } catch {
            if error.code == .unsupportedScheme { return .fail(.unsupportedScheme(error)) }
            return .fail(.malformed(error))
        }
        guard policy.schemes.contains(target.scheme) else { return .fail(.rejectedScheme(target.origin)) }
        if url.scheme == .https, target.scheme == .http, !policy.allowsDowngrade {
            return .fail(.downgrade(to: target.origin))
        }
        return .follow(
            Redirect(
                url: target.withoutUserInfo.inheritingFragment(of: url), method: next, dropsBody: dropsBody,
                leavesOrigin: target.origin != url.origin))
    }

    /// Whether a location is at another host. A location whose scheme is neither http nor https counts as such.
    private static func leavesHost(_ url: HTTPURL, to location: ArraySlice<UInt8>) -> Bool {
        do throws(HTTPURL.ParseError) { return try url.resolving(text(of: location)).host != url.host } catch {
            return error.code == .unsupportedScheme
        }
    }

    /// Whether a status may lead to another request.
    @inlinable package static func mayFollow(_ status: Int) -> Bool {
        switch status {
        case 301, 302, 303, 307, 308: true
        default: false
        }
    }

    /// Returns the method of the next request, and whether it has no body (RFC 9110 §15.4.2–15.4.4).
    private func rewritten(_ method: HTTPRequest.Method, status: Int) -> (HTTPRequest.Method, Bool) {
        if policy.methodPreservingStatuses.contains(status) { return (method, false) }
        switch status {
        case 303 where method != .get && method != .head: return (.get, true)
        case 301 where method == .post, 302 where method == .post: return (.get, true)
        default: return (method, false)
        }
    }

    /// Returns a location as text. As in browsers, these are percent-encoded: inner white space, backslashes in the
    /// query and the fragment, and all bytes above 0x7F if the location is not UTF-8.
    private static func text(of location: ArraySlice<UInt8>) -> String {
        let isText = String(validating: location, as: UTF8.self) != nil
        var bytes: [UInt8] = []
        bytes.reserveCapacity(location.count)
        var isAfterPath = false
        for byte in location {
            if byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#") { isAfterPath = true }
            let isBackslash = byte == UInt8(ascii: "\\") && isAfterPath
            if isBackslash || byte == 0x20 || byte == 0x09 || (byte >= 0x80 && !isText) {
                PercentEncoding.append(escaped: byte, to: &bytes)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the fields of the next request.
    package func fields(_ fields: HTTPFields, after redirect: Redirect) -> HTTPFields {
        var kept = fields
        if redirect.dropsBody { for name in RedirectRule.fieldsOfBody { kept[name] = nil } }
        if redirect.leavesOrigin {
            kept[.hostField] = nil
            if !policy.sendsCredentialsCrossOrigin { for name in policy.fieldsOfOrigin { kept[name] = nil } }
        }
        return kept
    }

    /// The fields about a body (RFC 9110 §15.4), including `Digest` (RFC 3230) and those of RFC 9530.
    private static let fieldsOfBody: [HTTPField.Name] =
        [
            .contentType, .contentLength, .contentEncoding, .contentLanguage, .contentLocation, .contentRange,
            .contentDisposition, .transferEncoding, .trailer, .expect, .lastModified,
        ] + ["Digest", "Content-Digest", "Repr-Digest"].compactMap { HTTPField.Name($0) }
}

extension RedirectRule.Rejection: CustomStringConvertible {
    /// The error of a `Location` that is not a URL; `nil` for other reasons.
    package var parseError: HTTPURL.ParseError? {
        switch self {
        case .unsupportedScheme(let error), .malformed(let error): error
        case .tooMany, .downgrade, .rejectedScheme, .ambiguous: nil
        }
    }

    /// The reason, as text.
    package var description: String {
        switch self {
        case .tooMany(let limit): "more than \(limit) redirects"
        case .downgrade(let origin): "a redirect from https to \(origin), which is not encrypted"
        case .rejectedScheme(let origin): "a redirect to \(origin), whose scheme is not allowed for redirects"
        case .unsupportedScheme(let error), .malformed(let error): "Location: \(error)"
        case .ambiguous: "several different Location fields"
        }
    }
}

/// The policy for redirects: whether they are followed, and which parts of the request are sent again (RFC 9110 §15.4).
///
/// 301, 302, 303, 307 and 308 with a `Location` are followed; 300, 304 and 305 are not redirects. 303 changes every
/// method except HEAD to GET; 301 and 302 change POST to GET. A body that is sent again must be replayable; otherwise
/// the redirect is returned as the response. A redirect to a scheme other than http and https fails the call.
///
/// When the scheme, the host or the port changes, `Authorization`, `Cookie`, `Proxy-Authorization`, `Host` and the
/// fields of ``secretFields`` are dropped, also if the session adds them by default. They are not restored if a later
/// redirect returns to the first origin. A user name and a password in a `Location` are never used.
public struct RedirectPolicy: Hashable, Sendable {
    /// Whether redirects are followed.
    public var followsRedirects: Bool
    /// The maximum number of redirects in a call before ``HTTPError/Code/tooManyRedirects``; 20 by default.
    public var limit: Int
    /// Whether redirects from https to http are followed; with `false` (the default) they fail the call.
    public var allowsDowngrade = false
    /// Whether redirects to another host are not followed, but returned as responses; `false` by default.
    public var staysOnHost = false
    /// The schemes that a redirect may lead to, as with curl's `--proto-redir`; http and https by default. A redirect
    /// to another scheme fails the call.
    public var schemes = Set(HTTPURL.Scheme.allCases)
    /// The statuses among 301, 302 and 303 that do not change the method, as with curl's `--post301`; none by default.
    public var methodPreservingStatuses: Set<Int> = []
    /// Further fields that must not be sent to another origin, such as `X-Api-Key`.
    public var secretFields: Set<HTTPField.Name> = []
    /// Whether other origins receive credentials too, as with curl's `--location-trusted`; `false` by default.
    public var sendsCredentialsCrossOrigin = false

    /// Returns a policy that follows redirects, at most `limit` in one call.
    public static func follow(limit: Int = 20) -> RedirectPolicy {
        RedirectPolicy(followsRedirects: true, limit: max(0, limit))
    }

    /// A policy that returns redirects as responses.
    public static let doNotFollow = RedirectPolicy(followsRedirects: false, limit: 0)

    /// The fields that are not sent to another origin.
    package var fieldsOfOrigin: Set<HTTPField.Name> {
        secretFields.union([.authorization, .cookie, .proxyAuthorization, .hostField])
    }

    /// The session's default fields that are not sent to another origin; not `Host`, which each URL has.
    package var defaultsOfOrigin: Set<HTTPField.Name> { fieldsOfOrigin.subtracting([.hostField]) }
}

extension HTTPField.Name {
    /// The name of `Host`, which HTTPTypes does not define, because it uses the authority.
    package static let hostField = HTTPField.Name("Host") ?? .expect
    /// The name of `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header).
    package static let idempotencyKey = HTTPField.Name("Idempotency-Key") ?? .expect
}
