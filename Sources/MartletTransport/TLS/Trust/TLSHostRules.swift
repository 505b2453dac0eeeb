/// What differs from the session's TLS settings for some hosts: whom they are trusted by and what they are shown.
///
/// ```swift
/// configuration.tls.hosts["api.example.com"] = TLSHostSettings(trust: .only(.file("/etc/corp/ca.pem")))
/// configuration.tls.hosts["*.internal.example"] = TLSHostSettings(identity: identity)
/// ```
///
/// A pattern is a host name, an address, or `*.` and a domain, which stands for every host below the domain and not for the
/// domain itself. Names beyond ASCII are taken as in URLs: `bücher.example` is `xn--bcher-kva.example`; in the settings of
/// a proxy they are to be in ASCII. The host's own rule goes before wildcards, and a longer wildcard before a shorter one;
/// rules are not merged with each other.
public struct TLSHostRules: Hashable, Sendable {
    private var exact: [String: TLSHostSettings] = [:]
    /// By domain, without `*.`.
    private var wildcards: [String: TLSHostSettings] = [:]

    /// No rules.
    public init() {}

    /// Whether there are no rules.
    public var isEmpty: Bool { exact.isEmpty && wildcards.isEmpty }

    /// All rules by their patterns.
    var byPattern: [String: TLSHostSettings] {
        var all = exact
        for (domain, rule) in wildcards { all["*." + domain] = rule }
        return all
    }

    /// The rule of a pattern; letters' case, brackets around an address, the way an address is written and a dot at the
    /// end make no difference.
    public subscript(pattern: String) -> TLSHostSettings? {
        get {
            guard let domain = TLSHostRules.domain(of: pattern) else {
                return exact[TLSHostRules.normalised(pattern)]
            }
            return wildcards[domain]
        }
        set {
            guard let domain = TLSHostRules.domain(of: pattern) else {
                exact[TLSHostRules.normalised(pattern)] = newValue
                return
            }
            wildcards[domain] = newValue
        }
    }

    /// The rule that applies to a host.
    package func rule(for host: String) -> TLSHostSettings? {
        if isEmpty { return nil }
        let name = TLSHostRules.normalised(host)
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

    /// The same rules, where patterns beyond ASCII are replaced by what a closure makes of their names; those it has no
    /// answer for, and those that have a rule in ASCII as well, stay as they are.
    package func inASCII(_ ascii: (String) -> String?) -> TLSHostRules {
        var copy = self
        for (name, rule) in exact where name.utf8.contains(where: { $0 >= 0x80 }) {
            guard let plain = ascii(name), copy[plain] == nil else { continue }
            copy.exact[name] = nil
            copy[plain] = rule
        }
        for (domain, rule) in wildcards where domain.utf8.contains(where: { $0 >= 0x80 }) {
            guard let plain = ascii(domain), copy["*." + plain] == nil else { continue }
            copy.wildcards[domain] = nil
            copy["*." + plain] = rule
        }
        return copy
    }

    /// The domain that a wildcard stands below; `nil` for other patterns.
    private static func domain(of pattern: String) -> String? {
        pattern.hasPrefix("*.") ? normalised(String(pattern.dropFirst(2))) : nil
    }

    /// The one form of a name or an address that is compared.
    private static func normalised(_ text: String) -> String {
        switch PeerName(text) {
        case .host(let name): name
        case .address(let address): SocketAddress(literal: address, port: 0)?.host ?? address.lowercased()
        case nil: text.lowercased()
        }
    }
}

/// TLS settings for some hosts; what is `nil` is as in the session's.
public struct TLSHostSettings: Hashable, Sendable {
    /// Whose certificates are accepted.
    public var trust: TrustPolicy?
    /// What is shown when the server demands a certificate.
    public var identity: TLSIdentity?
    /// Whether no identity is shown, though the session has one. Off by default.
    public var showsNoIdentity: Bool
    /// Whether certificates are looked up in revocation lists.
    public var revocation: RevocationPolicy?
    /// Whether the certificate must be made out to the host.
    public var verifiesHostName: Bool?

    /// Settings; all but those given are the session's.
    public init(
        trust: TrustPolicy? = nil, identity: TLSIdentity? = nil, showsNoIdentity: Bool = false,
        revocation: RevocationPolicy? = nil, verifiesHostName: Bool? = nil
    ) {
        self.trust = trust
        self.identity = identity
        self.showsNoIdentity = showsNoIdentity
        self.revocation = revocation
        self.verifiesHostName = verifiesHostName
    }
}
