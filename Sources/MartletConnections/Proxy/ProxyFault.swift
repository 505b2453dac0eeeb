package import MartletTransport
package import MartletWire

/// Why a proxy that was reached did not open a way to the server.
package enum ProxyFault: Error, Sendable, CustomStringConvertible {
    /// An HTTP proxy answered CONNECT with something else than 2xx.
    case refused(TunnelRefusal)
    /// What an HTTP proxy said is not HTTP, breaks its rules, or ended too early.
    case wire(WireError)
    /// A SOCKS proxy refused, or broke the rules.
    case socks(Socks5Fault)
    /// The connection to the proxy broke before the tunnel stood.
    case lost(TransportError)

    /// Whether the connection ended or failed before a byte of an answer.
    var isConnectionLoss: Bool {
        switch self {
        case .lost(.system), .lost(.closed), .lost(.tls): true
        case .wire(let error): error.code == .emptyResponse
        default: false
        }
    }

    /// What the proxy did. Nothing that it sent is repeated but the status.
    package var description: String {
        switch self {
        case .refused(let refusal) where refusal.head.status == 407:
            "it wants credentials, or others than it was given: it answered CONNECT with 407"
        case .refused(let refusal): "it answered CONNECT with \(refusal.head.status)"
        case .wire(let error): "its answer to CONNECT cannot be used: \(error)"
        case .socks(let fault): fault.description
        case .lost(.system(let error)): "the connection to it broke before the tunnel stood: \(error)"
        case .lost(.tls(let error)): "the connection to it broke before the tunnel stood: \(error)"
        case .lost: "the connection to it ended before the tunnel stood"
        }
    }
}
