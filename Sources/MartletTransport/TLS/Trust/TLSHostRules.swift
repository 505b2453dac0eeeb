/// What differs from the session's TLS settings for some hosts: whom they are trusted by and what they are shown.
///
/// ```swift
/// configuration.tls.hosts["api.example.com"] = TLSHostSettings(trust: .only(.file("/etc/corp/ca.pem")))
/// configuration.tls.hosts["*.internal.example"] = TLSHostSettings(identity: identity)
/// ```
///
/// A pattern is a host name, an address, or `*.` and a domain, which stands for every host below the domain and not for the
/// domain itself. The host's own rule goes before wildcards, and a longer wildcard before a shorter one; rules are not
/// merged with each other.
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

    /// The rule of a pattern; letters' case, brackets around an address and a dot at the end make no difference.
    public subscript(pattern: String) -> TLSHostSettings? {
        get {
            let name = TLSHostRules.normalised(pattern)
            return name.hasPrefix("*.") ? wildcards[String(name.dropFirst(2))] : exact[name]
        }
        set {
            let name = TLSHostRules.normalised(pattern)
            if name.hasPrefix("*.") {
                wildcards[String(name.dropFirst(2))] = newValue
            } else {
                exact[name] = newValue
            }
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

    private static func normalised(_ text: String) -> String {
        PeerName(text)?.text ?? text.lowercased()
    }
}
