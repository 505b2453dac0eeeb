/// The client's side of a SOCKS5 handshake up to the tunnel (RFC 1928, RFC 1929).
///
/// It names how many bytes it wants, and takes no more: what follows the proxy's last answer belongs to the tunnel.
package struct Socks5Machine: Sendable {
    /// What the proxy is asked to connect to.
    package enum Target: Hashable, Sendable {
        /// An address and its port.
        case address(SocketAddress)
        /// A name that the proxy looks up.
        case name(String, port: UInt16)
    }

    /// What follows from an event.
    package struct Effects: Equatable, Sendable {
        /// Bytes to send, none of them kept back.
        package var send: [UInt8] = []
    }

    /// Where the handshake stands. The bytes of the answer that is due gather in `answer`.
    private enum State: Sendable {
        /// The ways to authenticate were offered; the choice of one must come: 2 bytes.
        case choosing
        /// User and password were told; the verdict must come: 2 bytes.
        case authenticating
        /// A connection was asked for; the reply's first 5 bytes must come, which tell how long it is.
        case connecting
        /// The rest of the reply must come: so many bytes in all.
        case finishing(Int)
        /// The tunnel stands. Nothing leaves this.
        case established
        /// The handshake failed. Nothing leaves this.
        case failed(Socks5Fault)
    }

    private static let version: UInt8 = 5
    private static let noAuthentication: UInt8 = 0
    private static let userAndPassword: UInt8 = 2

    private let request: [UInt8]
    private let credentials: [UInt8]?
    private var state = State.choosing
    private var answer: [UInt8] = []

    /// A handshake that has not begun.
    /// - Throws: `.invalidName`, `.invalidCredentials`; nothing has been sent then.
    package init(target: Target, credentials: ProxyCredentials?) throws(Socks5Fault) {
        var request: [UInt8] = [Socks5Machine.version, 1, 0]
        switch target {
        case .address(let address):
            // The kernel's form: family, port, then the address; IPv6 has a flow label between.
            request.append(address.family == .ipv6 ? 4 : 1)
            request += address.addressBytes
            let port = UInt16(truncatingIfNeeded: address.port ?? 0)
            request += [UInt8(port >> 8), UInt8(truncatingIfNeeded: port)]
        case .name(let name, let port):
            guard let length = UInt8(exactly: name.utf8.count), length > 0 else {
                throw .invalidName(byteCount: name.utf8.count)
            }
            request += [3, length]
            request += Array(name.utf8)
            request += [UInt8(port >> 8), UInt8(truncatingIfNeeded: port)]
        }
        self.request = request
        guard let credentials else {
            self.credentials = nil
            return
        }
        guard let userLength = UInt8(exactly: credentials.user.utf8.count), userLength > 0,
            let passwordLength = UInt8(exactly: credentials.password.utf8.count)
        else { throw .invalidCredentials }
        self.credentials =
            [1, userLength] + Array(credentials.user.utf8) + [passwordLength]
            + Array(credentials.password.utf8)
    }

    /// The first bytes to send.
    package mutating func start() -> Effects {
        let methods =
            credentials == nil
            ? [Socks5Machine.noAuthentication]
            : [Socks5Machine.noAuthentication, Socks5Machine.userAndPassword]
        return Effects(send: [Socks5Machine.version, UInt8(methods.count)] + methods)
    }

    /// How many bytes may be read now, and handed to ``receive(_:)``; 0 once the handshake is over.
    package var wantedByteCount: Int {
        switch state {
        case .choosing, .authenticating: 2 - answer.count
        // No reply has fewer than these.
        case .connecting: 5 - answer.count
        case .finishing(let count): count - answer.count
        case .established, .failed: 0
        }
    }

    /// Whether the tunnel stands: the next byte from the proxy is the server's.
    package var isEstablished: Bool { if case .established = state { true } else { false } }

    /// Takes bytes from the proxy, at most ``wantedByteCount``; any more are left alone.
    /// - Throws: Why the handshake failed; the same again on every later call.
    package mutating func receive(_ bytes: some Collection<UInt8>) throws(Socks5Fault) -> Effects {
        if case .failed(let fault) = state { throw fault }
        answer += bytes.prefix(wantedByteCount)
        do throws(Socks5Fault) {
            return try step()
        } catch {
            state = .failed(error)
            throw error
        }
    }

    /// The proxy ended the connection.
    /// - Returns: Why that is a failure; `nil` once the tunnel stands.
    package mutating func receiveEndOfStream() -> Socks5Fault? {
        switch state {
        case .established: return nil
        case .failed(let fault): return fault
        default:
            let fault = Socks5Fault.truncated(receivedByteCount: answer.count)
            state = .failed(fault)
            return fault
        }
    }

    private mutating func step() throws(Socks5Fault) -> Effects {
        switch state {
        case .choosing:
            // Something else than a SOCKS proxy may never send a second byte.
            try checkVersion(Socks5Machine.version)
            guard answer.count == 2 else { break }
            return try chosen(answer[1])
        case .authenticating:
            try checkVersion(1)
            guard answer.count == 2 else { break }
            guard answer[1] == 0 else { throw .credentialsRefused }
            return connect()
        case .connecting:
            try checkVersion(Socks5Machine.version)
            if answer.count > 1, answer[1] != 0 { throw .refused(Socks5Reply(rawValue: answer[1])) }
            guard answer.count == 5 else { break }
            switch answer[3] {
            case 1: state = .finishing(4 + 4 + 2)
            case 3: state = .finishing(4 + 1 + Int(answer[4]) + 2)
            case 4: state = .finishing(4 + 16 + 2)
            default: throw .invalidAddressType(answer[3])
            }
        case .finishing(let count): if answer.count == count { state = .established }
        case .established, .failed: break
        }
        return Effects()
    }

    private func checkVersion(_ version: UInt8) throws(Socks5Fault) {
        if let first = answer.first, first != version { throw .wrongVersion(first) }
    }

    private mutating func chosen(_ method: UInt8) throws(Socks5Fault) -> Effects {
        switch (method, credentials) {
        case (Socks5Machine.noAuthentication, _): return connect()
        case (Socks5Machine.userAndPassword, .some(let credentials)):
            answer = []
            state = .authenticating
            return Effects(send: credentials)
        case (0xFF, _): throw .noAcceptableMethod
        default: throw .unofferedMethod(method)
        }
    }

    private mutating func connect() -> Effects {
        answer = []
        state = .connecting
        return Effects(send: request)
    }
}

