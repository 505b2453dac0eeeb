import CMartletOpenSSL

/// The `SSL` object of one connection. Each call empties OpenSSL's error queue, calls OpenSSL, and reads the result and
/// the queue, all on one thread. Not sendable: the stream makes the calls one at a time, under its lock.
@safe final class TLSEngine {
    enum Pause {
        /// The peer must send first.
        case wantsRead
        /// Written bytes must be sent first.
        case wantsWrite
        /// The custom trust policy must decide first; only in a client's handshake.
        case wantsDecision
    }

    enum Outcome {
        case moved(Int)
        case paused(Pause)
        case endOfStream(isClean: Bool)
    }

    private let ssl: OpaquePointer
    private let channel: TLSChannel
    /// Whether a fatal error has occurred. After it, OpenSSL may only free the object.
    private(set) var isBroken = false
    /// The error after which nothing can be written, while bytes from the peer can still be read.
    private var writeFailure: TransportError?
    /// Whether sending a `close_notify` was started. In OpenSSL a later write is a fatal error.
    private var hasEndedWriting = false
    private var hasSentCloseNotify = false
    private var hasHandshaken = false
    /// Whether a session was offered for resumption.
    private var offersSession = false

    /// Creates a client's engine.
    /// - Parameters:
    ///   - carrier: The TLS stream to a proxy, if it carries the records; `nil` if the socket does.
    ///   - port: The port in the key of the session cache.
    ///   - proxy: The proxy in the key of the session cache.
    init(client socket: Socket, carrier: TLSStream?, context: TLSContext, serverName: String, port: Int, proxy: String)
        throws(TLSError)
    {
        let name = PeerName(serverName)
        let verifiesName = context.verifiesPeer && context.verifiesHostName
        if name == nil, verifiesName {
            throw TLSError(.configuration(reason: "no certificate can match this host name"), host: serverName)
        }
        let host = name?.text ?? serverName
        let key = context.sessions.map { _ in TLSSessionCache.Key(host: host, port: port, proxy: proxy) }
        channel = TLSChannel(socket: socket, carrier: carrier, context: context, host: host, sessionKey: key)
        unsafe ssl = try TLSEngine.make(channel)
        var isSet = true
        switch name {
        case .host(let host):
            isSet = unsafe martlet_ssl_set_server_name(ssl, host) == 1
            if verifiesName {
                let parameters = unsafe SSL_get0_param(ssl)
                // Set here, since OpenSSL inherits host flags from a context only together with host names.
                unsafe X509_VERIFY_PARAM_set_hostflags(
                    parameters, UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
                let isNamed = unsafe X509_VERIFY_PARAM_set1_host(parameters, host, host.utf8.count) == 1
                isSet = isSet && isNamed
            }
        case .address(let address):
            if verifiesName { isSet = unsafe X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), address) == 1 }
        case nil: break
        }
        guard isSet else { throw TLSError(.configuration(reason: OpenSSLErrors.drain().text), host: host) }
        if let key, let session = context.sessions?.take(for: key) {
            unsafe SSL_set_session(ssl, session.pointer)
            offersSession = true
            channel.offeredEvidence = session.evidence
        }
        unsafe SSL_set_connect_state(ssl)
    }

    init(server socket: Socket, carrier: TLSStream?, context: TLSContext) throws(TLSError) {
        channel = TLSChannel(socket: socket, carrier: carrier, context: context, host: "", sessionKey: nil)
        unsafe ssl = try TLSEngine.make(channel)
        unsafe SSL_set_accept_state(ssl)
    }

    deinit { unsafe SSL_free(ssl) }

    private static func make(_ channel: TLSChannel) throws(TLSError) -> OpaquePointer {
        OpenSSLErrors.clear()
        let ssl = unsafe SSL_new(channel.context.pointer)
        guard let ssl = unsafe ssl, let bio = unsafe SocketBIO.make(channel) else {
            unsafe SSL_free(ssl)
            throw TLSError(.configuration(reason: OpenSSLErrors.drain().text), host: channel.host)
        }
        unsafe SSL_set_bio(ssl, bio, bio)
        unsafe SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(channel).toOpaque())
        return unsafe ssl
    }

    // MARK: Calls

    /// Advances the handshake as far as possible; `nil` when it is complete.
    func handshake() throws(TransportError) -> Pause? {
        switch try perform({ unsafe SSL_do_handshake(ssl) }) {
        case .moved:
            try checkPinsOfResumed()
            hasHandshaken = true
            channel.nonApplicationByteCount = 0
            return nil
        case .paused(let pause): return pause
        case .endOfStream: throw .tls(TLSError(.truncated, host: channel.host))
        }
    }

    /// Removes the stored sessions of the destination if the failed handshake offered one. Otherwise a server that does
    /// not tolerate the offer would reject every connection as long as sessions are stored.
    func forgetOfferedSessions() {
        guard offersSession, !hasHandshaken, let key = channel.sessionKey else { return }
        channel.context.sessions?.removeAll(for: key)
    }

    /// Checks the pins of a resumed session, which has no certificates, against the connection that created it.
    private func checkPinsOfResumed() throws(TransportError) {
        guard let pins = channel.context.verification.pins, unsafe SSL_session_reused(ssl) == 1 else { return }
        let evidence = channel.offeredEvidence
        if let evidence, pins.isSatisfied(by: evidence) { return }
        isBroken = true
        throw failure(.pinMismatch(found: evidence?.publicKeys ?? []))
    }

    /// Stores the error that ends the connection.
    private func failure(_ kind: TLSError.Kind) -> TransportError {
        let error = TransportError.tls(TLSError(kind, host: channel.host))
        channel.failure = error
        return error
    }

    /// The call of the custom trust policy, after ``Pause/wantsDecision``.
    var question: (@Sendable () async -> TrustDecision)? { channel.question }

    /// Stores the decision of the custom trust policy, so that the handshake can continue.
    func decide(_ decision: TrustDecision) {
        channel.question = nil
        channel.decision = decision
    }

    /// Decrypts into a buffer.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) -> Outcome {
        defer { releaseBuffers() }
        var total = 0
        // Reads all bytes that OpenSSL or the socket has, so that the caller needs no second call.
        repeat {
            var count = 0
            let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[total...])
            let outcome: Outcome
            do throws(TransportError) {
                outcome = try perform { unsafe SSL_read_ex(ssl, rest.baseAddress, rest.count, &count) }
            } catch {
                // Bytes before the error are valid; the next call throws the error again.
                if total > 0 { return .moved(total) }
                throw error
            }
            guard case .moved = outcome else { return total > 0 ? .moved(total) : outcome }
            channel.nonApplicationByteCount = 0
            total += count
        } while total < buffer.count && (hasPendingBytes || channel.socket.readiness.isWorthReading)
        return .moved(total)
    }

    /// Encrypts from a buffer.
    func write(_ buffer: UnsafeRawBufferPointer) throws(TransportError) -> Outcome {
        guard !hasEndedWriting else { throw .closed }
        if let writeFailure { throw writeFailure }
        var count = 0
        let outcome: Outcome
        do throws(TransportError) {
            outcome = try perform { unsafe SSL_write_ex(ssl, buffer.baseAddress, buffer.count, &count) }
        } catch {
            guard case .system = error else { throw error }
            if let rejection = receivedAlert() {
                channel.failure = rejection
                throw rejection
            }
            // Only writing has ended: a peer that responded early and closed may have sent bytes that are not read yet.
            writeFailure = error
            isBroken = false
            throw error
        }
        if case .moved = outcome { return .moved(count) }
        return outcome
    }

    /// Returns the alert that the peer sent before it closed the connection, which is more specific than the socket's
    /// error. In TLS 1.3, a server rejects a client certificate by such an alert.
    private func receivedAlert() -> TransportError? {
        channel.alwaysChecksSocket = true
        defer { channel.alwaysChecksSocket = false }
        OpenSSLErrors.clear()
        var byte: UInt8 = 0
        var count = 0
        guard unsafe SSL_peek_ex(ssl, &byte, 1, &count) != 1 else { return nil }
        let errors = OpenSSLErrors.drain()
        if errors.alert == nil { return nil }
        return .tls(TLSError(kind(ofAlert: errors) ?? errors.kind, host: channel.host))
    }

    /// Checks for application data without consuming it; messages of TLS itself, such as tickets, are processed.
    func peek() throws(TransportError) -> Outcome {
        if !hasPendingBytes, channel.probe() == .quiet { return .paused(.wantsRead) }
        channel.alwaysChecksSocket = true
        channel.nonApplicationByteLimit = min(
            TLSChannel.readByteLimit, channel.nonApplicationByteCount + TLSChannel.probeByteLimit)
        defer {
            channel.alwaysChecksSocket = false
            channel.nonApplicationByteLimit = TLSChannel.readByteLimit
            releaseBuffers()
        }
        var byte: UInt8 = 0
        var count = 0
        let outcome = try perform { unsafe SSL_peek_ex(ssl, &byte, 1, &count) }
        if case .moved = outcome { return .moved(count) }
        return outcome
    }

    /// Updates this side's keys, and requests that the peer updates its keys.
    /// - Throws: `.closed` if the version of TLS has no key update.
    func renewKeys() throws(TransportError) {
        guard unsafe SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) == 1 else {
            OpenSSLErrors.clear()
            throw .closed
        }
        _ = try perform { unsafe SSL_do_handshake(ssl) }
    }

    /// Sends a `close_notify`, if that is allowed now and the socket accepts it.
    /// - Returns: Whether the `close_notify` must still be sent.
    @discardableResult func shutdown() -> Bool {
        guard hasHandshaken, !isBroken, writeFailure == nil, !hasSentCloseNotify else { return false }
        hasEndedWriting = true
        OpenSSLErrors.clear()
        channel.failure = nil
        let result = unsafe SSL_shutdown(ssl)
        // 0 if the peer's `close_notify` is missing, but also if a second attempt still finds the socket full.
        let code = result <= 0 ? unsafe SSL_get_error(ssl, result) : SSL_ERROR_NONE
        OpenSSLErrors.clear()
        let isPending = code == SSL_ERROR_WANT_WRITE
        hasSentCloseNotify = !isPending
        return isPending
    }

    /// Frees OpenSSL's buffers between two records. For each ticket OpenSSL allocates a write buffer of 16 KiB. In
    /// spite of `SSL_MODE_RELEASE_BUFFERS` it frees the buffer only after the next write.
    private func releaseBuffers() {
        // Without the fix of CVE-2024-4741, OpenSSL would also free a record that is incomplete or not read completely.
        guard !isBroken, !hasPendingBytes, unsafe SSL_pending(ssl) == 0,
            unsafe SSL_rstate_string(ssl)[1] == CChar(UInt8(ascii: "H"))
        else { return }
        unsafe SSL_free_buffers(ssl)
    }

    /// Whether decrypted bytes are waiting inside OpenSSL, or a record to be decrypted.
    var hasPendingBytes: Bool { unsafe SSL_has_pending(ssl) == 1 }

    private func perform(_ call: () -> Int32) throws(TransportError) -> Outcome {
        if isBroken {
            if channel.isAtEnd { return .endOfStream(isClean: false) }
            throw channel.failure ?? .closed
        }
        OpenSSLErrors.clear()
        channel.failure = nil
        let result = call()
        if result > 0 { return .moved(0) }
        switch unsafe SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ: return .paused(.wantsRead)
        case SSL_ERROR_WANT_WRITE: return .paused(.wantsWrite)
        case SSL_ERROR_WANT_RETRY_VERIFY: return .paused(.wantsDecision)
        case SSL_ERROR_ZERO_RETURN: return .endOfStream(isClean: true)
        default: break
        }
        let errors = OpenSSLErrors.drain()
        isBroken = true
        // The socket's error is the cause only if TLS reports none: after a TLS error, sending the alert may fail, too.
        if errors.entries.isEmpty, rejection == nil, let failure = channel.failure { throw failure }
        if hasHandshaken, errors.isUnexpectedEnd || (errors.entries.isEmpty && channel.isAtEnd) {
            channel.isAtEnd = true
            return .endOfStream(isClean: false)
        }
        let error = failure(kind(of: errors))
        // A TLS error takes precedence over the end of the stream.
        channel.isAtEnd = false
        throw error
    }

    /// The reason for the rejection of the peer's chain. It ended the handshake, even if the alert could not be sent.
    private var rejection: TLSError.Kind? { hasHandshaken ? nil : channel.rejection }

    private func kind(of errors: OpenSSLErrors) -> TLSError.Kind {
        if let rejection { return rejection }
        let verification = unsafe SSL_get_verify_result(ssl)
        if errors.contains(SSL_R_CERTIFICATE_VERIFY_FAILED), verification != Int(X509_V_OK) {
            return unsafe CertificateVerification.kind(
                code: verification, leaf: nil, missingRoots: channel.context.missingRoots)
        }
        if errors.entries.isEmpty, channel.isAtEnd { return .truncated }
        return kind(ofAlert: errors) ?? errors.kind
    }

    /// The meaning of an alert about this side's certificate, or about a missing one.
    private func kind(ofAlert errors: OpenSSLErrors) -> TLSError.Kind? {
        guard let alert = errors.alert, channel.wasAskedForCertificate else { return nil }
        switch Int32(alert.number) {
        case SSL_AD_CERTIFICATE_REQUIRED: return .clientCertificateRequired
        case SSL_AD_HANDSHAKE_FAILURE where !channel.context.hasIdentity,
            SSL_AD_BAD_CERTIFICATE where !channel.context.hasIdentity:
            // TLS 1.2 has no separate alert for a missing certificate.
            return .clientCertificateRequired
        case SSL_AD_BAD_CERTIFICATE, SSL_AD_UNSUPPORTED_CERTIFICATE, SSL_AD_CERTIFICATE_REVOKED,
            SSL_AD_CERTIFICATE_EXPIRED, SSL_AD_CERTIFICATE_UNKNOWN, SSL_AD_UNKNOWN_CA, SSL_AD_ACCESS_DENIED:
            return .clientCertificateRejected(alert: alert.number, text: alert.text)
        default: return nil
        }
    }

    // MARK: Results

    var information: TLSInformation {
        var chosen: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        unsafe SSL_get0_alpn_selected(ssl, &chosen, &count)
        let name = unsafe chosen.map { unsafe Array(UnsafeBufferPointer(start: $0, count: Int(count))) } ?? []
        let cipher = unsafe SSL_CIPHER_get_name(SSL_get_current_cipher(ssl))
        let leaf = unsafe SSL_get0_peer_certificate(ssl)
        var information = TLSInformation(
            version: unsafe String(cString: SSL_get_version(ssl)),
            cipher: unsafe cipher.map { unsafe String(cString: $0) } ?? "",
            applicationProtocol: name.isEmpty ? nil : String(decoding: name, as: UTF8.self),
            isResumed: unsafe SSL_session_reused(ssl) == 1,
            peerCertificate: unsafe leaf.map { unsafe Certificate.der(of: $0) } ?? [])
        information.acceptedError = channel.acceptedError
        return information
    }

    /// On the server's side: the name in the client's SNI.
    var requestedServerName: String? {
        unsafe SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { unsafe String(cString: $0) }
    }
}
