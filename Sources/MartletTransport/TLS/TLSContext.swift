import COpenSSL
import Synchronization

/// What connections with equal settings share: trusted roots, identity, versions, and the sessions to resume.
///
/// `@unchecked Sendable`: the pointer is set once and configured before `init` ends; from then on `SSL_new`
/// is the only call on it, which OpenSSL allows from several threads.
@safe package final class TLSContext: @unchecked Sendable {
    let pointer: OpaquePointer
    /// Whether connections are accepted with it, rather than opened.
    let isServer: Bool
    /// Sessions to resume; `nil` when tickets are off, and on the server's side.
    let sessions: TLSSessionCache?
    /// The protocols offered, or taken on the server's side.
    let applicationProtocols: [String]
    /// Whether the peer's certificate is looked at.
    let verifiesPeer: Bool
    /// What the peer's chain is asked besides.
    let verification: VerificationRules
    /// Whether the certificate must be made out to the host.
    let verifiesHostName: Bool
    /// The places where roots were looked for in vain; `nil` when there are some.
    let missingRoots: [String]?
    let keyLog: KeyLogFile?
    /// Whether this side has a certificate to show.
    let hasIdentity: Bool

    /// A context to open connections with.
    ///
    /// Reads files, and so blocks (20 ms for a usual set of roots when it is read first): run it on
    /// ``BlockingWorkers``. That the machine has no roots is told by the first connection that needs them.
    /// - Throws: `.configuration` and `.identity`.
    package convenience init(client settings: TLSSettings) throws(TLSError) {
        try self.init(client: settings, systemRoots: SystemRoots.load)
    }

    /// As ``init(client:)``, with the machine's roots from elsewhere.
    init(client settings: TLSSettings, systemRoots: () -> SystemRoots) throws(TLSError) {
        let builder = try ContextBuilder(isServer: false)
        try builder.setVersions(settings.minimumVersion, settings.maximumVersion)
        try builder.setCiphers(settings)
        try builder.setOfferedProtocols(settings.applicationProtocols)
        if let identity = settings.identity {
            try builder.use(identity)
            builder.offerPostHandshakeAuthentication()
        }
        hasIdentity = settings.identity != nil
        builder.noteCertificateRequests()
        keyLog = try settings.keyLogFile.map { path throws(TLSError) in try ContextBuilder.keyLog(at: path) }
        if keyLog != nil { builder.logKeys() }
        // A custom policy is asked about each connection, and a resumed session shows no certificates.
        let usesTickets = settings.usesSessionTickets && settings.trust.evaluator == nil
        builder.keepSessions(usesTickets)
        if !usesTickets { builder.useNoTickets() }
        sessions = usesTickets ? TLSSessionCache() : nil
        var rules = VerificationRules()
        rules.evaluator = settings.trust.evaluator
        rules.acceptsAny = settings.trust.acceptsAnyCertificate && rules.evaluator == nil
        rules.hasGivenRoots = !settings.trust.roots.isEmpty
        if let pins = settings.trust.pins { rules.pins = try PinSet(pins) }
        rules.suffixes = settings.publicSuffixes
        // Here, where blocking is allowed, and not in a handshake.
        settings.publicSuffixes.load()
        rules.revocation = settings.revocation
        verification = rules
        verifiesPeer = !rules.acceptsAny
        verifiesHostName = settings.verifiesHostName
        if verifiesPeer {
            missingRoots = try builder.trust(
                settings.trust, revocation: settings.revocation, systemRoots: systemRoots)
        } else {
            missingRoots = nil
        }
        if verifiesPeer || rules.pins != nil {
            // Whoever pins a certificate has looked at it: those that programs make for themselves leave out much.
            builder.verifyPeer(SSL_VERIFY_PEER, isStrict: !settings.trust.trustsPinsAlone)
        }
        applicationProtocols = settings.applicationProtocols
        isServer = false
        unsafe pointer = builder.finish()
    }

    /// A context to accept connections with.
    init(server settings: TLSServerSettings) throws(TLSError) {
        let builder = try ContextBuilder(isServer: true)
        try builder.setVersions(settings.minimumVersion, settings.maximumVersion)
        if settings.allowsWeakKeys { builder.allowWeakKeys() }
        try builder.use(settings.identity)
        builder.chooseProtocols()
        builder.keepSessions(false)
        builder.nameSessions()
        if let authority = settings.clientAuthority {
            missingRoots = try builder.trust(.only(authority), systemRoots: SystemRoots.load)
            builder.verifyPeer(
                settings.requiresClientCertificate
                    ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT : SSL_VERIFY_PEER)
            verifiesPeer = true
        } else {
            missingRoots = nil
            verifiesPeer = false
        }
        if !settings.issuesTickets { builder.useNoTickets() }
        hasIdentity = true
        verification = VerificationRules()
        keyLog = nil
        sessions = nil
        verifiesHostName = false
        applicationProtocols = settings.applicationProtocols
        isServer = true
        unsafe pointer = builder.finish()
    }

    deinit { unsafe SSL_CTX_free(pointer) }

    /// A context for a test's origin.
    /// - Parameters:
    ///   - certificateChainPEM: The leaf first.
    ///   - clientAuthorityPEM: The authority whose certificates clients may show; `nil` to ask for none.
    ///   - requiresClientCertificate: Whether a client without a certificate is refused.
    package static func server(
        certificateChainPEM: String, privateKeyPEM: String, clientAuthorityPEM: String? = nil,
        requiresClientCertificate: Bool = false, minimumVersion: TLSVersion = .tls12,
        maximumVersion: TLSVersion = .tls13, applicationProtocols: [String] = ["http/1.1"]
    ) throws(TLSError) -> TLSContext {
        var settings = TLSServerSettings(
            identity: TLSIdentity(
                certificateChain: .text(certificateChainPEM), privateKey: .text(privateKeyPEM)))
        settings.clientAuthority = clientAuthorityPEM.map { .text($0) }
        settings.requiresClientCertificate = requiresClientCertificate
        settings.minimumVersion = minimumVersion
        settings.maximumVersion = maximumVersion
        settings.applicationProtocols = applicationProtocols
        return try TLSContext(server: settings)
    }

    /// A context that accepts connections as the settings say.
    package static func server(_ settings: TLSServerSettings) throws(TLSError) -> TLSContext {
        try TLSContext(server: settings)
    }
}

