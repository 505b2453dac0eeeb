import COpenSSL

/// One connection's `SSL`: each call clears OpenSSL's error queue, calls, asks for the outcome and empties
/// the queue, all on one thread.
///
/// Not sendable: the stream makes the calls one at a time, under its lock.
@safe final class TLSEngine {
    /// How a call ended that moved nothing.
    enum Pause {
        /// The peer must send first.
        case wantsRead
        /// What was written must go out first.
        case wantsWrite
        /// The custom trust policy must be asked first; in a client's handshake alone.
        case wantsDecision
    }

    /// How a call ended.
    package enum Outcome {
        case moved(Int)
        case paused(Pause)
        case endOfStream(isClean: Bool)
    }

    private let ssl: OpaquePointer
    private let channel: TLSChannel
    /// After a fatal error OpenSSL allows no further call but freeing.
    private(set) var isBroken = false
    /// Why nothing can be written any more, though what the peer has sent can still be read.
    private var writeFailure: TransportError?
    /// A `close_notify` was begun, and perhaps sent: OpenSSL takes a write after it for a fatal error.
    private var hasEndedWriting = false
    private var hasSentCloseNotify = false
    private var hasHandshaken = false
    /// Whether a session was offered to be resumed.
    private var offersSession = false

    /// A client's engine.
    /// - Parameters:
    ///   - carrier: The stream that the records go over, where it is another TLS on the socket.
    ///   - port: The port the session is filed under.
    ///   - proxy: The proxy it is filed under.
    init(
        client socket: Socket, carrier: TLSStream? = nil, context: TLSContext, serverName: String, port: Int,
        proxy: String = ""
    ) throws(TLSError) {
        let name = PeerName(serverName)
        if name == nil, context.verifiesPeer && context.verifiesHostName {
            throw TLSError(
                .configuration(reason: "a certificate cannot be checked for this host"), host: serverName)
        }
        let host = name?.text ?? serverName
        let key = context.sessions.map { _ in TLSSessionCache.Key(host: host, port: port, proxy: proxy) }
        channel = TLSChannel(socket: socket, carrier: carrier, context: context, host: host, sessionKey: key)
        unsafe ssl = try TLSEngine.make(channel)
        var isSet = true
        switch name {
        case .host(let host):
            isSet = unsafe martlet_ssl_set_server_name(ssl, host) == 1
            if context.verifiesPeer && context.verifiesHostName {
                let parameters = unsafe SSL_get0_param(ssl)
                // Set beside the name, since OpenSSL hands them down from a context only together with names.
                unsafe X509_VERIFY_PARAM_set_hostflags(
                    parameters,
                    UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
                let isNamed = unsafe X509_VERIFY_PARAM_set1_host(parameters, host, host.utf8.count) == 1
                isSet = isSet && isNamed
            }
        case .address(let address):
            if context.verifiesPeer && context.verifiesHostName {
                isSet = unsafe X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), address) == 1
            }
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

    /// A server's engine.
    init(server socket: Socket, carrier: TLSStream? = nil, context: TLSContext) throws(TLSError) {
        channel = TLSChannel(socket: socket, carrier: carrier, context: context, host: "", sessionKey: nil)
        unsafe ssl = try TLSEngine.make(channel)
        unsafe SSL_set_accept_state(ssl)
    }

    deinit { unsafe SSL_free(ssl) }

    private static func make(_ channel: TLSChannel) throws(TLSError) -> OpaquePointer {
        OpenSSLErrors.clear()
        guard let ssl = unsafe SSL_new(channel.context.pointer) else {
            throw TLSError(.configuration(reason: OpenSSLErrors.drain().text), host: channel.host)
        }
        guard let bio = unsafe SocketBIO.make(channel) else {
            unsafe SSL_free(ssl)
            throw TLSError(.configuration(reason: OpenSSLErrors.drain().text), host: channel.host)
        }
        unsafe SSL_set_bio(ssl, bio, bio)
        unsafe SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(channel).toOpaque())
        return unsafe ssl
    }

    // MARK: Calls

