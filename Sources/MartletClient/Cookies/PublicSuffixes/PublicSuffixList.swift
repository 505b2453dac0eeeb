import MartletStorage
import MartletTransport
import MartletWire
public import SystemPackage

/// The public suffix list, as publicsuffix.org and Debian's package `publicsuffix` give it out.
///
/// Wildcards (`*.ck`), exceptions (`!www.ck`) and names in any script are understood. Lines that are no rule
/// are left out and counted. It takes about 300 KiB of memory and a few milliseconds to read.
public struct PublicSuffixList: PublicSuffixes {
    /// The parts of the list.
    public enum Section: Sendable {
        /// Suffixes of registries: `com`, `co.uk`.
        case registries
        /// Those, and suffixes that others let to strangers: `github.io`. What cookies want.
        case all
    }

    /// How many rules were taken.
    public var ruleCount: Int { rules.count }
    /// The lines that are no rule, counted from 1; the first thousand of them.
    public let malformedLines: [Int]

    private let rules: PublicSuffixRules

    /// The longest file read, in bytes: 16 MiB. It stops a mistaken path from filling the memory; the list
    /// has 0.3.
    static let byteLimit: UInt64 = 16 << 20

    /// Reads the text of a list.
    ///
    /// It never fails: what is no list has no rules, and then ``isComplete`` is false.
    public init(_ text: some Sequence<UInt8>, section: Section = .all) {
        var reader = PublicSuffixReader(section: section)
        self = reader.read(Array(text))
    }

    init(rules: PublicSuffixRules, malformedLines: [Int]) {
        self.rules = rules
        self.malformedLines = malformedLines
    }

    /// Reads a file, away from the caller's thread.
    ///
    /// - Throws: ``StorageError`` when it cannot be read, or is larger than 16 MiB.
    public init(contentsOf path: FilePath, section: Section = .all) async throws(StorageError) {
        let name = path.string
        self = try await BlockingWorkers.shared.run { () throws(StorageError) in
            try PublicSuffixList(blockingOn: name, section: section)
        }
    }

    /// Reads a file on the caller's thread.
    init(blockingOn path: String, section: Section) throws(StorageError) {
        self.init(try FileReader(path: path).contents(limit: PublicSuffixList.byteLimit), section: section)
    }

    /// Whether there is a rule at all.
    public var isComplete: Bool { ruleCount > 0 }

    /// The public suffix that a name ends in: by the rule that matches most labels, an exception before all
    /// others, else the last label.
    public func publicSuffix(of name: String) -> Substring {
        let bytes = Array(name.utf8)
        let hasTrailingDot = bytes.count > 1 && bytes.last == UInt8(ascii: ".")
        let length = rules.suffixLength(of: hasTrailingDot ? Array(bytes.dropLast()) : bytes)
        let start = name.utf8.index(
            name.utf8.endIndex, offsetBy: -min(length + (hasTrailingDot ? 1 : 0), bytes.count))
        return name[start...]
    }
}

extension PublicSuffixes where Self == PublicSuffixList {
    /// No list: the last label of a name is its public suffix.
    public static var lastLabel: PublicSuffixList { PublicSuffixList([]) }
}
