import MartletURL
import MartletCore
public import MartletStorage
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

/// Reads the text of a public suffix list: one rule a line, up to the first white space; `//` begins a
/// comment.
struct PublicSuffixReader {
    private let section: PublicSuffixList.Section
    private var rules = PublicSuffixRules(capacity: 0)
    private var malformedLines: [Int] = []

    /// How many malformed lines are remembered.
    private static let malformedLimit = 1000
    private static let privateSection = Array("// ===BEGIN PRIVATE DOMAINS===".utf8)

    init(section: PublicSuffixList.Section) { self.section = section }

    mutating func read(_ text: [UInt8]) -> PublicSuffixList {
        let lines = text.split(separator: ByteClass.lineFeed, omittingEmptySubsequences: false)
        rules = PublicSuffixRules(capacity: lines.count)
        for (index, line) in lines.enumerated() {
            if line.starts(with: PublicSuffixReader.privateSection), section == .registries { break }
            let rule = line.prefix { $0 > ByteClass.space }
            guard !rule.isEmpty, !rule.starts(with: "//".utf8) else { continue }
            if !take(rule), malformedLines.count < PublicSuffixReader.malformedLimit {
                malformedLines.append(index + 1)
            }
        }
        return PublicSuffixList(rules: rules, malformedLines: malformedLines)
    }

    /// Takes one rule; returns whether it is one.
    private mutating func take(_ rule: ArraySlice<UInt8>) -> Bool {
        var name = rule
        var kind = PublicSuffixRules.Kind.plain
        if name.first == UInt8(ascii: "!") {
            kind = .exception
            name = name.dropFirst()
        } else if name.starts(with: "*.".utf8) {
            kind = .wildcard
            name = name.dropFirst(2)
        }
        guard let canonical = PublicSuffixReader.canonical(name) else { return false }
        return rules.insert(canonical[...], kind)
    }

    /// A name in lower case and A-labels; nil when it is none.
    private static func canonical(_ name: ArraySlice<UInt8>) -> [UInt8]? {
        var name = name
        if name.first == UInt8(ascii: ".") { name = name.dropFirst() }
        guard !name.isEmpty, name.count <= 4 * PublicSuffixRules.nameLimit else { return nil }
        var ascii = name.map(ByteClass.lowercased)
        if ascii.contains(where: { $0 >= 0x80 }) {
            guard let text = String(validating: name, as: UTF8.self) else { return nil }
            let scalars = text.unicodeScalars.map { DomainName.Placed(scalar: $0, position: 0) }
            guard let domain = try? DomainName(scalars: scalars) else { return nil }
            ascii = Array(domain.ascii.utf8)
        }
        let isName = ascii.allSatisfy { byte in
            ByteClass.isDigit(byte) || byte &- 0x61 < 26 || byte == UInt8(ascii: "-")
                || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".")
        }
        let dot = UInt8(ascii: ".")
        guard isName, ascii.first != dot, ascii.last != dot else { return nil }
        return ascii
    }
}
