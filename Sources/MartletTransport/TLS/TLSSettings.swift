import CMartletOpenSSL

/// The settings of TLS connections, and the certificates that they accept.
///
/// Connections share a TLS context, a pool and a session cache only if their settings are equal.
public struct TLSSettings: Hashable, Sendable {
    /// The certificates that are accepted; by default those that this machine's authorities issued.
    public var trust: TrustPolicy
    /// Whether the certificate must be issued for the requested host (RFC 9525). On by default.
    ///
    /// If it is off, the owner of any valid certificate can impersonate the host.
    public var verifiesHostName: Bool
    /// The oldest version that is accepted; TLS 1.2 by default.
    public var minimumVersion: TLSVersion
    /// The newest version that is accepted; TLS 1.3 by default.
    public var maximumVersion: TLSVersion
    /// The cipher list for TLS 1.2 in OpenSSL's format; `nil` for OpenSSL's default.
    public var cipherList: String?
    /// The cipher suites for TLS 1.3, joined by colons; `nil` for OpenSSL's default.
    public var cipherSuites: String?
    /// The protocols offered by ALPN (RFC 7301), best first: `http/1.1` (the default) and `http/1.0`. If empty, ALPN is
    /// not sent. With any other protocol, such as `h2`, connections fail with ``TLSError/Kind/configuration(reason:)``.
    public var applicationProtocols: [String]
    /// The client certificate, sent when the server requests one.
    public var identity: TLSIdentity?
    /// A file to which the secrets of each connection are appended in the NSS key log format, for protocol analyzers.
    /// A missing file is created with mode 0600. A reader of the file can decrypt the connections.
    public var keyLogFile: String?
    /// Whether sessions are resumed by tickets (RFC 8446 §2.2), without verifying certificates again. On by default.
    public var usesSessionTickets: Bool
    /// OpenSSL's security level, 0–5; 2 by default: at least 112 bits, no SHA-1 signatures.
    public var securityLevel: Int
    /// The revocation lists that certificates are checked against; none by default.
    public var revocation = RevocationPolicy.none
    /// The settings that differ for some hosts.
    public var hosts = TLSHostOverrides()
    /// The public suffixes: a certificate's wildcard directly below one matches no host. By default the domains of a
    /// single label, and the registries' suffixes in this machine's Public Suffix List.
    public var publicSuffixes = PublicSuffixRule.system

    /// The settings for a host, with the host's own rule applied.
    package func settings(for host: String) -> TLSSettings {
        if hosts.isEmpty { return self }
        var settings = self
        settings.hosts = TLSHostOverrides()
        guard let rule = hosts.rule(for: host) else { return settings }
        settings.trust = rule.trust ?? trust
        settings.identity = rule.omitsIdentity ? nil : rule.identity ?? identity
        settings.revocation = rule.revocation ?? revocation
        settings.verifiesHostName = rule.verifiesHostName ?? verifiesHostName
        return settings
    }

    /// Whether the certificate of each server is verified for its name; a closure may still accept errors.
    package var verifiesServers: Bool { verifiesHostName && !trust.acceptsAnyCertificate }

    /// The paths of the files of certificates, keys and revocation lists that a TLS context is created from, without
    /// those of ``hosts``. Some may not exist.
    var files: [String] {
        var sources = trust.roots + (trust.pins?.certificates ?? []) + revocation.lists
        switch identity?.material {
        case .pem(let certificates, let key): sources += [certificates] + (key.map { [$0] } ?? [])
        case .pkcs12(let source): sources.append(source)
        case nil: break
        }
        return sources.compactMap(\.path) + (trust.usesSystemRoots ? SystemRoots.files : [])
    }

    /// Creates settings with the documented defaults.
    public init(
        trust: TrustPolicy = .system, verifiesHostName: Bool = true, minimumVersion: TLSVersion = .tls12,
        maximumVersion: TLSVersion = .tls13, cipherList: String? = nil, cipherSuites: String? = nil,
        applicationProtocols: [String] = ["http/1.1"], identity: TLSIdentity? = nil, keyLogFile: String? = nil,
        usesSessionTickets: Bool = true, securityLevel: Int = 2
    ) {
        (self.trust, self.verifiesHostName, self.minimumVersion) = (trust, verifiesHostName, minimumVersion)
        (self.maximumVersion, self.cipherList, self.cipherSuites) = (maximumVersion, cipherList, cipherSuites)
        (self.applicationProtocols, self.identity, self.keyLogFile) = (applicationProtocols, identity, keyLogFile)
        (self.usesSessionTickets, self.securityLevel) = (usesSessionTickets, securityLevel)
    }
}

