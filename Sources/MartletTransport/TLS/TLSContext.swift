import CMartletLinux
import CMartletOpenSSL
import Glibc

/// The parts that connections with equal settings share: trusted roots, identity, versions, and the sessions to resume.
/// `@unchecked Sendable`: the `SSL_CTX` is configured before `init` ends; from then on it is only passed to `SSL_new`,
/// which OpenSSL allows from several threads.
@safe package final class TLSContext: @unchecked Sendable {
    let pointer: OpaquePointer
    /// Whether the context is for accepting connections, not for opening them.
    let isServer: Bool
    /// The sessions to resume; `nil` without tickets, and on the server's side.
    let sessions: TLSSessionCache?
    /// The protocols that are offered, or accepted on the server's side.
    let applicationProtocols: [String]
    let verifiesPeer: Bool
    /// The chains that need not be verified again; `nil` if all are verified, or none.
    let verifiedChains: VerifiedChains?
    /// Further rules for the peer's chain.
    let verification: VerificationRules
    let verifiesHostName: Bool
    /// The searched paths if no roots were found; `nil` if there are roots.
    let missingRoots: [String]?
    let keyLog: KeyLogFile?
    let hasIdentity: Bool

    /// Creates a context for opening connections. It reads files, which takes about 20 ms for the machine's roots: call
    /// it on ``BlockingThreadPool``. Missing roots are not an error here, but on connecting.
    /// - Throws: `.configuration`; the errors of the identity, the given roots, the pins and the revocation lists.
    package convenience init(client settings: TLSSettings) throws(TLSError) {
        try self.init(client: settings, systemRoots: SystemRoots.load)
    }

    /// Creates a context with other roots instead of the machine's; otherwise like ``init(client:)``.
    init(client settings: TLSSettings, systemRoots: () -> SystemRoots) throws(TLSError) {
        let builder = try ContextBuilder(isServer: false)
        try builder.setVersions(settings.minimumVersion, settings.maximumVersion)
        try builder.setCiphers(settings)
        try builder.setOfferedProtocols(settings.applicationProtocols)
        if let identity = settings.identity {
            try builder.use(identity)
            // A TLS 1.3 server may request a certificate after the handshake, for a part of its site (RFC 8446 §4.2.6).
            unsafe SSL_CTX_set_post_handshake_auth(builder.context, 1)
        }
        hasIdentity = settings.identity != nil
        builder.noteCertificateRequests()
        keyLog = try settings.keyLogFile.map { path throws(TLSError) in
            do throws(SystemError) { return try KeyLogFile(path: path) } catch {
                throw TLSError(.configuration(reason: "key log file \(path): \(error)"))
            }
        }
        if keyLog != nil { builder.logKeys() }
        // A custom policy needs certificates for each connection, and a resumed session has none.
        let usesTickets = settings.usesSessionTickets && settings.trust.evaluator == nil
        builder.keepSessions(usesTickets)
        if !usesTickets { builder.useNoTickets() }
        sessions = usesTickets ? TLSSessionCache() : nil
        let pins = try settings.trust.pins.map { pins throws(TLSError) in try PinSet(pins) }
        var rules = VerificationRules(
            acceptsAny: settings.trust.acceptsAnyCertificate && settings.trust.evaluator == nil,
            hasGivenRoots: !settings.trust.roots.isEmpty, pins: pins, evaluator: settings.trust.evaluator,
            suffixes: settings.publicSuffixes, revocation: settings.revocation)
        // Read here, where blocking is allowed, and not in a handshake.
        settings.publicSuffixes.load()
        verifiesPeer = !rules.acceptsAny
        verifiesHostName = settings.verifiesHostName
        missingRoots =
            rules.acceptsAny
            ? nil : try builder.trust(settings.trust, revocation: settings.revocation, systemRoots: systemRoots)
        rules.revokedRoots = builder.revokedRoots
        verification = rules
        verifiedChains =
            rules.acceptsAny || rules.evaluator != nil ? nil : builder.listTimes.map { VerifiedChains(listTimes: $0) }
        if !rules.acceptsAny || rules.pins != nil {
            // Pinned certificates are checked leniently: self-made certificates often omit required extensions.
            builder.verifyPeer(SSL_VERIFY_PEER, isStrict: !settings.trust.trustsPinsAlone)
        }
        applicationProtocols = settings.applicationProtocols
        isServer = false
        unsafe pointer = builder.finish()
    }

    package init(server settings: TLSServerSettings) throws(TLSError) {
        let builder = try ContextBuilder(isServer: true)
        try builder.setVersions(settings.minimumVersion, settings.maximumVersion)
        if settings.allowsWeakKeys { unsafe SSL_CTX_set_security_level(builder.context, 0) }
        try builder.use(settings.identity)
        unsafe SSL_CTX_set_alpn_select_cb(builder.context, chooseProtocol, nil)
        builder.keepSessions(false)
        // Without a name, OpenSSL resumes no sessions with a client certificate.
        let name = Array("martlet".utf8)
        unsafe SSL_CTX_set_session_id_context(builder.context, name, UInt32(name.count))
        verifiesPeer = settings.clientAuthority != nil
        missingRoots = try settings.clientAuthority.flatMap { authority throws(TLSError) in
            try builder.trust(.only(authority), revocation: .none, systemRoots: SystemRoots.load)
        }
        if verifiesPeer {
            builder.verifyPeer(
                settings.requiresClientCertificate
                    ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT : SSL_VERIFY_PEER, isStrict: true)
        }
        if !settings.issuesTickets { builder.useNoTickets() }
        hasIdentity = true
        verification = VerificationRules()
        (keyLog, sessions, verifiedChains) = (nil, nil, nil)
        (isServer, verifiesHostName) = (true, false)
        applicationProtocols = settings.applicationProtocols
        unsafe pointer = builder.finish()
    }

    deinit { unsafe SSL_CTX_free(pointer) }
}

