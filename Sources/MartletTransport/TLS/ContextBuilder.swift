import COpenSSL

/// Sets up an `SSL_CTX`, step by step; freed with the builder unless it is finished.
@safe final class ContextBuilder {
    private var pointer: OpaquePointer?
    private let context: OpaquePointer

    /// A context with what is the same for all.
    init(isServer: Bool) throws(TLSError) {
        OpenSSLErrors.clear()
        guard let context = unsafe SSL_CTX_new(isServer ? TLS_server_method() : TLS_client_method()) else {
            throw TLSError(.configuration(reason: OpenSSLErrors.drain().text))
        }
        unsafe self.context = context
        unsafe pointer = context
        unsafe martlet_ctx_set_mode(context)
        unsafe martlet_ctx_set_common_options(context)
        // One `recv` for a record, where OpenSSL would make two.
        unsafe martlet_ctx_set_read_ahead(context, 1)
        unsafe SSL_CTX_set_default_read_buffer_len(context, ContextBuilder.readBufferSize)
    }

    deinit { unsafe SSL_CTX_free(pointer) }

    /// Bytes asked for by one `recv`: a record and a little more. OpenSSL moves what is left in the buffer before each
    /// record, which in one of 64 KiB costs more than the calls it saves. It exists only while a record is incomplete.
    static let readBufferSize = 18 << 10

    /// Hands over the context.
    func finish() -> OpaquePointer {
        unsafe pointer = nil
        return unsafe context
    }

    private func failure(_ what: String) -> TLSError {
        TLSError(.configuration(reason: "\(what): \(OpenSSLErrors.drain().text)"))
    }

    /// Sets the versions spoken.
    func setVersions(_ minimum: TLSVersion, _ maximum: TLSVersion) throws(TLSError) {
        guard minimum <= maximum else {
            throw TLSError(.configuration(reason: "the oldest TLS version is newer than the newest"))
        }
        guard unsafe martlet_ctx_set_min_version(context, minimum.number) == 1,
            unsafe martlet_ctx_set_max_version(context, maximum.number) == 1
        else { throw failure("TLS versions") }
    }

