import CMartletOpenSSL

/// The state of one connection for OpenSSL's callbacks: the socket, and results of the callbacks. Not sendable: used
/// only inside OpenSSL's calls, which the stream makes under its lock.
final class TLSChannel {
    let socket: Socket
    /// The TLS stream to a proxy, if it carries the records; `nil` if the socket does.
    let carrier: TLSStream?
    let context: TLSContext
    /// The server's name or address on the client's side; empty on the server's.
    let host: String
    /// The key of the connection's sessions; `nil` if they are not stored.
    let sessionKey: TLSSessionCache.Key?
    /// The error that ended the last call: that of the socket or the carrier, or a TLS error.
    var failure: TransportError?
    /// Whether reads call the kernel even if the latch is not set: the loop may be about to signal.
    var alwaysChecksSocket = false
    /// Whether the peer has ended the TCP stream.
    var isAtEnd = false
    /// The number of bytes received since the last application data, or since the handshake.
    var nonApplicationByteCount = 0
    /// The limit of ``nonApplicationByteCount``, at which receiving fails.
    var nonApplicationByteLimit = TLSChannel.readByteLimit
    var rejection: TLSError.Kind?
    /// The error of the peer's chain that the custom trust policy accepted.
    var acceptedError: TLSError.Kind?
    /// The certificates and keys with which the pins were compared, if there are pins.
    var evidence: PinCandidates?
    /// The ``evidence`` of the connection that created the session which is offered for resumption.
    var offeredEvidence: PinCandidates?
    /// The call of the custom trust policy that the handshake waits for.
    var question: (@Sendable () async -> TrustDecision)?
    var decision: TrustDecision?
    /// Whether the server has requested a certificate.
    var wasAskedForCertificate = false
    /// The maximum number of bytes without application data: 256 KiB. A handshake is below 200 KiB; tickets and other
    /// messages of TLS itself have a few hundred bytes. Without the limit, a peer that sends only these could block the
    /// reading thread forever, since OpenSSL processes them all in one call.
    static let readByteLimit = 256 << 10
    /// The same limit for one check of an idle connection, on the loop's thread: 32 KiB.
    static let probeByteLimit = 32 << 10

    init(socket: Socket, carrier: TLSStream?, context: TLSContext, host: String, sessionKey: TLSSessionCache.Key?) {
        (self.socket, self.carrier, self.context) = (socket, carrier, context)
        (self.host, self.sessionKey) = (host, sessionKey)
    }

    /// Receives from the socket or the carrier.
    func receive(into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) -> ReadOutcome {
        guard nonApplicationByteCount < nonApplicationByteLimit else {
            let reason = "the peer has sent \(nonApplicationByteCount) bytes without application data"
            throw .tls(TLSError(.handshake(reason: reason), host: host))
        }
        let outcome: ReadOutcome
        if let carrier {
            outcome = try OpenSSLErrors.preserving { () throws(TransportError) in unsafe try carrier.read(into: buffer)
            }
        } else {
            outcome = unsafe try socket.receive(into: buffer, alwaysChecksSocket: alwaysChecksSocket)
        }
        if case .bytes(let count) = outcome { nonApplicationByteCount += count }
        return outcome
    }

    /// Sends to the socket or the carrier.
    func send(_ bytes: UnsafeRawBufferPointer) throws(TransportError) -> Int {
        guard let carrier else { return unsafe try socket.send(bytes) }
        return try OpenSSLErrors.preserving { () throws(TransportError) in unsafe try carrier.write(bytes) }
    }

    /// Checks for received bytes without consuming them.
    func probe() -> IdleState {
        guard let carrier else { return socket.peek() }
        return OpenSSLErrors.preserving { carrier.probe() }
    }

    /// The channel that is stored in an `SSL` object.
    static func of(_ ssl: OpaquePointer?) -> TLSChannel? {
        guard let ssl = unsafe ssl, let raw = unsafe SSL_get_ex_data(ssl, 0) else { return nil }
        return unsafe Unmanaged<TLSChannel>.fromOpaque(raw).takeUnretainedValue()
    }
}

/// A BIO through which OpenSSL reads and writes with the calls of ``Socket``: they use its readiness latch and protect
/// its descriptor. OpenSSL's own socket BIO uses `write`, which raises SIGPIPE after the peer has closed.
enum SocketBIO {
    /// The functions of the BIO; set up once, and never changed or freed.
    private nonisolated(unsafe) static let method: OpaquePointer? = {
        let kind = BIO_get_new_index() | Int32(BIO_TYPE_SOURCE_SINK)
        guard let method = unsafe BIO_meth_new(kind, "martlet socket") else { return nil }
        unsafe BIO_meth_set_read_ex(method, readFromSocket)
        unsafe BIO_meth_set_write_ex(method, writeToSocket)
        unsafe BIO_meth_set_ctrl(method, control)
        return unsafe method
    }()

    /// Creates a BIO on a channel, which must outlive the BIO.
    static func make(_ channel: TLSChannel) -> OpaquePointer? {
        guard let method = unsafe method, let bio = unsafe BIO_new(method) else { return nil }
        unsafe BIO_set_data(bio, Unmanaged.passUnretained(channel).toOpaque())
        unsafe BIO_set_init(bio, 1)
        return unsafe bio
    }
}

private func channel(of bio: OpaquePointer?) -> TLSChannel? {
    guard let bio = unsafe bio, let raw = unsafe BIO_get_data(bio) else { return nil }
    return unsafe Unmanaged<TLSChannel>.fromOpaque(raw).takeUnretainedValue()
}

private func readFromSocket(
    _ bio: OpaquePointer?, _ buffer: UnsafeMutablePointer<CChar>?, _ capacity: Int, _ count: UnsafeMutablePointer<Int>?
) -> Int32 {
    guard let channel = unsafe channel(of: bio), let buffer = unsafe buffer, capacity > 0 else { return 0 }
    unsafe martlet_bio_clear_retry(bio)
    do throws(TransportError) {
        let target = unsafe UnsafeMutableRawBufferPointer(start: buffer, count: capacity)
        switch unsafe try channel.receive(into: target) {
        case .bytes(let received):
            unsafe count?.pointee = received
            return 1
        case .wouldBlock: unsafe martlet_bio_retry_read(bio)
        case .endOfStream: channel.isAtEnd = true
        }
    } catch { channel.failure = error }
    return 0
}

private func writeToSocket(
    _ bio: OpaquePointer?, _ bytes: UnsafePointer<CChar>?, _ length: Int, _ count: UnsafeMutablePointer<Int>?
) -> Int32 {
    guard let channel = unsafe channel(of: bio), let bytes = unsafe bytes, length > 0 else { return 0 }
    unsafe martlet_bio_clear_retry(bio)
    do throws(TransportError) {
        let sent = unsafe try channel.send(UnsafeRawBufferPointer(start: bytes, count: length))
        if sent > 0 {
            unsafe count?.pointee = sent
            return 1
        }
        unsafe martlet_bio_retry_write(bio)
    } catch { channel.failure = error }
    return 0
}

private func control(_ bio: OpaquePointer?, _ command: Int32, _: Int, _: UnsafeMutableRawPointer?) -> Int {
    switch command {
    // There is no buffer to flush.
    case BIO_CTRL_FLUSH: 1
    // OpenSSL asks whether a failed read was the end of the stream.
    case BIO_CTRL_EOF: unsafe channel(of: bio)?.isAtEnd == true ? 1 : 0
    default: 0
    }
}