/// The settings for accepting TLS connections, for test origins.
package struct TLSServerSettings: Sendable {
    package var identity: TLSIdentity
    /// The authority of the certificates that clients may send; `nil` to request none.
    package var clientAuthority: PEMSource?
    /// Whether a client without a certificate is rejected.
    package var requiresClientCertificate = false
    package var minimumVersion = TLSVersion.tls12
    package var maximumVersion = TLSVersion.tls13
    /// The protocols that ALPN accepts, best first.
    package var applicationProtocols = ["http/1.1"]
    /// Whether clients get tickets for resuming sessions.
    package var issuesTickets = true
    /// Whether weak keys and digests are allowed, for origins that clients must reject.
    package var allowsWeakKeys = false

    package init(identity: TLSIdentity) { self.identity = identity }
}

/// The configuration of an `SSL_CTX`, which is freed unless ``finish()`` returned it.
@safe private final class ContextBuilder {
    private var pointer: OpaquePointer?
    let context: OpaquePointer
    /// The times at which a revocation list becomes valid or expires; `nil` if the lists may change at any time.
    private(set) var listTimes: [Int]? = []
    /// The given certificates that a given list revokes, in DER.
    private(set) var revokedRoots: Set<[UInt8]> = []

    /// Creates a context with the settings that all contexts share.
    init(isServer: Bool) throws(TLSError) {
        OpenSSLErrors.clear()
        guard let context = unsafe SSL_CTX_new(isServer ? TLS_server_method() : TLS_client_method()) else {
            throw TLSError(.configuration(reason: OpenSSLErrors.drain().text))
        }
        unsafe self.context = context
        unsafe pointer = context
        unsafe martlet_ctx_set_mode(context)
        unsafe martlet_ctx_set_common_options(context)
        // With read-ahead, OpenSSL makes one `recv` per record instead of two. The buffer holds one record and a little
        // more: with 64 KiB, moving its rest before each record would cost more than the saved calls. The buffer exists
        // only while a record is incomplete.
        unsafe martlet_ctx_set_read_ahead(context, 1)
        unsafe SSL_CTX_set_default_read_buffer_len(context, 18 << 10)
    }

    deinit { unsafe SSL_CTX_free(pointer) }

    /// Returns the context; the caller frees it.
    func finish() -> OpaquePointer {
        unsafe pointer = nil
        return unsafe context
    }

    private func failure(_ what: String) -> TLSError {
        TLSError(.configuration(reason: "\(what): \(OpenSSLErrors.drain().text)"))
    }

    func setVersions(_ minimum: TLSVersion, _ maximum: TLSVersion) throws(TLSError) {
        guard minimum <= maximum else {
            throw TLSError(.configuration(reason: "the minimum TLS version is newer than the maximum version"))
        }
        guard unsafe martlet_ctx_set_min_version(context, minimum.number) == 1,
            unsafe martlet_ctx_set_max_version(context, maximum.number) == 1
        else { throw failure("TLS versions") }
    }

