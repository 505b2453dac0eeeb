/// The client's side of a SOCKS5 handshake, until the tunnel is established (RFC 1928, RFC 1929). The machine accepts
/// only the bytes of the handshake: those after the proxy's last reply belong to the tunnel.
package struct Socks5Machine: Sendable {
    /// The server that the proxy is to connect to.
    package enum Target: Sendable {
        case address(SocketAddress)
        /// A name that the proxy looks up.
        case name(String, port: UInt16)
    }

    /// The state of the handshake. The bytes of the expected reply are collected in `reply`.
    private enum State: Sendable {
        /// The methods of authentication were offered; the proxy's choice is expected: 2 bytes.
        case choosing
        /// User and password were sent; the result is expected: 2 bytes.
        case authenticating
        /// A connection was requested; the first 5 bytes of the reply are expected, which contain its length.
        case connecting
        /// The rest of the reply is expected: its total length in bytes.
        case finishing(Int)
        /// The tunnel is established. Final.
        case established
        /// The handshake failed. Final.
        case failed(Socks5Error)
    }

    private static let version: UInt8 = 5
    private static let noAuthentication: UInt8 = 0
    private static let userAndPassword: UInt8 = 2

    private let request: [UInt8]
    private let credentials: [UInt8]?
    private var state = State.choosing
    private var reply: [UInt8] = []

    /// Creates a handshake that has not started.
    /// - Throws: `.invalidName`, `.invalidCredentials`.
    package init(target: Target, credentials: ProxyCredentials?) throws(Socks5Error) {
        let (host, port): ([UInt8], UInt16)
        switch target {
        case .address(let address):
            host = [address.family == .ipv6 ? 4 : 1] + address.addressBytes
            port = UInt16(truncatingIfNeeded: address.port ?? 0)
        case .name(let name, let number):
            guard let length = UInt8(exactly: name.utf8.count), length > 0 else {
                throw .invalidName(byteCount: name.utf8.count)
            }
            (host, port) = ([3, length] + Array(name.utf8), number)
        }
        request = [Socks5Machine.version, 1, 0] + host + [UInt8(port >> 8), UInt8(truncatingIfNeeded: port)]
        guard let credentials else {
            self.credentials = nil
            return
        }
        guard let userLength = UInt8(exactly: credentials.user.utf8.count), userLength > 0,
            let passwordLength = UInt8(exactly: credentials.password.utf8.count)
        else { throw .invalidCredentials }
        self.credentials =
            [1, userLength] + Array(credentials.user.utf8) + [passwordLength] + Array(credentials.password.utf8)
    }

    /// Starts the handshake, and returns the bytes to send immediately.
    package func start() -> [UInt8] {
        let methods =
            credentials == nil
            ? [Socks5Machine.noAuthentication] : [Socks5Machine.noAuthentication, Socks5Machine.userAndPassword]
        return [Socks5Machine.version, UInt8(methods.count)] + methods
    }

    /// The maximum number of bytes to read now and pass to ``receive(_:)``; 0 once the handshake is over.
    package var wantedByteCount: Int {
        switch state {
        case .choosing, .authenticating: 2 - reply.count
        // Every valid reply has at least five bytes.
        case .connecting: 5 - reply.count
        case .finishing(let count): count - reply.count
        case .established, .failed: 0
        }
    }

    /// Whether the tunnel is established: the next byte from the proxy is the server's.
    package var isEstablished: Bool { if case .established = state { true } else { false } }

    /// Accepts bytes from the proxy; those beyond ``wantedByteCount`` are ignored.
    /// - Returns: The bytes to send immediately.
    /// - Throws: The reason why the handshake failed. Every later call throws the same error.
    package mutating func receive(_ bytes: some Collection<UInt8>) throws(Socks5Error) -> [UInt8] {
        if case .failed(let error) = state { throw error }
        reply += bytes.prefix(wantedByteCount)
        do throws(Socks5Error) { return try step() } catch {
            state = .failed(error)
            throw error
        }
    }

    /// Handles the end of the connection by the proxy.
    /// - Returns: The error; `nil` once the tunnel is established.
    package mutating func receiveEndOfStream() -> Socks5Error? {
        switch state {
        case .established: return nil
        case .failed(let error): return error
        default:
            let error = Socks5Error.truncated(receivedByteCount: reply.count)
            state = .failed(error)
            return error
        }
    }

    private mutating func step() throws(Socks5Error) -> [UInt8] {
        switch state {
        case .choosing:
            // A server that is not a SOCKS proxy may never send a second byte.
            try checkVersion(Socks5Machine.version)
            guard reply.count == 2 else { break }
            return try chosen(reply[1])
        case .authenticating:
            try checkVersion(1)
            guard reply.count == 2 else { break }
            guard reply[1] == 0 else { throw .credentialsRejected }
            return connect()
        case .connecting:
            try checkVersion(Socks5Machine.version)
            if reply.count > 1, reply[1] != 0 { throw .rejected(Socks5Reply(rawValue: reply[1])) }
            guard reply.count == 5 else { break }
            switch reply[3] {
            case 1: state = .finishing(4 + 4 + 2)
            case 3: state = .finishing(4 + 1 + Int(reply[4]) + 2)
            case 4: state = .finishing(4 + 16 + 2)
            default: throw .invalidAddressType(reply[3])
            }
        case .finishing(let count): if reply.count == count { state = .established }
        case .established, .failed: break
        }
        return []
    }

    private func checkVersion(_ version: UInt8) throws(Socks5Error) {
        if let first = reply.first, first != version { throw .wrongVersion(first) }
    }

    private mutating func chosen(_ method: UInt8) throws(Socks5Error) -> [UInt8] {
        switch (method, credentials) {
        case (Socks5Machine.noAuthentication, _): return connect()
        case (Socks5Machine.userAndPassword, .some(let credentials)):
            reply = []
            state = .authenticating
            return credentials
        case (0xFF, _): throw .noAcceptableMethod
        default: throw .unofferedMethod(method)
        }
    }

    private mutating func connect() -> [UInt8] {
        reply = []
        state = .connecting
        return request
    }
}

