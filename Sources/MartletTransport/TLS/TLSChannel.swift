import COpenSSL
import Glibc

/// What OpenSSL's callbacks work on for one connection: its socket and its notes.
///
/// Not sendable: touched only inside OpenSSL's calls, which the stream makes under its lock.
final class TLSChannel {
    let socket: Socket
    /// The stream that the records go over, where that is not the socket itself but another TLS on it.
    let carrier: TLSStream?
    let context: TLSContext
    /// The server's name or address on the client's side; empty on the server's.
    let host: String
    /// Where sessions are kept; `nil` when they are not.
    let sessionKey: TLSSessionCache.Key?

    /// What the socket's last failing call threw.
    var failure: TransportError?
    /// Whether reads ask the kernel even when the latch says that nothing has come: the loop may be about to
    /// say so.
    var asksKernel = false
    /// Whether the peer has ended the TCP stream.
    var isAtEnd = false
    /// How many bytes have come since the application got some last, or since the handshake.
    var silentByteCount = 0
    /// How many these may be before no more are received.
    var silentByteLimit = TLSChannel.mostSilentBytes
    /// Why the peer's chain was refused.
    var refusal: TLSError.Kind?
    /// What was wrong with the peer's chain where the custom trust policy accepted it.
    var acceptedFault: TLSError.Kind?
    /// What the pins were compared with, where there are pins.
    var evidence: ChainEvidence?
    /// What the pins were compared with when the session was made that is offered to be resumed.
    var offeredEvidence: ChainEvidence?
    /// What the custom trust policy is to be asked.
    var question: TrustQuestion?
    /// What it has said.
    var decision: TrustDecision?
    /// Whether the server has asked for a certificate.
    var wasAskedForCertificate = false

    /// Tickets, new keys and what else TLS says by itself are a few hundred bytes, and a handshake is below 200 KiB. Whoever
    /// sends nothing else would hold the thread that reads for as long as he likes, since OpenSSL takes all of it before it
    /// returns: 256 KiB.
    static let mostSilentBytes = 256 << 10
    /// The same for one look at an idle connection, which is taken on the loop's thread: 32 KiB.
    static let mostSilentBytesOfLook = 32 << 10

    init(
        socket: Socket, carrier: TLSStream? = nil, context: TLSContext, host: String,
        sessionKey: TLSSessionCache.Key?
    ) {
        self.socket = socket
        self.carrier = carrier
        self.context = context
        self.host = host
        self.sessionKey = sessionKey
    }

    /// Receives from the socket.
    func receive(into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) -> ReadOutcome {
        guard silentByteCount < silentByteLimit else {
            let reason = "the peer has sent \(silentByteCount) bytes without any of the application's"
            throw .tls(TLSError(.handshake(reason: reason), host: host))
        }
        let outcome = unsafe try receiveSome(into: buffer)
        if case .bytes(let count) = outcome { silentByteCount += count }
        return outcome
    }

    private func receiveSome(into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) -> ReadOutcome
    {
        if let carrier {
            return try OpenSSLErrors.preserving { () throws(TransportError) in
                unsafe try carrier.read(into: buffer)
            }
        }
        guard asksKernel else { return unsafe try socket.receive(into: buffer) }
        // The latch stays as it is: at worst it promises bytes that were taken here.
        let result = socket.withDescriptor { descriptor in
            Socket.retrying { unsafe recv(descriptor, buffer.baseAddress, buffer.count, 0) }
        }
        guard let (count, code) = result else { throw .closed }
        if count > 0 { return .bytes(count) }
        if count == 0 { return .endOfStream(isClean: true) }
        if code == EAGAIN || code == EWOULDBLOCK { return .wouldBlock }
        throw .system(SystemError(operation: "recv", code: code))
    }

    /// Sends on the socket, or on what lies between.
    func send(_ bytes: UnsafeRawBufferPointer) throws(TransportError) -> Int {
        if let carrier {
            return try OpenSSLErrors.preserving { () throws(TransportError) in unsafe try carrier.write(bytes)
            }
        }
        return unsafe try socket.send(bytes)
    }

    /// Looks whether anything has come, without taking it.
    func look() -> IdleState {
        guard let carrier else { return socket.peek() }
        return OpenSSLErrors.preserving { carrier.probe() }
    }

    /// The channel of a connection, which was noted in it.
    static func of(_ ssl: OpaquePointer?) -> TLSChannel? {
        guard let ssl = unsafe ssl, let raw = unsafe SSL_get_ex_data(ssl, 0) else { return nil }
        return unsafe Unmanaged<TLSChannel>.fromOpaque(raw).takeUnretainedValue()
    }
}
