/// What a handler may know of the connection a request came on.
public struct OriginPeer: Sendable, Hashable {
    /// The connection's number, from 1.
    public let number: Int
    /// The client's address, such as `127.0.0.1:50123`; `memory` for a mock transport.
    public let remoteAddress: String
    /// `TLSv1.2` or `TLSv1.3`; `nil` on a plain connection.
    public let tlsVersion: String?
    /// Whether the TLS handshake resumed an earlier session.
    public let isResumed: Bool
    /// The protocol that ALPN chose; `nil` when the client offered none.
    public let applicationProtocol: String?
    /// The name that the client asked for (SNI); `nil` when it sent none.
    public let serverName: String?
    /// The client's certificate in DER; empty where it showed none.
    public let clientCertificate: [UInt8]

    /// The common name in the client's certificate; `nil` without one.
    public var clientCommonName: String? {
        CertificateSubject.commonName(inDER: clientCertificate)
    }
}