    /// Sets the security level, and the ciphers where they are given.
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
        // After the list, which may carry a level of its own.
        unsafe SSL_CTX_set_security_level(context, Int32(settings.securityLevel))
    }

    /// Takes keys and digests of any strength.
    func allowWeakKeys() { unsafe SSL_CTX_set_security_level(context, 0) }

    /// Sets what ALPN offers.
    func setOfferedProtocols(_ protocols: [String]) throws(TLSError) {
        var wire: [UInt8] = []
        for name in protocols {
            guard (1...255).contains(name.utf8.count) else {
                throw TLSError(.configuration(reason: "an application protocol has 1 to 255 bytes"))
            }
            wire.append(UInt8(name.utf8.count))
            wire += Array(name.utf8)
        }
        guard !wire.isEmpty else { return }
        // This one call gives 0 when all is well.
        guard unsafe SSL_CTX_set_alpn_protos(context, wire, UInt32(wire.count)) == 0 else {
            throw failure("application protocols")
        }
    }

    /// Has the server choose by its own order among what the client offers.
    func chooseProtocols() { unsafe SSL_CTX_set_alpn_select_cb(context, chooseProtocol, nil) }

    /// Loads certificates and key, and checks that they belong together.
    func use(_ identity: TLSIdentity) throws(TLSError) {
        let loaded = try IdentityReader.load(identity)
        OpenSSLErrors.clear()
        guard unsafe SSL_CTX_use_certificate(context, loaded.leaf.pointer) == 1 else {
            throw TLSError(.identity(reason: OpenSSLErrors.drain().text, source: loaded.certificateSource))
        }
        guard unsafe SSL_CTX_use_PrivateKey(context, loaded.key.pointer) == 1 else {
            throw TLSError(.identity(reason: OpenSSLErrors.drain().text, source: loaded.keySource))
        }
        for certificate in loaded.authorities {
            guard unsafe martlet_ctx_add1_chain_certificate(context, certificate.pointer) == 1 else {
                throw TLSError(
                    .identity(reason: OpenSSLErrors.drain().text, source: loaded.certificateSource))
            }
        }
    }

    /// Tells servers of TLS 1.3 that they may ask for the certificate later, as some do for a part of a site alone
    /// (RFC 8446 §4.2.6).
    func offerPostHandshakeAuthentication() { unsafe SSL_CTX_set_post_handshake_auth(context, 1) }

    /// Has it noted that a server asks for a certificate, so that its refusal can be told for what it is.
    func noteCertificateRequests() {
        unsafe SSL_CTX_set_cert_cb(
            context,
            { ssl, _ in
                unsafe TLSChannel.of(ssl)?.wasAskedForCertificate = true
                return 1
            }, nil)
    }

    /// Sets the authorities.
    /// - Returns: Where roots were looked for, when there are none at all.
    func trust(
        _ policy: TrustPolicy, revocation: RevocationPolicy = .none, systemRoots: () -> SystemRoots
    ) throws(TLSError) -> [String]? {
        var given: [Certificate] = []
        for source in policy.roots { given += try PEMReader.certificates(of: source) }
        var lists: [RevocationList] = []
        for source in revocation.lists { lists += try RevocationList.lists(of: source) }
        lookUp(revocation, isWholeChainNeeded: given.isEmpty)
        let system = policy.usesSystemRoots ? systemRoots() : nil
        // The machine's roots alone are shared by all contexts.
        if given.isEmpty, lists.isEmpty, let system, system.folders.isEmpty, let store = system.store {
            unsafe SSL_CTX_set1_cert_store(context, store.pointer)
            return nil
        }
        guard let store = TrustStore() else { throw failure("root certificates") }
        given.forEach(store.add)
        if let shared = system?.store { store.add(shared) }
        system?.folders.forEach(store.addFolder)
        lists.forEach(store.add)
        unsafe SSL_CTX_set1_cert_store(context, store.pointer)
        if given.isEmpty, system?.isEmpty ?? true { return system?.searched ?? ["no roots were given"] }
        return nil
    }

    /// Has revocation lists looked at, and authorities that were given trusted without those above them.
    private func lookUp(_ revocation: RevocationPolicy, isWholeChainNeeded: Bool) {
        var flags: Int32 = 0
        if revocation.isOn {
            flags |= X509_V_FLAG_CRL_CHECK
            if revocation.scope == .wholeChain { flags |= X509_V_FLAG_CRL_CHECK_ALL }
        }
        if !isWholeChainNeeded { flags |= X509_V_FLAG_PARTIAL_CHAIN }
        unsafe X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), UInt(flags))
    }

    /// Has the peer's chain verified.
    /// - Parameter isStrict: Whether each certificate must keep to RFC 5280 where OpenSSL would be lenient.
    func verifyPeer(_ mode: Int32, isStrict: Bool = true) {
        let parameters = unsafe SSL_CTX_get0_param(context)
        if isStrict { unsafe X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_X509_STRICT)) }
        unsafe SSL_CTX_set_verify(context, mode, nil)
        unsafe SSL_CTX_set_cert_verify_callback(context, CertificateVerification.callback, nil)
    }

    /// Opens the key log.
    static func keyLog(at path: String) throws(TLSError) -> KeyLogFile {
        do throws(SystemError) {
            return try KeyLogFile(path: path)
        } catch {
            throw TLSError(.configuration(reason: "key log file \(path): \(error)"))
        }
    }

    /// Has each connection's secrets given to its context's key log.
    func logKeys() {
        unsafe SSL_CTX_set_keylog_callback(context) { ssl, line in
            guard let line = unsafe line else { return }
            unsafe TLSChannel.of(ssl)?.context.keyLog?.append(String(cString: line))
        }
    }

    /// Has the client's sessions given to its context's cache, or none asked for.
    func keepSessions(_ isOn: Bool) {
        unsafe martlet_ctx_set_session_cache(context, isOn ? 1 : 0)
        guard isOn else { return }
        unsafe SSL_CTX_sess_set_new_cb(context) { ssl, session in
            guard let channel = unsafe TLSChannel.of(ssl), let key = channel.sessionKey else { return 0 }
            let evidence = unsafe SSL_session_reused(ssl) == 1 ? channel.offeredEvidence : channel.evidence
            if let session = unsafe session,
                let copy = unsafe TLSSession(copying: session, evidence: evidence)
            {
                channel.context.sessions?.insert(copy, for: key)
            }
            // 0: OpenSSL keeps its own reference.
            return 0
        }
    }

    /// Has no tickets asked for or issued.
    func useNoTickets() {
        unsafe martlet_ctx_set_no_ticket(context)
        unsafe SSL_CTX_set_num_tickets(context, 0)
    }

    /// Names the sessions of a server, without which OpenSSL resumes none that showed a client certificate.
    func nameSessions() {
        let name = Array("martlet".utf8)
        unsafe SSL_CTX_set_session_id_context(context, name, UInt32(name.count))
    }
}

/// The server's choice among the protocols that a client offers.
private func chooseProtocol(
    _ ssl: OpaquePointer?, _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
    _ chosenCount: UnsafeMutablePointer<UInt8>?, _ offered: UnsafePointer<UInt8>?, _ offeredCount: UInt32,
    _: UnsafeMutableRawPointer?
) -> Int32 {
    guard let channel = unsafe TLSChannel.of(ssl), let offered = unsafe offered else {
        return SSL_TLSEXT_ERR_NOACK
    }
    let bytes = unsafe UnsafeBufferPointer(start: offered, count: Int(offeredCount))
    for name in channel.context.applicationProtocols {
        var index = 0
        while index < bytes.count {
            let count = unsafe Int(bytes[index])
            let end = index + 1 + count
            guard end <= bytes.count else { break }
            if unsafe bytes[(index + 1)..<end].elementsEqual(name.utf8) {
                // The answer points into the client's offer, which lives as long as the callback's caller
                // needs it.
                unsafe chosen?.pointee = offered + (index + 1)
                unsafe chosenCount?.pointee = bytes[index]
                return SSL_TLSEXT_ERR_OK
            }
            index = end
        }
    }
    return SSL_TLSEXT_ERR_NOACK
}