/// A version of TLS that Martlet supports.
public enum TLSVersion: Int, Hashable, Sendable, Comparable, CaseIterable, Codable {
    /// TLS version 1.2 (RFC 5246).
    case tls12 = 12
    /// TLS version 1.3 (RFC 8446).
    case tls13 = 13

    var number: Int32 { self == .tls12 ? TLS1_2_VERSION : TLS1_3_VERSION }

    /// Orders by age: the older version is smaller.
    public static func < (left: TLSVersion, right: TLSVersion) -> Bool { left.rawValue < right.rawValue }
}

/// The certificates that are accepted.
///
/// Roots are authorities whose certificates are accepted. Pins are keys or certificates that the chain must contain in
/// addition. In a custom policy a closure decides. Connections and TLS sessions are shared only among equal policies.
public struct TrustPolicy: Hashable, Sendable {
    /// Whether the machine's own authorities are trusted.
    public var usesSystemRoots: Bool
    /// Authorities that are trusted in addition to the machine's, or instead of them. An intermediate authority given
    /// here is trusted without the root above it, and so is a server's own certificate.
    public var roots: [PEMSource]
    /// Whether any certificate is accepted, without verification; pins still apply to the server's own key.
    ///
    /// For tests only: an attacker on the network path can read and change everything on the encrypted connection.
    public var acceptsAnyCertificate = false
    /// The keys and certificates that the chain must contain.
    var pins: CertificatePins?

    typealias Evaluator = @Sendable (PresentedChain, String) async -> TrustDecision

    /// The closure of a custom policy. Requests with different closures must not share connections.
    var evaluator: Identified<Evaluator>?

    private init(usesSystemRoots: Bool, roots: [PEMSource]) {
        (self.usesSystemRoots, self.roots) = (usesSystemRoots, roots)
    }

    private func with(_ change: (inout TrustPolicy) -> Void) -> TrustPolicy {
        var copy = self
        change(&copy)
        return copy
    }

    private func withPins(_ change: (inout CertificatePins) -> Void) -> TrustPolicy {
        var pins = pins ?? CertificatePins()
        change(&pins)
        return with { $0.pins = pins }
    }

    // MARK: Roots

    /// The machine's authorities, from OpenSSL's default paths, else from those of Linux distributions; the default.
    ///
    /// `SSL_CERT_FILE` and `SSL_CERT_DIR` override the paths, as for every program that uses OpenSSL.
    public static let system = TrustPolicy(usesSystemRoots: true, roots: [])

    /// A policy that trusts only these authorities.
    public static func only(_ roots: PEMSource...) -> TrustPolicy { TrustPolicy(usesSystemRoots: false, roots: roots) }

    /// Returns this policy with more authorities.
    public func adding(_ roots: PEMSource...) -> TrustPolicy { with { $0.roots += roots } }

    // MARK: Pins

    /// A policy that trusts the machine's authorities, and requires one of these public keys in the chain.
    /// - Parameters:
    ///   - pins: Each in the form of ``PublicKeyPin/init(_:)``.
    ///   - backup: At least one key that is not in use yet, so that clients still connect if the key in use is lost.
    /// - Throws: ``TLSError`` of kind `.configuration` for a malformed pin, or without a backup.
    public static func pinnedPublicKeys(_ pins: String..., backup: String...) throws(TLSError) -> TrustPolicy {
        try system.pinning(pins, backup: backup)
    }

    /// Returns this policy with the additional requirement that the verified chain has one of these public keys: the
    /// server's or an authority's. Other certificates do not count, since a server may send any.
    ///
    /// Pins are checked on every connection; if it resumes a session, against the chain that created the session.
    /// - Parameters:
    ///   - pins: Each in the form of ``PublicKeyPin/init(_:)``.
    ///   - backup: Keys that are not in use yet; at least one must not be among the pins.
    /// - Throws: ``TLSError`` of kind `.configuration` for a malformed pin, or without a backup.
    public func pinningPublicKeys(_ pins: String..., backup: String...) throws(TLSError) -> TrustPolicy {
        try pinning(pins, backup: backup)
    }

