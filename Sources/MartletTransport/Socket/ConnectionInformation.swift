/// What is known of a connection once it stands.
public struct ConnectionInformation: Hashable, Sendable {
    /// The peer's address, such as `127.0.0.1:443`.
    public var remoteAddress: String

    /// This side's address.
    public var localAddress: String

    /// What TLS agreed on; `nil` on a plain connection.
    public var tls: TLSInformation?

    /// A description of a connection.
    public init(remoteAddress: String, localAddress: String, tls: TLSInformation? = nil) {
        self.remoteAddress = remoteAddress
        self.localAddress = localAddress
        self.tls = tls
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
