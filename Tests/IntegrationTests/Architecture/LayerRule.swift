/// The modules that a target may import: those that `Package.swift` declares for it, and some of the system's.
struct LayerRule {
    /// The name of the target.
    let target: String
    /// The directory of its sources.
    let directory: String
    /// The modules that it may import.
    let allowed: Set<String>

    /// One rule for each target of `Package.swift`; empty if that file cannot be read.
    static let all = (try? Repository.text("Package.swift")).map(rules) ?? []

    /// The names of the targets under `Sources` that have Swift sources.
    static let libraryTargets = all.filter { $0.directory.hasPrefix("Sources/Martlet") }.map(\.target)

    /// Modules of the system, which need no declaration. A library target without a row imports none of them.
    private static let systemModules: [String: Set<String>] = [
        "MartletTransport": ["Glibc", "Synchronization"],
        "MartletStorage": ["Glibc", "Synchronization"],
        "MartletPool": ["Synchronization"],
        "MartletCache": ["Glibc", "Synchronization"],
        "MartletURL": ["Synchronization"],
        "MartletContent": ["FoundationEssentials"],
        "MartletCredentials": ["FoundationEssentials", "Synchronization"],
        "MartletCore": ["FoundationEssentials", "Synchronization"],
        "MartletFeatureSettings": ["Synchronization"],
        "MartletAuthentication": ["FoundationEssentials"],
        "MartletCookies": ["FoundationEssentials", "Synchronization"],
        "MartletHSTS": ["FoundationEssentials", "Synchronization"],
        "MartletConditions": ["FoundationEssentials", "Glibc", "Synchronization"],
        "MartletCaching": ["FoundationEssentials", "Synchronization"],
        "MartletCoding": ["FoundationEssentials"],
        "MartletHosts": ["FoundationEssentials"],
        "MartletStreams": ["Synchronization"],
        "MartletDigests": ["Synchronization"],
        "MartletDiagnostics": ["FoundationEssentials"],
        "MartletDownloads": ["FoundationEssentials", "Glibc", "Synchronization"],
        "MartletOffline": ["FoundationEssentials", "Synchronization"],
        "MartletServices": ["FoundationEssentials"],
        "MartletUploads": ["FoundationEssentials", "Glibc"],
        "MartletWebSocket": ["FoundationEssentials", "Synchronization"],
        "Martlet": ["FoundationEssentials"],
        "MartletTesting": ["FoundationEssentials", "Synchronization"],
        "MartletDemo": ["FoundationEssentials", "Glibc", "Synchronization"],
        "MartletCLI": ["FoundationEssentials", "Glibc", "Synchronization"],
        "MartletFuzzing": ["Synchronization"],
        "MartletFuzzer": ["Dispatch", "Glibc", "Synchronization"],
    ]

    /// The additional modules that tests may import.
    private static let testModules: Set = [
        "Dispatch", "Foundation", "FoundationEssentials", "Glibc", "Synchronization", "Testing",
    ]

    /// Makes the rules of a manifest.
    static func rules(of manifest: String) -> [LayerRule] {
        // A dependency that is named inside a list has a name like any other.
        let conditional = /\.target\(\s*name: ("\w+"),\s*condition: \.when\(traits: \[[^\]]*\]\)\)/
        let manifest = manifest.replacing(conditional) { String($0.output.1) }
        let product = /let (\w+) = Target\.Dependency\.product\(\s*name: "(\w+)"/
        let products = Dictionary(
            manifest.matches(of: product).map { (String($0.1), String($0.2)) }, uniquingKeysWith: { $1 })
        // Names for lists of targets.
        let group = /let (\w+): \[Target\.Dependency\] = \[([^\]]*)\]/
        let groups = Dictionary(
            manifest.matches(of: group).map { (String($0.1), $0.2) }, uniquingKeysWith: { $1 })
        let starts = manifest.matches(
            of: /\.(?:systemLibrary|target|executableTarget|testTarget)\(\s*name: "(\w+)"/)
        return starts.indices.map { index in
            let end = index + 1 < starts.count ? starts[index + 1].range.lowerBound : manifest.endIndex
            let text = manifest[starts[index].range.lowerBound..<end]
            return LayerRule(String(starts[index].output.1), text, products, groups)
        }
    }

    private init(
        _ target: String, _ text: Substring, _ products: [String: String], _ groups: [String: Substring]
    ) {
        let path = text.firstMatch(of: /path: "([^"]+)"/)?.output.1
        let isTest = text.hasPrefix(".testTarget") || path?.hasPrefix("Tests/") == true
        let declaration = text.firstMatch(of: /dependencies: (?:(\w+) \+ )?\[([^\]]*)\]/)
        let group = declaration?.output.1.flatMap { groups[String($0)] } ?? ""
        let list = group + (declaration?.output.2 ?? "")
        let named = list.matches(of: /"(\w+)"/).map { String($0.output.1) }
        let words = list.split { !$0.isLetter }.compactMap { products[String($0)] }
        self.init(
            target, in: path.map(String.init) ?? (isTest ? "Tests/" : "Sources/") + target,
            allowed: Set(named + words).union(isTest ? Self.testModules : Self.systemModules[target] ?? []))
    }

    init(_ target: String, in directory: String, allowed: Set<String>) {
        self.target = target
        self.directory = directory
        self.allowed = allowed
    }

    /// The imports of a Swift source that violate the rule, in order.
    func violations(in source: String) -> [String] {
        Self.imports(in: source).filter { !allowed.contains($0) }
    }

    /// The modules that a Swift source imports, in order: the first name of each import declaration, with any
    /// attributes, access modifier or kind of declaration.
    static func imports(in source: String) -> [String] {
        let declaration = /(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|fileprivate|private)\s+)?/
        let kind = /(?:(?:struct|class|enum|protocol|typealias|func|let|var)\s+)?/
        var isComment = false
        var isText = false
        return source.split(whereSeparator: \.isNewline).flatMap { line -> [String] in
            if line.contains("/*") { isComment = true }
            defer { if line.contains("*/") { isComment = false } }
            // A multi-line text may be a program in another language.
            if line.contains(/"{3}/) {
                isText.toggle()
                return []
            }
            guard !isComment, !isText else { return [] }
            // Several declarations may share a line.
            return line.split(separator: ";").compactMap { statement in
                let words = statement.drop { $0 == " " || $0 == "\t" }
                guard let start = words.prefixMatch(of: declaration) else { return nil }
                let rest = words[start.range.upperBound...]
                guard let keyword = rest.prefixMatch(of: /import\s+/) else { return nil }
                let named = rest[keyword.range.upperBound...]
                guard let kind = named.prefixMatch(of: kind) else { return nil }
                return named[kind.range.upperBound...].prefixMatch(of: /\w+/).map { String($0.output) }
            }
        }
    }
}
