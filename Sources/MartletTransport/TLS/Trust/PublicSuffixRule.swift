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

    /// Every domain of a single label, such as `com`, and no other; the default.
    public static let singleLabel = PublicSuffixRule { _ in false }

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
