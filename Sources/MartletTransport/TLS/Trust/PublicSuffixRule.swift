/// Says which domains are public suffixes, below which anybody can register: a wildcard directly under one would stand for
/// many people's hosts, and is not taken (RFC 9525 §6.3 leaves the limit to the verifier).
///
/// Two rules are equal only where they were made by the same call.
public final class PublicSuffixRule: Hashable, Sendable {
    private let isSuffix: @Sendable (String) -> Bool

    /// A rule by a closure, such as one that looks into a copy of the Public Suffix List.
    /// - Parameter isPublicSuffix: Gets a domain in lower-case ASCII, without a dot at either end; must not block.
    public init(_ isPublicSuffix: @escaping @Sendable (String) -> Bool) {
        isSuffix = isPublicSuffix
    }

    /// Every domain of a single label, such as `com`, and no other.
    public static let singleLabel = PublicSuffixRule { _ in false }

    /// The suffixes of registries, such as `co.uk`, in the Public Suffix List of the machine; the default. Where the list is
    /// not installed (Debian's package `publicsuffix`), the same as ``singleLabel``.
    ///
    /// The list is read once in a process, before the first TLS connection is opened.
    public static let system = PublicSuffixRule { RegistrySuffixes.installed.contains($0) }

    /// Reads what the rule needs, which blocks.
    func load() {
        if self == .system { _ = RegistrySuffixes.installed }
    }

    /// Whether a domain is a public suffix; one of a single label always is.
    public func isPublicSuffix(_ domain: String) -> Bool {
        !domain.utf8.contains(UInt8(ascii: ".")) || isSuffix(domain)
    }

    /// Whether they are the same object.
    public static func == (left: PublicSuffixRule, right: PublicSuffixRule) -> Bool {
        left === right
    }

    /// Hashes the identity.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}