    /// Sets the security level and the given ciphers.
    func setCiphers(_ settings: TLSSettings) throws(TLSError) {
        guard (0...5).contains(settings.securityLevel) else {
            throw TLSError(.configuration(reason: "the security level is not within 0...5"))
        }
        if let list = settings.cipherList, unsafe SSL_CTX_set_cipher_list(context, list) != 1 {
            throw failure("cipher list “\(list)”")
        }
        if let suites = settings.cipherSuites, unsafe SSL_CTX_set_ciphersuites(context, suites) != 1 {
            throw failure("cipher suites “\(suites)”")
        }
        // After the list, which may contain its own level.
        unsafe SSL_CTX_set_security_level(context, Int32(settings.securityLevel))
    }

    func setOfferedProtocols(_ protocols: [String]) throws(TLSError) {
        var wire: [UInt8] = []
        for name in protocols {
            // The server may choose any offered protocol, and would then expect it.
            guard ["http/1.1", "http/1.0"].contains(name) else {
                let reason = "“\(name)” cannot be offered by ALPN: only http/1.1 and http/1.0 are supported"
                throw TLSError(.configuration(reason: reason))
            }
            wire += [UInt8(name.utf8.count)] + Array(name.utf8)
        }
        // Unlike other calls, this one returns 0 on success.
        guard unsafe wire.isEmpty || SSL_CTX_set_alpn_protos(context, wire, UInt32(wire.count)) == 0 else {
            throw failure("application protocols")
        }
    }

    /// Loads certificates and key, and checks that they belong together.
    func use(_ identity: TLSIdentity) throws(TLSError) {
        let loaded = try TLSIdentityLoader.load(identity)
        OpenSSLErrors.clear()
        var usesChain = unsafe SSL_CTX_use_certificate(context, loaded.leaf.pointer) == 1
        let usesKey = unsafe usesChain && SSL_CTX_use_PrivateKey(context, loaded.key.pointer) == 1
        for authority in loaded.authorities where usesKey && usesChain {
            usesChain = unsafe martlet_ctx_add1_chain_certificate(context, authority.pointer) == 1
        }
        guard usesChain, usesKey else {
            throw TLSError(
                .identity(
                    reason: OpenSSLErrors.drain().text, source: usesChain ? loaded.keySource : loaded.certificateSource)
            )
        }
    }

    /// Records that a server requests a certificate, so that a later rejection can be explained.
    func noteCertificateRequests() {
        unsafe SSL_CTX_set_cert_cb(
            context,
            { ssl, _ in
                unsafe TLSChannel.of(ssl)?.wasAskedForCertificate = true
                return 1
            }, nil)
    }

    /// Sets the authorities and the revocation lists.
    /// - Returns: The searched paths if no roots were found; else `nil`.
    func trust(_ policy: TrustPolicy, revocation: RevocationPolicy, systemRoots: () -> SystemRoots) throws(TLSError)
        -> [String]?
    {
        var given: [Certificate] = []
        for source in policy.roots { given += try PEMParser.certificates(of: source) }
        var lists: [RevocationList] = []
        for source in revocation.lists { lists += try PEMParser.revocationLists(of: source) }
        var flags: Int32 = 0
        if !revocation.lists.isEmpty {
            flags |= X509_V_FLAG_CRL_CHECK
            if revocation.scope == .wholeChain { flags |= X509_V_FLAG_CRL_CHECK_ALL }
        }
        for certificate in given where lists.contains(where: { $0.revokes(certificate) }) {
            revokedRoots.insert(unsafe Certificate.der(of: certificate.pointer))
        }
        // Given authorities are trusted without the authorities above them.
        if !given.isEmpty { flags |= X509_V_FLAG_PARTIAL_CHAIN }
        unsafe X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), UInt(flags))
        let system = policy.usesSystemRoots ? systemRoots() : nil
        // Only the machine's roots are shared by all contexts.
        if given.isEmpty, lists.isEmpty, let system, system.directories.isEmpty, let store = system.store {
            unsafe SSL_CTX_set1_cert_store(context, store.pointer)
            return nil
        }
        guard let store = TrustStore() else { throw failure("root certificates") }
        given.forEach(store.add)
        if let shared = system?.store { store.add(shared) }
        system?.directories.forEach(store.addDirectory)
        lists.forEach(store.add)
        // OpenSSL reads lists in a directory when it needs them.
        let canGrow = !lists.isEmpty && system?.directories.isEmpty == false
        let times = lists.map(\.times)
        listTimes = canGrow || times.contains(nil) ? nil : times.flatMap { $0 ?? [] }
        unsafe SSL_CTX_set1_cert_store(context, store.pointer)
        if given.isEmpty, system?.isEmpty ?? true { return system?.searched ?? ["no roots were given"] }
        return nil
    }

    /// Makes OpenSSL verify the peer's chain.
    /// - Parameter isStrict: Whether each certificate must conform to RFC 5280 where OpenSSL would be lenient.
    func verifyPeer(_ mode: Int32, isStrict: Bool) {
        let parameters = unsafe SSL_CTX_get0_param(context)
        if isStrict { unsafe X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_X509_STRICT)) }
        unsafe SSL_CTX_set_verify(context, mode, nil)
        unsafe SSL_CTX_set_cert_verify_callback(context, CertificateVerification.callback, nil)
    }

    /// Appends each connection's secrets to the key log of its context.
    func logKeys() {
        unsafe SSL_CTX_set_keylog_callback(context) { ssl, line in
            guard let line = unsafe line else { return }
            unsafe TLSChannel.of(ssl)?.context.keyLog?.append(String(cString: line))
        }
    }

    /// Stores the client's sessions in the cache of the context, or disables them.
    func keepSessions(_ isOn: Bool) {
        unsafe martlet_ctx_set_session_cache(context, isOn ? 1 : 0)
        guard isOn else { return }
        unsafe SSL_CTX_sess_set_new_cb(context) { ssl, session in
            guard let channel = unsafe TLSChannel.of(ssl), let key = channel.sessionKey else { return 0 }
            let evidence = unsafe SSL_session_reused(ssl) == 1 ? channel.offeredEvidence : channel.evidence
            if let session = unsafe session, let copy = unsafe TLSSession(copying: session, evidence: evidence) {
                channel.context.sessions?.insert(copy, for: key)
            }
            // 0: the cache has a copy, and takes over no reference from OpenSSL.
            return 0
        }
    }

    /// Disables tickets, on the client's and on the server's side.
    func useNoTickets() {
        unsafe martlet_ctx_set_no_ticket(context)
        unsafe SSL_CTX_set_num_tickets(context, 0)
    }
}