/// The reason a SOCKS proxy did not open a tunnel to the server (RFC 1928, RFC 1929).
package enum Socks5Error: Error, Equatable, Sendable, CustomStringConvertible {
    /// The proxy's reply begins with this byte instead of the version.
    case wrongVersion(UInt8)
    /// The proxy accepts none of the offered methods of authentication.
    case noAcceptableMethod
    /// The proxy chose a method of authentication that was not offered.
    case unofferedMethod(UInt8)
    /// The proxy rejected user and password.
    case credentialsRejected
    /// The proxy rejected the request or could not reach the server. Contains the code of its reply.
    case rejected(Socks5Reply)
    /// The reply contains an address of an unknown type.
    case invalidAddressType(UInt8)
    /// The proxy ended the connection within a reply. Contains the number of received bytes of the reply.
    case truncated(receivedByteCount: Int)
    /// The server's name has a length that SOCKS does not allow: only 1 to 255 bytes fit.
    case invalidName(byteCount: Int)
    /// The user name does not have 1 to 255 bytes, or the password has more than 255.
    case invalidCredentials

    /// Whether another address of the same server may work.
    package var isAboutAddress: Bool { if case .rejected(let reply) = self { reply.isAboutAddress } else { false } }

    package var description: String {
        switch self {
        case .wrongVersion(let byte):
            "its reply begins with byte \(byte) instead of the version; it does not speak SOCKS version 5"
        case .noAcceptableMethod: "it accepts none of the offered authentication methods"
        case .unofferedMethod(let method): "it chose authentication method \(method), which was not offered"
        case .credentialsRejected: "it rejected the user name and password"
        case .rejected(let reply): "it replied with code \(reply.rawValue): \(reply)"
        case .invalidAddressType(let type): "byte 3 of its reply is the unknown address type \(type)"
        case .truncated(let count): "it ended the connection after \(count) bytes of a reply"
        case .invalidName(let count): "SOCKS allows a server's name of 1 to 255 bytes, and this one has \(count)"
        case .invalidCredentials: "SOCKS allows a user name of 1 to 255 bytes and a password of at most 255"
        }
    }
}

/// A code in a SOCKS proxy's reply (RFC 1928 §6).
package struct Socks5Reply: Equatable, Sendable, CustomStringConvertible {
    /// The code; 0 is success.
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Whether another address of the same server may work: after a general failure, an unreachable network or host, a
    /// refused connection, an expired TTL, or a type of address that the proxy does not support.
    package var isAboutAddress: Bool { [1, 3, 4, 5, 6, 8].contains(rawValue) }

    private static let texts = [
        "succeeded", "general failure", "not allowed by its rules", "network unreachable", "host unreachable",
        "connection refused by the server", "TTL expired", "command not supported", "address type not supported",
    ]

    package var description: String {
        let texts = Socks5Reply.texts
        return rawValue < texts.count ? texts[Int(rawValue)] : "a code that RFC 1928 does not define"
    }
}
