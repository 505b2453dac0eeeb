public import MartletStorage
public import MartletTransport
import MartletURL
import MartletWire
import SystemPackage

/// The public suffix list, as publicsuffix.org and Debian's package `publicsuffix` distribute it.
///
/// Wildcards (`*.ck`), exceptions (`!www.ck`) and names in any script are supported. Invalid lines are skipped and
/// listed in ``malformedLines``. Ten thousand rules use about 1 MiB of memory, and are parsed in a few milliseconds.
public struct PublicSuffixList: PublicSuffixes {
    /// The sections of the list.
    public enum Section: Sendable {
        /// Suffixes of registries: `com`, `co.uk`.
        case registries
        /// Suffixes of registries, and those below which others register names, as needed for cookies: `github.io`.
        case all
    }

    /// The rules of a name.
    private struct Kind: OptionSet, Sendable {
        let rawValue: UInt8
        /// The name is a public suffix.
        static let plain = Kind(rawValue: 1)
        /// The name with any one label before it is a public suffix: `*.name`.
        static let wildcard = Kind(rawValue: 2)
        /// The name is not a public suffix, despite a wildcard: `!name`.
        static let exception = Kind(rawValue: 4)
    }

    /// The number of rules.
    public private(set) var ruleCount = 0
    /// The numbers of the invalid lines, starting at 1; the first thousand of them.
    public private(set) var malformedLines: [Int] = []

    /// The rules, by names in lower case and A-labels.
    private var rules: [ArraySlice<UInt8>: Kind] = [:]
    /// The maximum size of a file, so that a wrong path cannot fill the memory: 16 MiB. The list has about 0.3 MiB.
    private static let byteLimit: UInt64 = 16 << 20
    /// The maximum number of invalid lines that are listed.
    private static let malformedLimit = 1000
    /// The maximum length of a name, in bytes: that of a host.
    private static let nameLimit = 253
    private static let privateSection = Array("// ===BEGIN PRIVATE DOMAINS===".utf8)
    private static let dot = UInt8(ascii: ".")

    /// Parses a list: one rule in each line, up to the first white space; `//` starts a comment.
    ///
    /// Parsing never fails. Text without a valid rule gives an empty list, whose ``isComplete`` is false.
    public init(_ text: some Sequence<UInt8>, section: Section = .all) {
        let lines = Array(text).split(separator: ByteClass.lineFeed, omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            if line.starts(with: PublicSuffixList.privateSection), section == .registries { break }
            let rule = line.prefix { $0 > ByteClass.space }
            guard !rule.isEmpty, !rule.starts(with: "//".utf8), !insert(rule) else { continue }
            if malformedLines.count < PublicSuffixList.malformedLimit { malformedLines.append(index + 1) }
        }
    }

    /// Reads a file without blocking the caller's thread.
    /// - Throws: ``StorageError`` if the file cannot be read, or is larger than 16 MiB.
    public init(contentsOf path: some FilePathConvertible, section: Section = .all) async throws(StorageError) {
        let name = path.filePath.string
        self = try await BlockingThreadPool.shared.run { () throws(StorageError) in
            try PublicSuffixList(blockingOn: name, section: section)
        }
    }

    /// Reads a file on the caller's thread.
    init(blockingOn path: String, section: Section) throws(StorageError) {
        self.init(try FileReader(path: path).contents(limit: PublicSuffixList.byteLimit), section: section)
    }

    /// Whether the list has at least one rule.
    public var isComplete: Bool { ruleCount > 0 }

    /// Returns the public suffix of a name: by an exception, else by the rule with most labels, else the last label.
    public func publicSuffix(of name: String) -> Substring {
        let bytes = Array(name.utf8)
        let hasTrailingDot = bytes.count > 1 && bytes.last == PublicSuffixList.dot
        let length = suffixLength(of: hasTrailingDot ? Array(bytes.dropLast()) : bytes)
        let start = name.utf8.index(name.utf8.endIndex, offsetBy: -min(length + (hasTrailingDot ? 1 : 0), bytes.count))
        return name[start...]
    }

    /// Returns the length of the public suffix of a name without a trailing dot, in bytes.
    private func suffixLength(of name: [UInt8]) -> Int {
        let isDot = { (byte: UInt8) in byte == PublicSuffixList.dot }
        var longest: Int?
        // Looks up the last label, then the last two labels, and so on.
        for index in name.indices.reversed() where index == 0 || isDot(name[index - 1]) {
            let length = name.count - index
            // Names above the limit have no rules. Only a host that the caller created can be that long.
            guard length <= PublicSuffixList.nameLimit else { break }
            longest = longest ?? length
            guard let kind = rules[name[index...]] else { continue }
            if kind.contains(.exception) { return max(length - name[index...].prefix { !isDot($0) }.count - 1, 0) }
            if kind.contains(.plain) { longest = max(longest ?? 0, length) }
            if kind.contains(.wildcard), index > 1 {
                let label = name[..<(index - 1)].reversed().prefix { !isDot($0) }
                longest = max(longest ?? 0, length + 1 + label.count)
            }
        }
        return longest ?? name.count
    }

    /// Adds a rule; returns whether it is valid.
    private mutating func insert(_ rule: ArraySlice<UInt8>) -> Bool {
        var name = rule
        var kind = Kind.plain
        if name.first == UInt8(ascii: "!") {
            kind = .exception
            name = name.dropFirst()
        } else if name.starts(with: "*.".utf8) {
            kind = .wildcard
            name = name.dropFirst(2)
        }
        guard let canonical = PublicSuffixList.canonical(name) else { return false }
        rules[canonical, default: []].insert(kind)
        ruleCount += 1
        return true
    }

    /// Returns a name in lower case and A-labels; `nil` if it is invalid.
    private static func canonical(_ given: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        let name = given.first == dot ? given.dropFirst() : given
        guard !name.isEmpty, name.count <= 4 * nameLimit else { return nil }
        var ascii = name.map(ByteClass.lowercased)
        if ascii.contains(where: { $0 >= 0x80 }) {
            guard let text = String(validating: name, as: UTF8.self) else { return nil }
            let scalars = text.unicodeScalars.map { DomainName.Placed(scalar: $0, position: 0) }
            guard let domain = try? DomainName(scalars: scalars) else { return nil }
            ascii = Array(domain.ascii.utf8)
        }
        let isName = ascii.allSatisfy { byte in
            ByteClass.isDigit(byte) || byte &- 0x61 < 26 || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
                || byte == dot
        }
        guard isName, !ascii.isEmpty, ascii.count <= nameLimit, ascii.first != dot, ascii.last != dot else {
            return nil
        }
        // Most names are canonical already, and share the memory of the text.
        return name.elementsEqual(ascii) ? name : ascii[...]
    }
}

extension PublicSuffixes where Self == PublicSuffixList {
    /// An empty list: the last label of a name is its public suffix.
    public static var lastLabel: PublicSuffixList { PublicSuffixList([]) }
}