    private func pinning(_ pins: [String], backup: [String]) throws(TLSError) -> TrustPolicy {
        let current = Set(try pins.map { text throws(TLSError) in try PublicKeyPin(text) })
        let others = Set(try backup.map { text throws(TLSError) in try PublicKeyPin(text) })
        guard !current.isEmpty else { throw TLSError(.configuration(reason: "no public key pin was given")) }
        guard !others.isSubset(of: current) else {
            throw TLSError(
                .configuration(
                    reason: "public key pins need a backup: the pin of another key, stored elsewhere, so that"
                        + " clients can still connect if the key in use is lost"))
        }
        return withPins { $0.publicKeys = current.union(others) }
    }

    /// Returns this policy with the additional requirement that the server's certificate has one of these public keys.
    ///
    /// After the server's key is lost or renewed, clients cannot connect until their pin is changed. For tests, and for
    /// programs that receive the pin for each run, as with curl's `--pinnedpubkey`.
    public func dangerouslyPinningWithoutBackup(_ pins: PublicKeyPin...) -> TrustPolicy {
        dangerouslyPinningWithoutBackup(pins)
    }

    /// Pins like the variadic overload. If the array is empty, no server is trusted.
    public func dangerouslyPinningWithoutBackup(_ pins: [PublicKeyPin]) -> TrustPolicy {
        withPins { ($0.publicKeys, $0.scope) = (Set(pins), .leaf) }
    }

    /// A policy that trusts only these certificates: a server's own, an authority's or a root. A server is trusted if
    /// its certificate is one of them, or if its chain ends in one. It must also be valid, and issued for the host.
    public static func pinnedCertificates(_ certificates: PEMSource...) -> TrustPolicy {
        TrustPolicy(usesSystemRoots: false, roots: certificates).withPins { $0.certificates = certificates }
    }

    /// Returns this policy with the additional requirement that the verified chain has one of these certificates.
    public func pinningCertificates(_ certificates: PEMSource...) -> TrustPolicy {
        withPins { $0.certificates += certificates }
    }

    /// Whether only the pinned certificates are trusted.
    var trustsPinsAlone: Bool {
        guard !usesSystemRoots, let pins, !pins.certificates.isEmpty else { return false }
        return Set(roots).isSubset(of: pins.certificates)
    }

    // MARK: Custom

    /// A policy whose closure decides, given the result of ``system``; see ``evaluated(by:)``.
    public static func custom(
        _ decide: @escaping @Sendable (_ chain: PresentedChain, _ host: String) async -> TrustDecision
    ) -> TrustPolicy { system.evaluated(by: decide) }

    /// Returns a policy whose closure decides, given the result of this policy. The closure may accept a chain that
    /// this policy rejects, and reject a chain that this policy accepts. Pins apply in any case.
    ///
    /// The closure is called in every handshake, before the request or a client certificate is sent. Sessions are not
    /// resumed. No lock is held, so the closure may wait, for example for the user. The request waits with it, within
    /// the connect timeout, and the server may end the handshake sooner. When the request is cancelled or times out,
    /// the closure's task is cancelled and no longer awaited.
    public func evaluated(
        by decide: @escaping @Sendable (_ chain: PresentedChain, _ host: String) async -> TrustDecision
    ) -> TrustPolicy { with { $0.evaluator = Identified(closure: decide) } }

    // MARK: Insecure

    /// Accepts any certificate. This removes the protection that TLS provides.
    public static let dangerouslyAcceptingAnyCertificate = TrustPolicy(usesSystemRoots: false, roots: []).with {
        $0.acceptsAnyCertificate = true
    }
}

/// The keys and certificates that a server's chain must contain, in addition to being valid.
struct CertificatePins: Hashable, Sendable {
    /// The certificates that may have the pinned key.
    enum Scope: Hashable, Sendable {
        /// Any certificate of the verified chain: the server's own or an authority's.
        case verifiedChain
        /// Only the server's own certificate, as with curl's `--pinnedpubkey`.
        case leaf
    }

    /// The chain must contain one of these keys; `nil` accepts any key.
    var publicKeys: Set<PublicKeyPin>?
    /// The chain must contain one of these certificates; empty accepts any certificate.
    var certificates: [PEMSource] = []
    var scope = Scope.verifiedChain
}

