import MartletCore
import MartletStorage
import MartletTransport

/// Knowledge of public suffixes: names such as `com`, `co.uk` or `github.io` below which strangers register
/// theirs.
///
/// No site may set a cookie for a whole public suffix, or it could plant cookies in sites that it has nothing
/// to do with (RFC 6265bis §5.7). ``PublicSuffixList`` reads Mozilla's list from a file;
/// ``SystemPublicSuffixes`` finds the file that the machine has.
///
/// Names are hosts as in ``HTTPURL/host``: lower case, A-labels, no IP addresses; a trailing dot is allowed.
public protocol PublicSuffixes: Sendable {
    /// Whether there is a list behind the answers.
    ///
    /// When there is none only the last label of a name counts as public suffix: `com` is one, `co.uk` is
    /// not, and a site below `co.uk` can set cookies for all others there.
    var isComplete: Bool { get }

    /// The public suffix that a name ends in: by the rule that matches most labels, else the last label.
    ///
    /// - Returns: an end of `name`, its trailing dot included; the whole name when it is a public suffix
    ///   itself.
    func publicSuffix(of name: String) -> Substring

    /// Reads what has to be read, before the first question.
    ///
    /// A ``CookieJar`` calls it once and waits. Whatever blocks belongs off Swift's cooperative pool. By
    /// default it does nothing.
    func prepare() async
}

extension PublicSuffixes {
    /// Does nothing.
    public func prepare() async {}

    /// Whether the whole name is a public suffix.
    public func isPublicSuffix(_ name: String) -> Bool {
        publicSuffix(of: name).utf8.count == name.utf8.count
    }

    /// The public suffix with one label more: the name somebody registered. `nil` when the name is a public
    /// suffix.
    public func registrableDomain(of name: String) -> Substring? {
        let bytes = name.utf8
        let suffixLength = publicSuffix(of: name).utf8.count
        // The dot before the suffix, and what is before the dot.
        guard suffixLength > 0, suffixLength + 1 < bytes.count else { return nil }
        let owned = bytes.dropLast(suffixLength + 1)
        guard let dot = owned.lastIndex(of: UInt8(ascii: ".")) else { return name[...] }
        return name[bytes.index(after: dot)...]
    }
}

/// The public suffix list of the machine: that of Debian's package `publicsuffix`.
///
/// It is read once in a process, when it is first asked for. Where the package is not installed
/// ``isComplete`` is false and the last label of a name counts as its public suffix; give a ``CookieJar`` a
/// ``PublicSuffixList`` of your own then.
public struct SystemPublicSuffixes: PublicSuffixes {
    /// Where the list is looked for, in this order.
    static let paths = [
        "/usr/share/publicsuffix/public_suffix_list.dat", "/usr/share/publicsuffix/effective_tld_names.dat",
    ]

    /// Read by whoever asks first; the others wait for it.
    private static let list = SystemPublicSuffixes.firstList(of: paths)

    /// The machine's list.
    public init() {}

    /// Whether a list was found.
    public var isComplete: Bool { SystemPublicSuffixes.list.isComplete }

    /// The public suffix that a name ends in.
    ///
    /// Unless ``prepare()`` was called, the first question in a process reads the file, which blocks for
    /// milliseconds.
    public func publicSuffix(of name: String) -> Substring {
        SystemPublicSuffixes.list.publicSuffix(of: name)
    }

    /// Reads the list on a thread of its own, if nobody has yet.
    public func prepare() async { await BlockingWorkers.shared.run { _ = SystemPublicSuffixes.list } }

    /// The first of the files that can be read and holds a rule, else no list.
    package static func firstList(of paths: [String]) -> PublicSuffixList {
        for path in paths {
            guard let list = try? PublicSuffixList(blockingOn: path, section: .all), list.isComplete else {
                continue
            }
            return list
        }
        return .lastLabel
    }
}

extension PublicSuffixes where Self == SystemPublicSuffixes {
    /// The public suffix list of the machine.
    public static var system: SystemPublicSuffixes { SystemPublicSuffixes() }
}
