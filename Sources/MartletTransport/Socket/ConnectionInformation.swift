/// What is known of a connection once it stands.
public struct ConnectionInformation: Hashable, Sendable {
    /// One object, made when the connection stands: every exchange on it tells of it.
    private final class Storage: Sendable {
        let remoteAddress: String
        let localAddress: String
        let tls: TLSInformation?

        init(remoteAddress: String, localAddress: String, tls: TLSInformation?) {
            self.remoteAddress = remoteAddress
            self.localAddress = localAddress
            self.tls = tls
        }
    }

    private let storage: Storage

    /// The peer's address, such as `127.0.0.1:443`.
    public var remoteAddress: String { storage.remoteAddress }

    /// This side's address.
    public var localAddress: String { storage.localAddress }

    /// What TLS agreed on; `nil` on a plain connection.
    public var tls: TLSInformation? { storage.tls }

    /// A description of a connection.
    public init(remoteAddress: String, localAddress: String, tls: TLSInformation? = nil) {
        storage = Storage(remoteAddress: remoteAddress, localAddress: localAddress, tls: tls)
    }

    /// The same connection once TLS stands on it.
    func secured(_ tls: TLSInformation?) -> ConnectionInformation {
        ConnectionInformation(remoteAddress: remoteAddress, localAddress: localAddress, tls: tls)
    }

    /// Whether they tell the same.
    public static func == (left: ConnectionInformation, right: ConnectionInformation) -> Bool {
        left.storage === right.storage
            || left.remoteAddress == right.remoteAddress && left.localAddress == right.localAddress
                && left.tls == right.tls
    }

    /// Feeds what it tells.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(remoteAddress)
        hasher.combine(localAddress)
        hasher.combine(tls)
    }
}

/// What a TLS handshake agreed on.
public struct TLSInformation: Hashable, Sendable {
    /// The protocol's version as OpenSSL names it: `TLSv1.2` or `TLSv1.3`.
    public var version: String

    /// The cipher suite's name, such as `TLS_AES_256_GCM_SHA384`.
    public var cipher: String

    /// The protocol that ALPN chose (RFC 7301); `nil` when the server took no part in it.
    public var applicationProtocol: String?

    /// Whether the handshake resumed an earlier session.
    public var isResumed: Bool

    /// The peer's leaf certificate in DER; empty where the peer showed none.
    public var peerCertificate: [UInt8]

    /// What was wrong with the peer's chain, which a custom trust policy accepted nevertheless; `nil` where nothing was.
    package internal(set) var acceptedFault: TLSError.Kind?

    /// A description of a handshake's result.
    public init(
        version: String, cipher: String, applicationProtocol: String? = nil, isResumed: Bool = false,
        peerCertificate: [UInt8] = []
    ) {
        self.version = version
        self.cipher = cipher
        self.applicationProtocol = applicationProtocol
        self.isResumed = isResumed
        self.peerCertificate = peerCertificate
    }
}