/// The check of certificates against revocation lists (RFC 5280 §5).
///
/// Martlet never fetches lists, and queries neither distribution points nor OCSP responders.
public struct RevocationPolicy: Hashable, Sendable {
    /// The part of a chain that is checked.
    public enum Scope: Hashable, Sendable {
        /// Only the server's own certificate.
        case leaf
        /// Every certificate below the trust anchor, which is a root, or another certificate that is trusted.
        case wholeChain
    }

    /// The lists, in PEM (any number in one text) or DER (one). If empty, nothing is checked.
    public var lists: [PEMSource]
    /// The part of the chain that is checked. The issuer of each checked certificate must have a list. The trust anchor
    /// needs no list (RFC 5280 §6.1), but if it is one of ``TrustPolicy/roots``, no list of ``lists`` may revoke it.
    public var scope: Scope
    /// Whether a list is used after its next update was due, although it does not contain later revocations. Off by
    /// default: the connection fails with ``TLSError/Kind/revocationUnknown(reason:)``.
    public var acceptsExpiredLists: Bool
    /// Whether a certificate is accepted if its issuer has no list. Off by default: the connection fails with
    /// ``TLSError/Kind/revocationUnknown(reason:)``.
    public var acceptsMissingLists: Bool
    /// A policy that checks nothing; the default.
    public static let none = lists(scope: .leaf)

    /// Checks certificates against these revocation lists.
    public static func lists(
        _ lists: PEMSource..., scope: Scope = .wholeChain, acceptsExpiredLists: Bool = false,
        acceptsMissingLists: Bool = false
    ) -> RevocationPolicy {
        RevocationPolicy(
            lists: lists, scope: scope, acceptsExpiredLists: acceptsExpiredLists,
            acceptsMissingLists: acceptsMissingLists)
    }
}

/// TLS settings that differ from the session's for some hosts.
///
/// ```swift
/// configuration.tls.hosts["example.com"] = TLSHostSettings(trust: .only(authorities))
/// configuration.tls.hosts["*.internal.example"] = TLSHostSettings(identity: identity)
/// ```
///
/// A pattern is a host name, an address, or `*.` and a domain, which matches every host below the domain but not the
/// domain itself. Names beyond ASCII are converted as in URLs: `bücher.example` is `xn--bcher-kva.example`; in the
/// settings of a proxy they must be in ASCII. If several patterns match, only one rule applies: that of the host name,
/// else that of the longest wildcard.
public struct TLSHostOverrides: Hashable, Sendable {
    private var exact: [String: TLSHostSettings] = [:]
    /// The rules by the domain of their pattern, without `*.`.
    private var wildcards: [String: TLSHostSettings] = [:]

    /// Creates an empty set of rules.
    public init() {}

    /// Whether the set is empty.
    public var isEmpty: Bool { exact.isEmpty && wildcards.isEmpty }

    var byPattern: [String: TLSHostSettings] {
        exact.merging(wildcards.map { ("*." + $0.key, $0.value) }) { _, wildcard in wildcard }
    }

    /// The rule of a pattern. Letter case, the form and brackets of an address, and a dot at the end are ignored.
    public subscript(pattern: String) -> TLSHostSettings? {
        get {
            let (name, isWildcard) = TLSHostOverrides.parsed(pattern)
            return isWildcard ? wildcards[name] : exact[name]
        }
        set {
            let (name, isWildcard) = TLSHostOverrides.parsed(pattern)
            if isWildcard { wildcards[name] = newValue } else { exact[name] = newValue }
        }
    }

    package func rule(for host: String) -> TLSHostSettings? {
        if isEmpty { return nil }
        let name = TLSHostOverrides.normalized(host)
        if let rule = exact[name] { return rule }
        // An address has no domain above it.
        guard !wildcards.isEmpty, SocketAddress(literal: name, port: 0) == nil else { return nil }
        var rest = name[...]
        while let dot = rest.firstIndex(of: ".") {
            rest = rest[rest.index(after: dot)...]
            if let rule = wildcards[String(rest)] { return rule }
        }
        return nil
    }

