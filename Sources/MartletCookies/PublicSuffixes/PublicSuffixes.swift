import MartletTransport

/// A source of public suffixes: names such as `com`, `co.uk` or `github.io` below which the public may register names.
///
/// No site may set a cookie for a public suffix, which other sites would receive as well (RFC 6265bis §5.7).
/// ``PublicSuffixList`` reads Mozilla's list from a file; ``SystemPublicSuffixes`` finds the machine's copy.
///
/// Names are hosts as in ``HTTPURL/host``: lower case, A-labels, no IP addresses; a trailing dot is allowed.
public protocol PublicSuffixes: Sendable {
    /// Whether there is a list.
    ///
    /// Without one, only the last label of a name counts as its public suffix: `com` is one, `co.uk` is not, and a site
    /// below `co.uk` can set cookies for all others there.
    var isComplete: Bool { get }

    /// Returns the public suffix of a name: by the rule with most labels, otherwise the last label.
    /// - Returns: The end of `name`, including a trailing dot; the whole name if it is a public suffix itself.
    func publicSuffix(of name: String) -> Substring

    /// Reads the list before the first lookup of a ``CookieJar``. Does nothing by default. Must not block a thread of
    /// Swift's cooperative pool.
    func prepare() async
}

extension PublicSuffixes {
    /// Does nothing; the default implementation.
    public func prepare() async {}

    /// Whether the whole name is a public suffix.
    public func isPublicSuffix(_ name: String) -> Bool { publicSuffix(of: name).utf8.count == name.utf8.count }

    /// Returns the registrable domain: the public suffix with one more label. `nil` if the name is a public suffix.
    public func registrableDomain(of name: String) -> Substring? {
        let bytes = name.utf8
        let suffixLength = publicSuffix(of: name).utf8.count
        // The dot before the suffix, and at least one byte before the dot.
        guard suffixLength > 0, suffixLength + 1 < bytes.count else { return nil }
        let owned = bytes.dropLast(suffixLength + 1)
        guard let dot = owned.lastIndex(of: UInt8(ascii: ".")) else { return name[...] }
        return name[bytes.index(after: dot)...]
    }
}

/// The public suffix list of the machine: that of Debian's package `publicsuffix`.
///
/// It is read once in a process, before the first lookup. If the package is not installed, ``isComplete`` is false and
/// the last label of a name counts as its public suffix; give a ``CookieJar`` your own ``PublicSuffixList`` then.
public struct SystemPublicSuffixes: PublicSuffixes {
    /// The paths of the list, in the order of the attempts.
    static let paths = [
        "/usr/share/publicsuffix/public_suffix_list.dat", "/usr/share/publicsuffix/effective_tld_names.dat",
    ]

    /// The list, read by the first thread that needs it. Other threads wait until it is read.
    private static let list = SystemPublicSuffixes.firstList(of: paths)

    /// Creates the list of the machine.
    public init() {}

    /// Whether a list was found.
    public var isComplete: Bool { SystemPublicSuffixes.list.isComplete }

    /// Returns the public suffix of a name.
    ///
    /// Unless ``prepare()`` was called, the first lookup in a process reads the file, which blocks for milliseconds.
    public func publicSuffix(of name: String) -> Substring { SystemPublicSuffixes.list.publicSuffix(of: name) }

    /// Reads the list on a separate thread, unless it was read already.
    public func prepare() async { await BlockingThreadPool.shared.run { _ = SystemPublicSuffixes.list } }

    /// Returns the list of the first file that can be read and contains a rule; otherwise an empty list.
    package static func firstList(of paths: [String]) -> PublicSuffixList {
        paths.lazy.compactMap { try? PublicSuffixList(blockingOn: $0, section: .all) }.first(where: \.isComplete)
            ?? .lastLabel
    }
}

extension PublicSuffixes where Self == SystemPublicSuffixes {
    /// The public suffix list of the machine.
    public static var system: SystemPublicSuffixes { SystemPublicSuffixes() }
}
