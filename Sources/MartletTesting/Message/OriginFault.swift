/// How a response goes wrong on purpose. A handler puts one into its response, or throws one.
public struct OriginFault: Error, Sendable, Hashable {
    /// What happens.
    public enum Kind: Sendable, Hashable {
        /// The connection is closed in order, over TLS with a `close_notify`.
        case close
        /// The connection is closed; over TLS without a `close_notify`, as an attacker would cut it.
        case cut
        /// The connection is reset.
        case reset
        /// Nothing more is sent, until the client leaves or the origin stops.
        case stall
    }

    /// What happens.
    public var kind: Kind
    /// After how many bytes of the body it happens; `nil`: before the head.
    public var bodyByteCount: UInt64?

    /// A fault; by default before the head.
    public init(_ kind: Kind, afterBodyBytes count: UInt64? = nil) {
        self.kind = kind
        bodyByteCount = count
    }
}