/// Makes the TLS context of a set of settings once, when the first secure connection is opened.
///
/// Reading a bundle of roots takes milliseconds and blocks, so it happens on a worker; dials that come meanwhile wait for
/// the same result. A failure is not kept: the file may be there next time.
actor TLSContextLoader {
    private let settings: TLSSettings
    private var loading: Task<Result<TLSContext, TLSError>, Never>?

    init(settings: TLSSettings) { self.settings = settings }

    /// The context.
    func context() async throws(TLSError) -> TLSContext {
        if let loading {
            let result = await loading.value
            return try result.get()
        }
        let settings = settings
        // Unstructured, since several dials wait for it and none of them owns it.
        let task = Task {
            await BlockingWorkers.shared.run { () -> Result<TLSContext, TLSError> in
                do throws(TLSError) {
                    return .success(try TLSContext(client: settings))
                } catch {
                    return .failure(error)
                }
            }
        }
        loading = task
        let result = await task.value
        if case .failure = result { loading = nil }
        return try result.get()
    }
}

/// The TLS contexts of a dialer: one, unless some hosts have rules of their own. Hosts with equal settings share one.
final class TLSContextSet: Sendable {
    private let settings: TLSSettings
    /// For hosts without a rule.
    private let usual: TLSContextLoader
    /// Guards the others; at most one for each rule.
    private let others = Mutex<[TLSSettings: TLSContextLoader]>([:])

    init(settings: TLSSettings) {
        self.settings = settings
        var usual = settings
        usual.hosts = TLSHostRules()
        self.usual = TLSContextLoader(settings: usual)
    }

    /// The context for connections to a host.
    func context(for host: String) async throws(TLSError) -> TLSContext {
        try await loader(for: host).context()
    }

    private func loader(for host: String) -> TLSContextLoader {
        guard settings.hosts.rule(for: host) != nil else { return usual }
        let own = settings.settings(for: host)
        return others.withLock { others in
            if let loader = others[own] { return loader }
            let loader = TLSContextLoader(settings: own)
            others[own] = loader
            return loader
        }
    }
}