    /// Takes the handshake as far as it goes; `nil` when it is complete.
    func handshake() throws(TransportError) -> Pause? {
        switch try perform({ unsafe SSL_do_handshake(ssl) }) {
        case .moved:
            try checkPinsOfResumed()
            hasHandshaken = true
            channel.silentByteCount = 0
            return nil
        case .paused(let pause): return pause
        case .endOfStream: throw .tls(TLSError(.truncated, host: channel.host))
        }
    }

    /// Forgets the sessions with the place, where the handshake that failed offered one: a server that cannot bear it
    /// would refuse every connection as long as there are any.
    func forgetOfferedSessions() {
        guard offersSession, !hasHandshaken, let key = channel.sessionKey else { return }
        channel.context.sessions?.removeAll(for: key)
    }

    /// A resumed session shows no certificates: the pins are held against those of the connection that made it.
    private func checkPinsOfResumed() throws(TransportError) {
        guard let pins = channel.context.verification.pins, unsafe SSL_session_reused(ssl) == 1 else {
            return
        }
        let evidence = channel.offeredEvidence
        guard let evidence, pins.isSatisfied(by: evidence) else {
            isBroken = true
            let kind = TLSError.Kind.pinMismatch(found: evidence?.publicKeys ?? [])
            let error = TransportError.tls(TLSError(kind, host: channel.host))
            channel.failure = error
            throw error
        }
    }

    /// What the custom trust policy is to be asked, after ``Pause/wantsDecision``.
    var question: TrustQuestion? { channel.question }

    /// Notes what it has said; the handshake can go on.
    func decide(_ decision: TrustDecision) {
        channel.question = nil
        channel.decision = decision
    }

