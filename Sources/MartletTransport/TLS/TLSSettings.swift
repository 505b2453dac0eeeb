import COpenSSL

/// How TLS connections are set up and whom they trust.
///
/// Two connections may share a TLS context, a pool of connections and a store of sessions only when their
/// settings are equal.
public struct TLSSettings: Hashable, Sendable {
    /// Whose certificates are accepted; by default those of the machine's authorities.
    public var trust: TrustPolicy

    /// Whether the certificate must be made out to the host that was asked for (RFC 9525). On by default.
    ///
    /// Without it any holder of any valid certificate can pose as the host.
    public var verifiesHostName: Bool

    /// The oldest version spoken; TLS 1.2 by default.
    public var minimumVersion: TLSVersion

    /// The newest version spoken; TLS 1.3 by default.
    public var maximumVersion: TLSVersion

    /// The cipher list for TLS 1.2 in OpenSSL's form; `nil` for OpenSSL's own.
    public var cipherList: String?

    /// The cipher suites for TLS 1.3, joined by colons; `nil` for OpenSSL's own.
    public var cipherSuites: String?

    /// The protocols offered by ALPN (RFC 7301), best first, each of 1 to 255 bytes; none: ALPN is not sent.
    public var applicationProtocols: [String]

    /// What this side shows when the server demands a certificate.
    public var identity: TLSIdentity?

    /// A file that the secrets of each connection are appended to in the NSS key log format, for protocol
    /// analysers. It is made with mode 0600. Whoever reads it can read the connections.
    public var keyLogFile: String?

    /// Whether sessions are resumed by tickets (RFC 8446 §2.2), which spares a round of public-key work. On
    /// by default.
    public var usesSessionTickets: Bool

    /// OpenSSL's security level; 2 by default: at least 112 bits, no SHA-1 signatures. 0–5.
    public var securityLevel: Int

    /// Whether certificates are looked up in revocation lists; they are not by default.
    public var revocation = RevocationPolicy.none

    /// What differs for some hosts.
    public var hosts = TLSHostRules()

    /// Which domains are public suffixes, directly below which no wildcard of a certificate counts; by default those of a
    /// single label, and those of registries in the list of the machine.
    public var publicSuffixes = PublicSuffixRule.system

    /// The settings for a host, its own rule applied.
    package func settings(for host: String) -> TLSSettings {
        if hosts.isEmpty { return self }
        var settings = self
        settings.hosts = TLSHostRules()
        guard let rule = hosts.rule(for: host) else { return settings }
        if let trust = rule.trust { settings.trust = trust }
        if let identity = rule.identity { settings.identity = identity }
        if rule.showsNoIdentity { settings.identity = nil }
        if let revocation = rule.revocation { settings.revocation = revocation }
        if let verifiesHostName = rule.verifiesHostName { settings.verifiesHostName = verifiesHostName }
        return settings
    }

    /// Settings, each with its default.
    public init(
        trust: TrustPolicy = .system, verifiesHostName: Bool = true, minimumVersion: TLSVersion = .tls12,
        maximumVersion: TLSVersion = .tls13, cipherList: String? = nil, cipherSuites: String? = nil,
        applicationProtocols: [String] = ["http/1.1"], identity: TLSIdentity? = nil,
        keyLogFile: String? = nil, usesSessionTickets: Bool = true, securityLevel: Int = 2
    ) {
        self.trust = trust
        self.verifiesHostName = verifiesHostName
        self.minimumVersion = minimumVersion
        self.maximumVersion = maximumVersion
        self.cipherList = cipherList
        self.cipherSuites = cipherSuites
        self.applicationProtocols = applicationProtocols
        self.identity = identity
        self.keyLogFile = keyLogFile
        self.usesSessionTickets = usesSessionTickets
        self.securityLevel = securityLevel
    }
}

/// How TLS connections are accepted; for test origins.
package struct TLSServerSettings: Sendable {
    /// What clients are shown.
    package var identity: TLSIdentity
    /// The authority whose certificates clients may show; `nil` to ask for none.
    package var clientAuthority: PEMSource?
    /// Whether a client without a certificate is refused.
    package var requiresClientCertificate = false
    /// The oldest version spoken.
    package var minimumVersion = TLSVersion.tls12
    /// The newest version spoken.
    package var maximumVersion = TLSVersion.tls13
    /// The protocols taken by ALPN, best first.
    package var applicationProtocols = ["http/1.1"]
    /// Whether clients get tickets to resume with.
    package var issuesTickets = true

    /// Whether keys and digests are taken that no sound server has; for origins that clients must refuse.
    package var allowsWeakKeys = false

    /// Settings with an identity, all else at its default.
    package init(identity: TLSIdentity) { self.identity = identity }
}

/// A version of TLS that Martlet speaks.
public enum TLSVersion: Int, Hashable, Sendable, Comparable, CaseIterable, Codable {
    /// TLS 1.2 (RFC 5246).
    case tls12 = 12
    /// TLS 1.3 (RFC 8446).
    case tls13 = 13

    /// OpenSSL's number of the version.
    var number: Int32 {
        switch self {
        case .tls12: TLS1_2_VERSION
        case .tls13: TLS1_3_VERSION
        }
    }

    /// Orders by age: the older is the smaller.
    public static func < (left: TLSVersion, right: TLSVersion) -> Bool { left.rawValue < right.rawValue }
}
