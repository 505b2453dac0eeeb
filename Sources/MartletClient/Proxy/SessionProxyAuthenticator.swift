import MartletTransport

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
            settings: AuthenticationSettings(
                credentials: Credentials(
                    user: credentials.user, password: credentials.password,
                    scheme: scheme(credentials, isAsked: isAsked))),
            memory: memory)
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
    private func value(
        _ machine: inout AuthenticationMachine, _ request: AuthenticatedRequest
    ) -> String? {
        do throws(CredentialsError) {
            guard case .value(let value) = try machine.prepare(request) else { return nil }
            return String(decoding: value.bytes, as: UTF8.self)
        } catch {
            return nil
        }
    }
}
