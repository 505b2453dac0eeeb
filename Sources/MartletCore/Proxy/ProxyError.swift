import MartletCredentials
import MartletURL
public import HTTPTypes
import MartletConnections
import MartletTransport
package import MartletWire

/// Why a proxy that was reached did not open a way to the server: what ``HTTPError/underlying`` of `.proxyFailed` is.
public struct ProxyError: Error, Sendable {
    /// What the proxy did. More may be added: a `switch` needs a default.
    public enum Kind: Hashable, Sendable {
        /// An HTTP proxy answered CONNECT with this status, which is not 2xx; ``ProxyError/response`` is the answer.
        case refused(status: Int)
        /// A SOCKS proxy answered with this code (RFC 1928 §6): 2 not allowed, 3 network unreachable, 4 host unreachable,
        /// 5 connection refused, …
        case socksRefused(code: Int)
        /// A SOCKS proxy takes no way to authenticate that there is, or refused user and password.
        case socksCredentialsRefused
        /// What the proxy said makes no sense, or exceeds a limit.
        case protocolViolation
        /// The proxy ended the connection.
        case connectionLost
        /// The server's name, or the credentials, cannot be told in the proxy's protocol.
        case unsendable
    }

    /// What the proxy did.
    public var kind: Kind

    /// The proxy, such as `http://proxy.example:3128`, without user or password.
    public var proxy: String

    /// The head of an HTTP proxy's answer, where it was one. It is the proxy's own word, never the server's.
    public var response: HTTPResponse?

    /// What came of that answer's body; at most 64 KiB.
    public var body: [UInt8] = []

    /// Whether ``body`` is all of it.
    public var isBodyComplete = true

    /// The heads of all that an HTTP proxy answered to CONNECT, the last of which is ``response``.
    package var heads: [ResponseHead] = []

    /// What the proxy did, in words.
    public var message: String

    /// Whether credentials were missing, or refused.
    public var wantsCredentials: Bool { kind == .refused(status: 407) || kind == .socksCredentialsRefused }

    init(_ fault: ProxyFault, proxy: String) {
        self.proxy = proxy
        message = fault.description
        switch fault {
        case .refused(let refusal):
            kind = .refused(status: refusal.head.status)
            response = HeadConversion.response(refusal.head)
            heads = refusal.earlier + [refusal.head]
            body = refusal.body
            isBodyComplete = refusal.isBodyComplete
        case .wire(let error):
            kind =
                switch error.code {
                case .emptyResponse, .truncated: .connectionLost
                default: .protocolViolation
                }
        case .socks(let fault):
            switch fault {
            case .refused(let reply): kind = .socksRefused(code: Int(reply.rawValue))
            case .noAcceptableMethod, .credentialsRefused: kind = .socksCredentialsRefused
            case .truncated: kind = .connectionLost
            case .invalidName, .invalidCredentials: kind = .unsendable
            case .wrongVersion, .unofferedMethod, .invalidAddressType: kind = .protocolViolation
            }
        case .lost: kind = .connectionLost
        }
    }
}

extension ProxyError: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The proxy and what it did.
    public var description: String { "the proxy \(proxy) did not open a way to the server: \(message)" }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// Shows ``description``: the answer's fields may hold a challenge, and are asked for by name.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

/// Answers proxies by Basic, shown at once where the credentials allow it, and by Digest where the proxy wants that; a
/// session's.
///
/// What proxies have said is kept apart from what servers have: its memory is its own.
struct SessionProxyAuthenticator: ProxyAuthenticator {
    private let memory = AuthenticationMemory()

    func unaskedValue(for request: ProxyAuthenticationRequest) -> String? {
        guard let credentials = request.proxy.credentials else { return nil }
        var machine = machine(credentials, isAsked: !credentials.isShownUnasked)
        return value(&machine, authenticated(request))
    }

    func value(
        answering challenges: [String], refused: String?, for request: ProxyAuthenticationRequest
    ) -> String? {
        guard let credentials = request.proxy.credentials else { return nil }
        var machine = machine(credentials, isAsked: true)
        let authenticated = authenticated(request)
        // What it would have sent unasked counts as sent: a nonce that it remembers is the one that was refused.
        _ = value(&machine, authenticated)
        let answer = AuthenticationAnswer(status: 407, challenges: challenges.map { Array($0.utf8)[...] })
        guard case .resend = machine.received(answer, to: authenticated) else { return nil }
        let value = value(&machine, authenticated)
        // What was refused once is not offered again.
        return value == refused ? nil : value
    }

    private func machine(_ credentials: ProxyCredentials, isAsked: Bool) -> AuthenticationMachine {
        AuthenticationMachine(
            party: .proxy,
            sources: CredentialSources(
                credentials: Credentials(
                    user: credentials.user, password: credentials.password,
                    scheme: scheme(credentials, isAsked: isAsked))), memory: memory)
    }

    private func scheme(_ credentials: ProxyCredentials, isAsked: Bool) -> Credentials.PasswordScheme {
        if credentials.isForDigestAlone { return .digest }
        return isAsked ? .any : .basic
    }

    private func authenticated(_ request: ProxyAuthenticationRequest) -> AuthenticatedRequest {
        let proxy = request.proxy
        return AuthenticatedRequest(
            origin: HTTPURL.Origin(
                scheme: proxy.kind == .https ? .https : .http, host: proxy.host, port: proxy.port),
            method: request.method, target: request.target)
    }

    /// The field's value; `nil` for none, as where the credentials cannot be written into a field.
    private func value(_ machine: inout AuthenticationMachine, _ request: AuthenticatedRequest) -> String? {
        do throws(CredentialsError) {
            guard case .value(let value) = try machine.prepare(request) else { return nil }
            return String(decoding: value.bytes, as: UTF8.self)
        } catch {
            return nil
        }
    }
}

/// The credentials of a request that is handed to a proxy: shown at once or when asked, and only to that proxy.
///
/// What the caller's own `Proxy-Authorization` says is left as it is.
struct ProxyConvincing {
    private let authenticator: any ProxyAuthenticator
    private let request: ProxyAuthenticationRequest
    private let body: HTTPBody

    /// `nil` where nobody is to be convinced.
    init?(call: Call, dialer: Dialer) {
        guard call.isForwarded, let proxy = call.proxy, proxy.credentials != nil,
            call.fields[.proxyAuthorization] == nil,
            call.settings.configuration.headers[.proxyAuthorization] == nil
        else { return nil }
        authenticator = dialer.settings.proxyAuthenticator
        request = ProxyAuthenticationRequest(
            proxy: proxy, method: call.method.rawValue, target: call.requestTarget)
        body = call.body
    }

    /// The field's value for a request that has not been refused.
    var unasked: String? { authenticator.unaskedValue(for: request) }

    /// The field's value for another try after a 407; `nil` where there is none, and the answer stands.
    func answer(to head: ResponseHead, refused: String?) -> String? {
        guard body.takeBack() else { return nil }
        return authenticator.value(
            answering: head.fields.values(of: "Proxy-Authenticate"), refused: refused, for: request)
    }
}
