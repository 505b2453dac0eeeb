/// The error of a proxy that was reached but did not connect to the server: ``HTTPError/underlying`` of `.proxyFailed`.
public struct ProxyError: Error, Sendable {
    /// The kind of an error. More kinds may be added: a `switch` needs a default.
    public enum Kind: Hashable, Sendable {
        /// An HTTP proxy responded to CONNECT with this status, which is not 2xx (``ProxyError/response``).
        case rejected(status: Int)
        /// A SOCKS proxy replied with this code (RFC 1928 §6), such as 4 host unreachable, 5 connection refused.
        case socksRejected(code: Int)
        /// A SOCKS proxy accepts no supported authentication, or rejected the user and password.
        case socksCredentialsRejected
        /// The reply of the proxy is invalid, or exceeds a limit.
        case protocolViolation
        /// The proxy closed the connection.
        case connectionLost
        /// The proxy's protocol cannot transmit the server's name or the credentials.
        case unsendable
    }

    /// The kind of the error.
    public var kind: Kind
    /// The proxy, such as `http://proxy.example:3128`, without user or password.
    public var proxy: String
    /// The head of the HTTP proxy's own response to CONNECT; `nil` if there was none, or for a SOCKS proxy.
    public var response: HTTPResponse?
    /// The received part of that response's body, at most 64 KiB.
    public var body: [UInt8] = []
    /// Whether ``body`` is the complete body.
    public var isBodyComplete = true
    /// The heads of all of an HTTP proxy's responses to CONNECT; the last one is ``response``.
    package var heads: [ResponseHead] = []
    /// A description of the error for users.
    public var message: String

    /// Whether credentials were missing or rejected.
    public var wantsCredentials: Bool { kind == .rejected(status: 407) || kind == .socksCredentialsRejected }

    init(_ handshakeError: ProxyHandshakeError, proxy: String) {
        self.proxy = proxy
        message = handshakeError.description
        switch handshakeError {
        case .rejected(let rejection):
            kind = .rejected(status: rejection.head.status)
            response = HeadConversion.response(rejection.head)
            heads = rejection.earlier + [rejection.head]
            body = rejection.body
            isBodyComplete = rejection.isBodyComplete
        case .wire(let error):
            kind =
                switch error.code {
                case .emptyResponse, .truncated: .connectionLost
                default: .protocolViolation
                }
        case .socks(let socksError):
            switch socksError {
            case .rejected(let reply): kind = .socksRejected(code: Int(reply.rawValue))
            case .noAcceptableMethod, .credentialsRejected: kind = .socksCredentialsRejected
            case .truncated: kind = .connectionLost
            case .invalidName, .invalidCredentials: kind = .unsendable
            case .wrongVersion, .unofferedMethod, .invalidAddressType: kind = .protocolViolation
            }
        case .lost: kind = .connectionLost
        }
    }
}

extension ProxyError: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The proxy and its error, in one sentence.
    public var description: String { "the proxy \(proxy) did not connect to the server: \(message)" }
    /// The same as ``description``.
    public var debugDescription: String { description }
    /// The mirror, with only ``description``: the fields of the response may be secret.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }

    /// Whether the failure may be temporary: a closed connection, an overloaded proxy, or an unreachable server.
    ///
    /// RFC 9110 §15.6.3–15.6.5 for HTTP. For SOCKS, the codes that a direct connection would fail with (RFC 1928 §6):
    /// general failure, network or host unreachable, connection refused, TTL expired.
    var isTransient: Bool {
        switch kind {
        case .connectionLost: true
        case .rejected(let status): (502...504).contains(status)
        case .socksRejected(let code): [1, 3, 4, 5, 6].contains(code)
        case .socksCredentialsRejected, .protocolViolation, .unsendable: false
        }
    }
}

/// The authentication of a session to its proxies. Basic is sent preemptively if the credentials allow it, and Digest
/// when the proxy requests it.
struct SessionProxyAuthenticator: ProxyAuthenticator {
    private let memory = AuthenticationCache()

    func preemptiveValue(for request: ProxyAuthenticationRequest) -> String? {
        guard let credentials = request.proxy.credentials else { return nil }
        var machine = machine(credentials, isAsked: !credentials.sendsPreemptively)
        return value(&machine, authenticated(request))
    }

    func value(answering challenges: [String], rejected: String?, for request: ProxyAuthenticationRequest) -> String? {
        guard let credentials = request.proxy.credentials else { return nil }
        var machine = machine(credentials, isAsked: true)
        let authenticated = authenticated(request)
        // Repeats the step of the rejected request, so that the machine knows which stored nonce was rejected.
        _ = value(&machine, authenticated)
        let answer = AuthenticationResponse(status: 407, challenges: challenges.map { Array($0.utf8)[...] })
        guard case .resend = machine.received(answer, to: authenticated) else { return nil }
        let value = value(&machine, authenticated)
        // A rejected value is not sent again.
        return value == rejected ? nil : value
    }

    private func machine(_ credentials: ProxyCredentials, isAsked: Bool) -> AuthenticationMachine {
        let scheme: Credentials.PasswordScheme = credentials.requiresDigest ? .digest : isAsked ? .any : .basic
        let credentials = Credentials(user: credentials.user, password: credentials.password, scheme: scheme)
        return AuthenticationMachine(
            party: .proxy, sources: CredentialSources(credentials: credentials), memory: memory)
    }

    private func authenticated(_ request: ProxyAuthenticationRequest) -> AuthenticatedRequest {
        let proxy = request.proxy
        return AuthenticatedRequest(
            origin: HTTPURL.Origin(scheme: proxy.kind == .https ? .https : .http, host: proxy.host, port: proxy.port),
            method: request.method, target: request.target)
    }

    /// Returns the field's value; `nil` if the machine has none, or if the credentials are invalid in a field.
    private func value(_ machine: inout AuthenticationMachine, _ request: AuthenticatedRequest) -> String? {
        do throws(CredentialsError) {
            guard case .value(let value) = try machine.prepare(request) else { return nil }
            return String(decoding: value.bytes, as: UTF8.self)
        } catch { return nil }
    }
}

/// The credentials for the proxy that forwards a request, sent preemptively or after a 407, and only to that proxy.
///
/// The caller's own `Proxy-Authorization` is not changed.
struct ProxyAuthorization {
    private let authenticator: any ProxyAuthenticator
    private let request: ProxyAuthenticationRequest
    private let body: HTTPBody

    /// Creates the credentials; `nil` if no credentials are to be sent.
    init?(call: Call, dialer: Dialer) {
        guard call.isForwarded, let proxy = call.proxy, proxy.credentials != nil,
            call.fields[.proxyAuthorization] == nil, call.settings.configuration.headers[.proxyAuthorization] == nil,
            let authenticator = dialer.settings.proxyAuthenticator
        else { return nil }
        self.authenticator = authenticator
        request = ProxyAuthenticationRequest(proxy: proxy, method: call.method.rawValue, target: call.requestTarget)
        body = call.body
    }

    /// The field's value for the first attempt.
    var unasked: String? { authenticator.preemptiveValue(for: request) }

    /// Returns the field's value for another attempt after a 407; `nil` to return the response to the caller.
    func answer(to head: ResponseHead, rejected: String?) -> String? {
        guard body.rewind() else { return nil }
        return authenticator.value(
            answering: head.fields.values(of: "Proxy-Authenticate"), rejected: rejected, for: request)
    }
}
