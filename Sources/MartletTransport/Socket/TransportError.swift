/// Why bytes could not be moved.
package enum TransportError: Error, Sendable {
    /// The name did not resolve.
    case resolution(ResolutionError)
    /// No address could be connected to: every attempt, in the order they ended.
    case connect([ConnectFailure])
    /// Reading or writing failed, as by a reset of the peer's.
    case system(SystemError)
    /// The TLS handshake or a record was refused, by us or by the peer.
    case tls(TLSError)
    /// The deadline passed.
    case timedOut
    /// The stream was interrupted, as cancelling does.
    case interrupted
    /// The stream was closed on this side.
    case closed
    /// The stream's address on this side is no address of this machine any more.
    case addressLost
}

/// One attempt to connect that failed.
public struct ConnectFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The address tried, such as `127.0.0.1:8080`, `[::1]:443` or a socket's path.
    public var address: String

    /// What the system said.
    public var error: SystemError

    /// A failed attempt.
    public init(address: String, error: SystemError) {
        self.address = address
        self.error = error
    }

    /// The address and the reason.
    public var description: String { "\(address): \(error)" }
}

/// A name that did not resolve.
public struct ResolutionError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The name asked for.
    public var host: String

    /// The resolver's number: an `EAI_…` constant of `getaddrinfo`, or 0 where another resolver answered.
    public var code: Int32

    /// What the resolver said.
    public var message: String

    /// A failed look-up.
    public init(host: String, code: Int32 = 0, message: String) {
        self.host = host
        self.code = code
        self.message = message
    }

    /// The name and the reason.
    public var description: String { "could not resolve \(host): \(message)" }
}
