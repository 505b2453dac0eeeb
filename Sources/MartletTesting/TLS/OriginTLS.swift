public import MartletTransport

/// What a test origin shows and demands over TLS. Every origin has an authority of its own, made when it
/// starts, whose keys are never written anywhere: clients are told to trust
/// ``OriginCredentials/authorityPEM``.
public struct OriginTLS: Sendable, Hashable {
    /// What is right or wrong with the origin's certificate.
    public enum Certificate: Sendable, Hashable {
        /// Issued by the origin's authority for `localhost`, `127.0.0.1` and `::1`; valid for a day.
        case trusted
        /// As trusted, but its time was over yesterday.
        case expired
        /// As trusted, but its time begins tomorrow.
        case notYetValid
        /// As trusted, but made out to `wrong.example` alone.
        case wrongName
        /// Issued by an authority that ``OriginCredentials/authorityPEM`` knows nothing of.
        case unknownAuthority
        /// Signed by itself.
        case selfSigned
    }

    /// The certificate.
    public var certificate: Certificate
    /// Names and addresses that the certificate is made out to besides the usual ones.
    public var additionalNames: [String] = []
    /// Whether clients must show a certificate of the origin's authority, such as
    /// ``OriginCredentials/clientIdentity``.
    public var demandsClientCertificate: Bool
    /// The oldest version spoken; TLS 1.2 by default.
    public var minimumVersion = TLSVersion.tls12
    /// The newest version spoken; TLS 1.3 by default.
    public var maximumVersion = TLSVersion.tls13
    /// The protocols taken by ALPN, best first.
    public var applicationProtocols = ["http/1.1"]
    /// Whether clients get tickets to resume with; they do by default.
    public var issuesTickets = true

    /// TLS with a certificate of a kind.
    public init(_ certificate: Certificate = .trusted, demandsClientCertificate: Bool = false) {
        self.certificate = certificate
        self.demandsClientCertificate = demandsClientCertificate
    }

    /// All in order.
    public static let trusted = OriginTLS(.trusted)
    /// With a certificate that has expired.
    public static let expired = OriginTLS(.expired)
    /// With a certificate that is not valid yet.
    public static let notYetValid = OriginTLS(.notYetValid)
    /// With a certificate for another name.
    public static let wrongName = OriginTLS(.wrongName)
    /// With a certificate of an unknown authority.
    public static let unknownAuthority = OriginTLS(.unknownAuthority)
    /// With a certificate that vouches for itself.
    public static let selfSigned = OriginTLS(.selfSigned)
    /// In order itself, and demanding the client's certificate.
    public static let demandsClientCertificate = OriginTLS(.trusted, demandsClientCertificate: true)

    /// These settings with other versions.
    public func versions(_ range: ClosedRange<TLSVersion>) -> OriginTLS {
        var copy = self
        copy.minimumVersion = range.lowerBound
        copy.maximumVersion = range.upperBound
        return copy
    }
}
