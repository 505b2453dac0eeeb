import MartletStorage
import MartletTransport

/// The public suffix list of the machine: that of Debian's package `publicsuffix`.
///
/// It is read once in a process, when it is first asked for. Where the package is not installed
/// ``isComplete`` is false and the last label of a name counts as its public suffix; give a ``CookieJar`` a
/// ``PublicSuffixList`` of your own then.
public struct SystemPublicSuffixes: PublicSuffixes {
    /// Where the list is looked for, in this order.
    static let paths = [
        "/usr/share/publicsuffix/public_suffix_list.dat",
        "/usr/share/publicsuffix/effective_tld_names.dat",
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
    public func prepare() async {
        await BlockingWorkers.shared.run { _ = SystemPublicSuffixes.list }
    }

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
