public import MartletTransport

/// The TLS settings of a test origin.
///
/// Every origin creates its own authority when it starts. The keys stay in memory. Clients trust the origin with
/// ``OriginCredentials/authorityPEM``.
public struct OriginTLS: Sendable, Hashable {
    /// The kind of the origin's certificate.
    public enum Certificate: Sendable, Hashable {
        /// Issued by the origin's authority for `localhost`, `127.0.0.1` and `::1`; valid for a day.
        case trusted
        /// As trusted, but it expired yesterday.
        case expired
        /// As trusted, but it becomes valid tomorrow.
        case notYetValid
        /// As trusted, but issued only for `wrong.example`.
        case wrongName
        /// Issued by an authority other than ``OriginCredentials/authorityPEM``.
        case unknownAuthority
        /// Self-signed.
        case selfSigned
    }

    /// The kind of certificate; trusted by default.
    public var certificate: Certificate
    /// Names and addresses in the certificate in addition to the default ones.
    public var additionalNames: [String] = []
    /// Whether clients need a certificate of the origin's authority, such as ``OriginCredentials/clientIdentity``.
    public var demandsClientCertificate: Bool
    /// The oldest accepted version; TLS 1.2 by default.
    public var minimumVersion = TLSVersion.tls12
    /// The newest accepted version; TLS 1.3 by default.
    public var maximumVersion = TLSVersion.tls13
    /// The protocols accepted by ALPN, best first.
    public var applicationProtocols = ["http/1.1"]
    /// Whether clients receive session tickets, for resumption; `true` by default.
    public var issuesTickets = true

    /// Creates settings with a kind of certificate.
    public init(_ certificate: Certificate = .trusted, demandsClientCertificate: Bool = false) {
        (self.certificate, self.demandsClientCertificate) = (certificate, demandsClientCertificate)
    }

    /// A trusted certificate.
    public static let trusted = OriginTLS(.trusted)
    /// A certificate that has expired.
    public static let expired = OriginTLS(.expired)
    /// A certificate that is not valid yet.
    public static let notYetValid = OriginTLS(.notYetValid)
    /// A certificate for another name.
    public static let wrongName = OriginTLS(.wrongName)
    /// A certificate of an unknown authority.
    public static let unknownAuthority = OriginTLS(.unknownAuthority)
    /// A self-signed certificate.
    public static let selfSigned = OriginTLS(.selfSigned)
    /// A trusted certificate, and a client certificate is required.
    public static let demandsClientCertificate = OriginTLS(.trusted, demandsClientCertificate: true)

    /// A copy of these settings with other TLS versions.
    public func versions(_ range: ClosedRange<TLSVersion>) -> OriginTLS {
        var copy = self
        (copy.minimumVersion, copy.maximumVersion) = (range.lowerBound, range.upperBound)
        return copy
    }
}

/// The temporary certificates of a test origin.
public struct OriginCredentials: Sendable {
    /// A certificate with its private key, in PEM.
    public struct Identity: Sendable, Hashable {
        /// The certificate; there are no intermediate certificates.
        public let certificatePEM: String
        /// The private key, not encrypted.
        public let privateKeyPEM: String
    }

    /// The certificate of the origin's authority in PEM, for clients to trust.
    public let authorityPEM: String
    /// A client identity that the origin accepts; its common name is `martlet test client`.
    public let clientIdentity: Identity
    /// A client identity of another authority, which the origin rejects.
    public let untrustedIdentity: Identity
    let context: TLSContext

    /// Creates keys and certificates. This blocks for a few milliseconds: run it on a worker.
    init(_ settings: OriginTLS) throws(TLSError) {
        let month = -3600...30 * 86_400
        let authority = try OriginCertificate(.authority, "Martlet test authority", validity: month)
        let stranger = try OriginCertificate(.authority, "Martlet unknown test authority", validity: month)
        var names = ["localhost", "127.0.0.1", "::1"] + settings.additionalNames
        var (validity, issuer) = (-3600...86_400, Optional(authority))
        switch settings.certificate {
        case .trusted: break
        case .expired: validity = -2 * 86_400 ... -86_400
        case .notYetValid: validity = 86_400...2 * 86_400
        case .wrongName: names = ["wrong.example"]
        case .unknownAuthority: issuer = stranger
        case .selfSigned: issuer = nil
        }
        let server = try OriginCertificate(.server, "localhost", names: names, validity: validity, issuer: issuer)
            .identity
        authorityPEM = authority.identity.certificatePEM
        clientIdentity = try OriginCertificate(.client, "martlet test client", issuer: authority).identity
        untrustedIdentity = try OriginCertificate(.client, "martlet test stranger", issuer: stranger).identity
        var context = TLSServerSettings(
            identity: TLSIdentity(
                certificateChain: .text(server.certificatePEM), privateKey: .text(server.privateKeyPEM)))
        context.minimumVersion = settings.minimumVersion
        context.maximumVersion = settings.maximumVersion
        context.applicationProtocols = settings.applicationProtocols
        context.issuesTickets = settings.issuesTickets
        if settings.demandsClientCertificate {
            context.clientAuthority = .text(authorityPEM)
            context.requiresClientCertificate = true
        }
        self.context = try TLSContext(server: context)
    }
}