/// Chooses the first of the server's protocols that the client offers.
private func chooseProtocol(
    _ ssl: OpaquePointer?, _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
    _ chosenCount: UnsafeMutablePointer<UInt8>?, _ offered: UnsafePointer<UInt8>?, _ offeredCount: UInt32,
    _: UnsafeMutableRawPointer?
) -> Int32 {
    guard let channel = unsafe TLSChannel.of(ssl), let offered = unsafe offered else { return SSL_TLSEXT_ERR_NOACK }
    let bytes = unsafe UnsafeBufferPointer(start: offered, count: Int(offeredCount))
    for name in channel.context.applicationProtocols {
        var index = 0
        while index < bytes.count {
            let end = unsafe index + 1 + Int(bytes[index])
            guard end <= bytes.count else { break }
            if unsafe bytes[(index + 1)..<end].elementsEqual(name.utf8) {
                // The result points into the client's offer, which lives as long as OpenSSL needs it.
                unsafe chosen?.pointee = offered + (index + 1)
                unsafe chosenCount?.pointee = bytes[index]
                return SSL_TLSEXT_ERR_OK
            }
            index = end
        }
    }
    return SSL_TLSEXT_ERR_NOACK
}

/// The file to which the secrets of connections are appended, in the NSS key log format.
package final class KeyLogFile: Sendable {
    private let descriptor: Int32

    /// Opens the file for appending, or creates it with mode 0600.
    init(path: String) throws(SystemError) {
        let opened = unsafe open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0o600)
        guard opened >= 0 else { throw SystemError(operation: "open", code: errno) }
        // Writing to a pipe without a reader would end the process with SIGPIPE.
        var status = stat()
        let kind = unsafe fstat(opened, &status) == 0 ? status.st_mode & S_IFMT : 0
        guard kind == S_IFREG || kind == S_IFCHR else {
            close(opened)
            throw SystemError(operation: "open", code: EINVAL)
        }
        descriptor = opened
    }

    /// The error of opening a key log file; `nil` for none. Creates a missing file.
    package static func error(at path: String) -> SystemError? {
        do throws(SystemError) { _ = try KeyLogFile(path: path) } catch { return error }
        return nil
    }

    deinit { close(descriptor) }

    /// Appends a line in one call, so that lines of several processes do not mix. On a full disk only the line is lost.
    func append(_ line: String) {
        let bytes = Array(line.utf8) + [UInt8(ascii: "\n")]
        _ = Socket.retrying { unsafe write(descriptor, bytes, bytes.count) }
    }
}
