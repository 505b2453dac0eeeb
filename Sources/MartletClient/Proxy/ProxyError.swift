public import HTTPTypes
import MartletConnections
import MartletTransport
package import MartletWire

/// Why a proxy that was reached did not open a way to the server: what ``HTTPError/underlying`` of `.proxyFailed` is.
public struct ProxyError: Error, Sendable {
    /// What the proxy did. More may be added: a `switch` needs a default.
    public enum Kind: Hashable, Sendable {
        /// An HTTP proxy answered CONNECT with this status, which is not 2xx; ``ProxyError/response`` is the answer.
        case refused(status: Int)
        /// A SOCKS proxy answered with this code (RFC 1928 §6): 2 not allowed, 3 network unreachable, 4 host unreachable,
        /// 5 connection refused, …
        case socksRefused(code: Int)
        /// A SOCKS proxy takes no way to authenticate that there is, or refused user and password.
        case socksCredentialsRefused
        /// What the proxy said makes no sense, or exceeds a limit.
        case protocolViolation
        /// The proxy ended the connection.
        case connectionLost
        /// The server's name, or the credentials, cannot be told in the proxy's protocol.
        case unsendable
    }

    /// What the proxy did.
    public var kind: Kind

    /// The proxy, such as `http://proxy.example:3128`, without user or password.
    public var proxy: String

    /// The head of an HTTP proxy's answer, where it was one. It is the proxy's own word, never the server's.
    public var response: HTTPResponse?

    /// What came of that answer's body; at most 64 KiB.
    public var body: [UInt8] = []

    /// Whether ``body`` is all of it.
    public var isBodyComplete = true

    /// The heads of all that an HTTP proxy answered to CONNECT, the last of which is ``response``.
    package var heads: [ResponseHead] = []

    /// What the proxy did, in words.
    public var message: String

    /// Whether credentials were missing, or refused.
    public var wantsCredentials: Bool {
        kind == .refused(status: 407) || kind == .socksCredentialsRefused
    }

    init(_ fault: ProxyFault, proxy: String) {
        self.proxy = proxy
        message = fault.description
        switch fault {
        case .refused(let refusal):
            kind = .refused(status: refusal.head.status)
            response = HeadConversion.response(refusal.head)
            heads = refusal.earlier + [refusal.head]
            body = refusal.body
            isBodyComplete = refusal.isBodyComplete
        case .wire(let error):
            kind =
                switch error.code {
                case .emptyResponse, .truncated: .connectionLost
                default: .protocolViolation
                }
        case .socks(let fault):
            switch fault {
            case .refused(let reply): kind = .socksRefused(code: Int(reply.rawValue))
            case .noAcceptableMethod, .credentialsRefused: kind = .socksCredentialsRefused
            case .truncated: kind = .connectionLost
            case .invalidName, .invalidCredentials: kind = .unsendable
            case .wrongVersion, .unofferedMethod, .invalidAddressType: kind = .protocolViolation
            }
        case .lost: kind = .connectionLost
        }
    }
}

extension ProxyError: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The proxy and what it did.
    public var description: String { "the proxy \(proxy) did not open a way to the server: \(message)" }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// Shows ``description``: the answer's fields may hold a challenge, and are asked for by name.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
