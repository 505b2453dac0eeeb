import Foundation

/// The rules of a site for crawlers (RFC 9309).
struct Robots: Hashable, Sendable {
    private struct Rule: Hashable, Sendable {
        var allows: Bool
        var pattern: String
    }

    /// The rules of a site that has none.
    static let allowAll = Robots(parsing: "", for: "")
    /// The rules of a site whose `robots.txt` cannot be read at the moment.
    static let disallowAll = Robots(parsing: "User-agent: *\nDisallow: /", for: "")

    private var rules: [Rule] = []
    /// The wait between two requests that the site requests, in seconds.
    private(set) var crawlDelay: Double?

    /// Parses the group of a crawler, or by default that of `*`.
    init(parsing text: String, for crawler: String) {
        var groups: [String: Robots] = [:]
        var agents: [String] = []
        var isInRules = false
        for line in text.split(whereSeparator: \.isNewline) {
            let parts = line.prefix { $0 != "#" }.split(
                separator: ":", maxSplits: 1, omittingEmptySubsequences: false
            ).map { $0.trimmingCharacters(in: .whitespaces) }
            guard parts.count == 2 else { continue }
            let (name, value) = (parts[0].lowercased(), parts[1])
            guard name == "user-agent" else {
                isInRules = true
                for agent in agents { groups[agent]?.add(name, value) }
                continue
            }
            // A group may begin with the names of several crawlers.
            if isInRules { agents = [] }
            isInRules = false
            agents.append(value.lowercased())
            if groups[value.lowercased()] == nil { groups[value.lowercased()] = Robots() }
        }
        self = groups[crawler.lowercased()] ?? groups["*"] ?? Robots()
    }

    private init() {}

    private mutating func add(_ name: String, _ value: String) {
        switch name {
        // An empty pattern matches nothing.
        case "allow" where !value.isEmpty: rules.append(Rule(allows: true, pattern: value))
        case "disallow" where !value.isEmpty: rules.append(Rule(allows: false, pattern: value))
        case "crawl-delay": crawlDelay = Double(value).flatMap { $0 >= 0 ? $0 : nil }
        default: break
        }
    }

    /// Returns whether a path with its query may be requested. The longest matching pattern applies, and `Allow` in a
    /// tie.
    func allows(_ path: String) -> Bool {
        let matching = rules.filter { Self.matches(path, $0.pattern) }
        guard let longest = matching.map(\.pattern.utf8.count).max() else { return true }
        return matching.contains { $0.pattern.utf8.count == longest && $0.allows }
    }

    /// Returns whether a pattern matches the start of a path: `*` matches any characters, and `$` the end.
    private static func matches(_ path: String, _ pattern: String) -> Bool {
        let isAnchored = pattern.hasSuffix("$")
        let pieces = (isAnchored ? pattern.dropLast() : pattern[...]).split(
            separator: "*", omittingEmptySubsequences: false)
        guard path.hasPrefix(pieces[0]) else { return false }
        var rest = path.dropFirst(pieces[0].count)
        for piece in pieces.dropFirst().dropLast(isAnchored ? 1 : 0) where !piece.isEmpty {
            guard let range = rest.firstRange(of: piece) else { return false }
            rest = rest[range.upperBound...]
        }
        guard isAnchored else { return true }
        return pieces.count == 1 ? rest.isEmpty : rest.hasSuffix(pieces[pieces.count - 1])
    }
}
