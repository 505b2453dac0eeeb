import MartletWire

/// Reads the text of a public suffix list: one rule a line, up to the first white space; `//` begins a
/// comment.
struct PublicSuffixReader {
    private let section: PublicSuffixList.Section
    private var rules = PublicSuffixRules(capacity: 0)
    private var malformedLines: [Int] = []

    /// How many malformed lines are remembered.
    private static let malformedLimit = 1000
    private static let privateSection = Array("// ===BEGIN PRIVATE DOMAINS===".utf8)

    init(section: PublicSuffixList.Section) {
        self.section = section
    }

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
                || byte == UInt8(ascii: "_")
                || byte == UInt8(ascii: ".")
        }
        let dot = UInt8(ascii: ".")
        guard isName, ascii.first != dot, ascii.last != dot else { return nil }
        return ascii
    }
}
