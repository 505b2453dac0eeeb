/// Why a SOCKS proxy did not open a way to the server (RFC 1928, RFC 1929).
package enum Socks5Fault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The proxy's answer does not begin with the version: what it begins with.
    case wrongVersion(UInt8)
    /// The proxy takes none of the ways to authenticate that were offered.
    case noAcceptableMethod
    /// The proxy chose a way to authenticate that was not offered.
    case unofferedMethod(UInt8)
    /// The proxy did not take user and password.
    case credentialsRefused
    /// The proxy refused, or could not reach the server: its code.
    case refused(Socks5Reply)
    /// The answer names its own address in a form that does not exist.
    case invalidAddressType(UInt8)
    /// The proxy ended the connection in the middle: how many bytes of the answer had come.
    case truncated(receivedByteCount: Int)
    /// The server's name does not fit: it may have 1 to 255 bytes.
    case invalidName(byteCount: Int)
    /// The user name or the password does not fit: a user name may have 1 to 255 bytes, a password at most 255.
    case invalidCredentials

    /// Whether another address of the same server may fare better.
    package var isAboutAddress: Bool {
        switch self {
        case .refused(let reply): reply.isAboutAddress
        default: false
        }
    }

    /// What the proxy did, and what it means.
    package var description: String {
        switch self {
        case .wrongVersion(let byte):
            "the answer begins with byte \(byte) and not with 5; it does not speak SOCKS version 5"
        case .noAcceptableMethod: "it accepts none of the ways to authenticate that were offered"
        case .unofferedMethod(let method): "it chose way \(method) to authenticate, which was not offered"
        case .credentialsRefused: "it refused user name and password"
        case .refused(let reply): "it answered with code \(reply.rawValue): \(reply)"
        case .invalidAddressType(let type): "byte 3 of its answer names the unknown address type \(type)"
        case .truncated(let count): "it ended the connection after \(count) bytes of an answer"
        case .invalidName(let count): "a server's name has 1 to 255 bytes there, and this one has \(count)"
        case .invalidCredentials:
            "a user name has 1 to 255 bytes there and a password at most 255; these do not fit"
        }
    }
}

/// A code in a SOCKS proxy's answer (RFC 1928 §6).
package struct Socks5Reply: Hashable, Sendable, CustomStringConvertible {
    /// The code's number; 0 is success.
    package let rawValue: UInt8

    /// A code.
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Whether another address of the same server may fare better: a general failure, an unreachable network or host, a
    /// refused connection, an expired TTL, a type of address that the proxy does not know.
    package var isAboutAddress: Bool {
        switch rawValue {
        case 1, 3, 4, 5, 6, 8: true
        default: false
        }
    }

    /// The code in words.
    package var description: String {
        switch rawValue {
        case 0: "succeeded"
        case 1: "general failure"
        case 2: "not allowed by its rules"
        case 3: "network unreachable"
        case 4: "host unreachable"
        case 5: "connection refused by the server"
        case 6: "TTL expired"
        case 7: "command not supported"
        case 8: "address type not supported"
        default: "a code that RFC 1928 does not know"
        }
    }
}