    /// Returns the rules with patterns beyond ASCII converted by a closure. A pattern does not change if the closure
    /// returns `nil`, or if the converted pattern has its own rule.
    package func inASCII(_ ascii: (String) -> String?) -> TLSHostOverrides {
        var copy = self
        for (pattern, rule) in byPattern where pattern.utf8.contains(where: { $0 >= 0x80 }) {
            let prefix = pattern.hasPrefix("*.") ? "*." : ""
            guard let plain = ascii(String(pattern.dropFirst(prefix.count))), copy[prefix + plain] == nil else {
                continue
            }
            copy[pattern] = nil
            copy[prefix + plain] = rule
        }
        return copy
    }

    /// The normalized name in a pattern, and whether the pattern is a wildcard for the hosts below that name.
    private static func parsed(_ pattern: String) -> (name: String, isWildcard: Bool) {
        let isWildcard = pattern.hasPrefix("*.")
        return (normalized(isWildcard ? String(pattern.dropFirst(2)) : pattern), isWildcard)
    }

    private static func normalized(_ text: String) -> String {
        switch PeerName(text) {
        case .host(let name): name
        case .address(let address): SocketAddress(literal: address, port: 0)?.host ?? address.lowercased()
        case nil: text.lowercased()
        }
    }
}

/// TLS settings for some hosts. For a property that is `nil`, the session's setting applies.
public struct TLSHostSettings: Hashable, Sendable {
    /// The certificates that are accepted.
    public var trust: TrustPolicy?
    /// The client certificate, sent when the server requests one.
    public var identity: TLSIdentity?
    /// Whether no client certificate is sent, even if the session has one. Off by default.
    public var omitsIdentity: Bool
    /// The revocation lists that certificates are checked against.
    public var revocation: RevocationPolicy?
    /// Whether the certificate must be issued for the host.
    public var verifiesHostName: Bool?

    /// Creates settings. For an omitted argument, the session's setting applies.
    public init(
        trust: TrustPolicy? = nil, identity: TLSIdentity? = nil, omitsIdentity: Bool = false,
        revocation: RevocationPolicy? = nil, verifiesHostName: Bool? = nil
    ) {
        (self.trust, self.identity, self.omitsIdentity) = (trust, identity, omitsIdentity)
        (self.revocation, self.verifiesHostName) = (revocation, verifiesHostName)
    }
}

extension TLSHostSettings: Codable {
    // Without the identity: private keys and pass phrases are never encoded.
    private enum CodingKeys: CodingKey { case trust, omitsIdentity, revocation, verifiesHostName }

    /// Reads settings, without an identity.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            trust: try container.decodeIfPresent(TrustPolicy.self, forKey: .trust),
            omitsIdentity: try container.value(.omitsIdentity, or: false),
            revocation: try container.decodeIfPresent(RevocationPolicy.self, forKey: .revocation),
            verifiesHostName: try container.decodeIfPresent(Bool.self, forKey: .verifiesHostName))
    }
}

/// The public suffixes: domains below which the public can register names. A wildcard directly below such a domain
/// would match hosts of many owners, and is rejected (RFC 9525 §6.3 leaves the limit to the verifier).
///
/// Two rules are equal only if they were created by the same call.
public final class PublicSuffixRule: Hashable, Sendable {
    private let isSuffix: @Sendable (String) -> Bool

    /// Creates a rule from a closure, such as one that searches a copy of the Public Suffix List.
    /// - Parameter isPublicSuffix: Receives a domain in lower-case ASCII, without a dot at either end; must not block.
    public init(_ isPublicSuffix: @escaping @Sendable (String) -> Bool) { isSuffix = isPublicSuffix }

    /// The rule whose suffixes are only the domains of a single label, such as `com`.
    public static let singleLabel = PublicSuffixRule { _ in false }

    /// The rule of this machine's Public Suffix List, with suffixes of registries such as `co.uk`; the default. If the
    /// list (Debian's package `publicsuffix`) is not installed, only domains of a single label are suffixes.
    ///
    /// A process reads the list once, before it opens the first TLS connection.
    public static let system = PublicSuffixRule { RegistrySuffixes.installed.contains($0) }

    /// Reads the list that the rule needs, which blocks.
    func load() { if self == .system { _ = RegistrySuffixes.installed } }

    /// Whether a domain is a public suffix; a domain of a single label always is.
    public func isPublicSuffix(_ domain: String) -> Bool {
        !domain.utf8.contains(UInt8(ascii: ".")) || isSuffix(domain)
    }

    /// Compares the identity.
    public static func == (left: PublicSuffixRule, right: PublicSuffixRule) -> Bool { left === right }

    /// Hashes the identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
