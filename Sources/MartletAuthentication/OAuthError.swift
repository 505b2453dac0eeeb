public import FoundationEssentials
import MartletCore

/// The error of a request for a token of OAuth 2.0 (RFC 6749 §5.2). Neither it nor its description contains a secret.
public struct OAuthError: LocalizedError, Hashable, Sendable, CustomStringConvertible {
    /// The kind of an error. Servers may send codes that are not in this list.
    public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The code, as in the protocol.
        public var rawValue: String

        /// Creates a code by its name in the protocol.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The code, as in the protocol.
        public var description: String { rawValue }

        /// The request lacks a parameter, or has an unsupported one.
        public static let invalidRequest = Code(rawValue: "invalid_request")
        /// The client is unknown, or its secret is wrong.
        public static let invalidClient = Code(rawValue: "invalid_client")
        /// The refresh token is invalid, expired or revoked, or there is none: the user has to sign in again.
        public static let invalidGrant = Code(rawValue: "invalid_grant")
        /// The client may not use this grant.
        public static let unauthorizedClient = Code(rawValue: "unauthorized_client")
        /// The server does not support the grant.
        public static let unsupportedGrantType = Code(rawValue: "unsupported_grant_type")
        /// The scope is invalid, or exceeds that of the grant.
        public static let invalidScope = Code(rawValue: "invalid_scope")
        /// The response is neither a bearer token nor an error of OAuth. Servers do not send this code.
        public static let invalidResponse = Code(rawValue: "invalid_response")
    }

    /// The kind of the error.
    public var code: Code
    /// The explanation: that of the server in `error_description`, with `***` for secrets, or Martlet's; `nil` without
    /// one. It has at most 256 bytes, without control characters.
    public var message: String?
    /// The page of the server that describes the error, in `error_uri`; `nil` without one.
    public var uri: String?
    /// The status of the response; `nil` if no request was sent.
    public var status: Int?

    /// Creates an error.
    public init(_ code: Code, message: String? = nil, uri: String? = nil, status: Int? = nil) {
        (self.code, self.message, self.uri, self.status) = (code, message, uri, status)
    }

    /// The code, the explanation, the page and the status.
    public var description: String {
        let code = DecodingErrorText.beginning(of: code.rawValue.utf8)
        let page = uri.map { " (\(DecodingErrorText.beginning(of: $0.utf8)))" } ?? ""
        let status = status.map { "; the status is \($0)" } ?? ""
        return "the request for an OAuth token failed: \(code)\(message.map { ": \($0)" } ?? "")\(page)\(status)"
    }

    /// The same as ``description``, for `localizedDescription`.
    public var errorDescription: String? { description }
}

/// A token response (RFC 6749 §5.1).
struct OAuthTokenResponse: Sendable {
    /// The maximum lifetime that is used: ten years.
    private static let lifetimeLimit = 315_360_000.0

    let accessToken: String
    /// The lifetime; `nil` if it is missing, not positive, or not a number.
    let lifetime: Duration?
    /// The refresh token that replaces the one of the request; `nil` to continue with that one.
    let refreshToken: String?

    /// Parses a response.
    /// - Parameter secrets: The texts that an error must not contain, although a server may repeat them.
    init(status: Int, body: [UInt8], hiding secrets: [String] = []) throws(OAuthError) {
        let members = (try? JSONValue(parsing: body))?.objectValue ?? JSONObject()
        func text(_ name: String) -> String? { members[name]?.stringValue.flatMap { $0.isEmpty ? nil : $0 } }
        func hidden(_ text: String) -> String {
            secrets.filter { !$0.isEmpty }.reduce(text) { $0.replacing($1, with: "***") }
        }
        func invalid(_ message: String) -> OAuthError { OAuthError(.invalidResponse, message: message, status: status) }
        // Some servers send errors with the status 200.
        if let code = text("error") {
            throw OAuthError(
                OAuthError.Code(rawValue: hidden(code)),
                message: text("error_description").map { DecodingErrorText.beginning(of: hidden($0).utf8) },
                uri: text("error_uri").map(hidden), status: status)
        }
        guard !(300...399).contains(status) else { throw invalid("redirects of token requests are not followed") }
        guard (200...299).contains(status) else { throw invalid("the response is not an error of OAuth") }
        guard let token = text("access_token") else { throw invalid("the response has no access token") }
        // Servers that predate the standard omit the type.
        guard (text("token_type") ?? "Bearer").lowercased() == "bearer" else {
            throw invalid("the token is not a bearer token")
        }
        let allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/".utf8
        let end = token.utf8.drop { allowed.contains($0) }
        // RFC 6750 §2.1. Another character could end the header field.
        guard end.count < token.utf8.count, end.allSatisfy({ $0 == UInt8(ascii: "=") }) else {
            throw invalid("the access token has characters that are not allowed in bearer tokens")
        }
        accessToken = token
        refreshToken = text("refresh_token")
        let seconds = members["expires_in"].flatMap { $0.doubleValue ?? $0.stringValue.flatMap { Double($0) } } ?? 0
        lifetime = seconds > 0 ? .seconds(min(seconds, OAuthTokenResponse.lifetimeLimit)) : nil
    }
}