    /// Decrypts into a buffer.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) -> Outcome {
        var total = 0
        // As long as OpenSSL holds more, it costs nothing to take it along.
        repeat {
            var count = 0
            let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[total...])
            let outcome: Outcome
            do throws(TransportError) {
                outcome = try perform { unsafe SSL_read_ex(ssl, rest.baseAddress, rest.count, &count) }
            } catch {
                // What came before the fault is good; the fault comes again.
                if total > 0 { return .moved(total) }
                throw error
            }
            guard case .moved = outcome else { return total > 0 ? .moved(total) : outcome }
            channel.silentByteCount = 0
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
            if let refusal = receivedAlert() {
                channel.failure = refusal
                throw refusal
            }
            // Only writing is over: a peer that answered early and closed has said something that is still to be read.
            writeFailure = error
            isBroken = false
            throw error
        }
        if case .moved = outcome { return .moved(count) }
        return outcome
    }

    /// The alert that the peer sent before it cut the connection, which tells more than that it did so; under
    /// TLS 1.3 a refused client certificate is told in this way.
    private func receivedAlert() -> TransportError? {
        channel.asksKernel = true
        defer { channel.asksKernel = false }
        OpenSSLErrors.clear()
        var byte: UInt8 = 0
        var count = 0
        guard unsafe SSL_peek_ex(ssl, &byte, 1, &count) != 1 else { return nil }
        let errors = OpenSSLErrors.drain()
        return errors.alert == nil
            ? nil : .tls(TLSError(kind(ofAlert: errors) ?? errors.kind, host: channel.host))
    }

    /// Looks for bytes of the application without taking them; what belongs to TLS itself, such as tickets,
    /// is handled.
    func peek() throws(TransportError) -> Outcome {
        if !hasPendingBytes, channel.look() == .quiet { return .paused(.wantsRead) }
        channel.asksKernel = true
        channel.silentByteLimit = min(
            TLSChannel.mostSilentBytes, channel.silentByteCount + TLSChannel.mostSilentBytesOfLook)
        defer {
            channel.asksKernel = false
            channel.silentByteLimit = TLSChannel.mostSilentBytes
        }
        var byte: UInt8 = 0
        var count = 0
        let outcome = try perform { unsafe SSL_peek_ex(ssl, &byte, 1, &count) }
        if case .moved = outcome { return .moved(count) }
        return outcome
    }

    /// Sends new keys, and asks the peer for its own.
    /// - Throws: `.closed` where the version of TLS knows no such thing.
    func renewKeys() throws(TransportError) {
        guard unsafe SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) == 1 else {
            OpenSSLErrors.clear()
            throw .closed
        }
        _ = try perform { unsafe SSL_do_handshake(ssl) }
    }

    /// Sends a `close_notify`, if that is allowed now and the socket takes it.
    /// - Returns: Whether it is still to be sent.
    @discardableResult
    func shutdown() -> Bool {
        guard hasHandshaken, !isBroken, writeFailure == nil, !hasSentCloseNotify else { return false }
        hasEndedWriting = true
        OpenSSLErrors.clear()
        channel.failure = nil
        let result = unsafe SSL_shutdown(ssl)
        // 0 when it waits for the peer's, but also when a second try finds no room either.
        let code = result <= 0 ? unsafe SSL_get_error(ssl, result) : SSL_ERROR_NONE
        OpenSSLErrors.clear()
        let isPending = code == SSL_ERROR_WANT_WRITE
        hasSentCloseNotify = !isPending
        return isPending
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
        let code = unsafe SSL_get_error(ssl, result)
        switch code {
        case SSL_ERROR_WANT_READ: return .paused(.wantsRead)
        case SSL_ERROR_WANT_WRITE: return .paused(.wantsWrite)
        case SSL_ERROR_WANT_RETRY_VERIFY: return .paused(.wantsDecision)
        case SSL_ERROR_ZERO_RETURN: return .endOfStream(isClean: true)
        default: break
        }
        let errors = OpenSSLErrors.drain()
        isBroken = true
        // The socket's failure is the cause only where TLS itself has none to tell: it may have come from the
        // alert that OpenSSL sent about something worse.
        if errors.entries.isEmpty, refusal == nil, let failure = channel.failure { throw failure }
        if hasHandshaken, errors.isUnexpectedEnd || (errors.entries.isEmpty && channel.isAtEnd) {
            channel.isAtEnd = true
            return .endOfStream(isClean: false)
        }
        let error = TransportError.tls(TLSError(kind(of: errors), host: channel.host))
        channel.failure = error
        // The stream is at its end only where nothing worse is known.
        channel.isAtEnd = false
        throw error
    }

    /// Why the peer's chain was refused, which ends the handshake: the cause, whatever became of the alert about it.
    private var refusal: TLSError.Kind? { hasHandshaken ? nil : channel.refusal }

    private func kind(of errors: OpenSSLErrors) -> TLSError.Kind {
        if let refusal { return refusal }
        let verification = unsafe SSL_get_verify_result(ssl)
        if errors.contains(SSL_R_CERTIFICATE_VERIFY_FAILED), verification != Int(X509_V_OK) {
            return unsafe CertificateVerification.kind(
                code: verification, leaf: nil, missingRoots: channel.context.missingRoots)
        }
        if errors.entries.isEmpty, channel.isAtEnd { return .truncated }
        return kind(ofAlert: errors) ?? errors.kind
    }

    /// What an alert means that is the answer to this side's certificate, or to there being none.
    private func kind(ofAlert errors: OpenSSLErrors) -> TLSError.Kind? {
        guard let alert = errors.alert, channel.wasAskedForCertificate else { return nil }
        switch Int32(alert.number) {
        case SSL_AD_CERTIFICATE_REQUIRED: return .clientCertificateRequired
        case SSL_AD_HANDSHAKE_FAILURE where !channel.context.hasIdentity,
            SSL_AD_BAD_CERTIFICATE where !channel.context.hasIdentity:
            // Before TLS 1.3 there was no alert of its own for it.
            return .clientCertificateRequired
        case SSL_AD_BAD_CERTIFICATE, SSL_AD_UNSUPPORTED_CERTIFICATE, SSL_AD_CERTIFICATE_REVOKED,
            SSL_AD_CERTIFICATE_EXPIRED, SSL_AD_CERTIFICATE_UNKNOWN, SSL_AD_UNKNOWN_CA, SSL_AD_ACCESS_DENIED:
            return .clientCertificateRefused(alert: alert.number, text: alert.text)
        default: return nil
        }
    }

    // MARK: What the handshake agreed on

    /// The result of the handshake.
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
        information.acceptedFault = channel.acceptedFault
        return information
    }

    /// On the server's side: the name that the client asked for by SNI.
    var requestedServerName: String? {
        unsafe SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { unsafe String(cString: $0) }
    }
}