extension ByteStream {
    /// Reads bytes, at most so many, and waits for the first of them.
    ///
    /// For the short exchanges before a tunnel stands, of which not a byte too much may be read.
    /// - Parameter count: At least 1.
    /// - Returns: The bytes, at least one; `nil` at the end of the stream.
    /// - Throws: `.timedOut`, `.interrupted`, and what reading throws.
    package func receive(
        atMost count: Int, until deadline: MonotonicTime
    ) async throws(TransportError) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: max(1, count))
        while true {
            // Looked at here too: a peer that always sends a little more never makes the wait reach it.
            if MonotonicTime.now() >= deadline { throw .timedOut }
            var span = buffer.mutableSpan
            let outcome = try unsafe span.withUnsafeMutableBytes { raw throws(TransportError) in
                unsafe try read(into: raw)
            }
            switch outcome {
            case .bytes(let received):
                buffer.removeLast(buffer.count - received)
                return buffer
            case .wouldBlock: try await waitUntilReadable(until: deadline)
            case .endOfStream: return nil
            }
        }
    }

    /// Writes all of some bytes.
    /// - Throws: `.timedOut`, `.interrupted`, and what writing throws.
    package func send(_ bytes: [UInt8], until deadline: MonotonicTime) async throws(TransportError) {
        var offset = 0
        while offset < bytes.count {
            let count = try write(bytes, from: offset)
            offset += count
            if count == 0 { try await waitUntilWritable(until: deadline) }
        }
    }
}
