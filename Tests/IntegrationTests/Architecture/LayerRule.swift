/// Which modules a target may import: the rows of the table of layers in `CONTRIBUTING.md`.
struct LayerRule {
    /// The target's name, which is the name of its folder under `Sources`, or under `Fuzz`.
    let target: String
    /// The modules it may import.
    let allowed: Set<String>

    /// One row for each target.
    static let all = [
        LayerRule("CBrotli"),
        LayerRule("CExpat"),
        LayerRule("COpenSSL"),
        LayerRule("CZlib"),
        LayerRule("CZstd"),
        LayerRule("CPng"),
        LayerRule("CTurboJPEG"),
        LayerRule("CLinux"),
        LayerRule("MartletWire"),
        LayerRule(
            "MartletTransport", "COpenSSL", "CLinux", "Glibc", "Synchronization", "DequeModule", "HeapModule"),
        LayerRule("MartletStorage", "CLinux", "CZlib", "Glibc", "Synchronization"),
        LayerRule("MartletConnections", "MartletWire", "MartletTransport", "DequeModule", "Synchronization"),
        LayerRule(
            "MartletCache", "MartletWire", "MartletStorage", "CLinux", "Glibc", "Synchronization"),
        LayerRule(
            "MartletClient", "MartletCache", "MartletConnections", "MartletWire", "MartletTransport",
            "MartletStorage",
            "CZlib", "CBrotli", "CZstd", "CoreMetrics", "Tracing",
            "HTTPTypes", "Logging", "SystemPackage", "FoundationEssentials", "Synchronization"),
        LayerRule(
            "MartletDownloads", "MartletClient", "MartletConnections", "MartletWire", "MartletTransport",
            "MartletStorage", "HTTPTypes", "SystemPackage", "FoundationEssentials", "Glibc", "Synchronization"
        ),
        LayerRule(
            "MartletOffline", "MartletClient", "MartletCache", "MartletTransport", "MartletStorage",
            "SystemPackage", "FoundationEssentials", "DequeModule", "HeapModule", "Synchronization"),
        LayerRule("Martlet", "MartletClient", "MartletDownloads", "MartletOffline"),
        LayerRule("MartletXML", "MartletClient", "CExpat"),
        LayerRule("MartletImages", "MartletClient", "CPng", "CTurboJPEG"),
        LayerRule(
            "MartletTesting", "MartletWire", "MartletTransport", "MartletStorage", "MartletClient",
            "HTTPTypes",
            "SystemPackage",
            "Synchronization", "FoundationEssentials", "Glibc"),
        LayerRule(
            "MartletCLI", "Martlet", "MartletDownloads", "MartletOffline", "MartletTesting", "MartletClient",
            "MartletWire",
            "MartletTransport",
            "MartletCache", "MartletStorage", "ArgumentParser", "SystemPackage", "HTTPTypes", "Logging",
            "FoundationEssentials", "Glibc",
            "Synchronization", "CLinux"),
    ]

    /// One row for each target of the fuzz harness, under `Fuzz`.
    static let fuzzing = [
        LayerRule(
            "MartletFuzzing", "MartletWire", "MartletTransport", "MartletStorage", "MartletCache",
            "MartletClient", "MartletDownloads", "MartletOffline", "MartletXML", "MartletImages", "HTTPTypes",
            "Synchronization"
        ),
        LayerRule("MartletFuzzer", "MartletFuzzing", "Dispatch", "Glibc", "Synchronization"),
    ]

    init(_ target: String, _ allowed: String...) {
        self.target = target
        self.allowed = Set(allowed)
    }

    /// What a Swift source imports against the rule, in order.
    func violations(in source: String) -> [String] {
        Self.imports(in: source).filter { !allowed.contains($0) }
    }

    /// The modules that a Swift source imports, in order: the first name of each import declaration, whatever
    /// attributes, access modifier or kind of declaration surround it.
    static func imports(in source: String) -> [String] {
        let declaration = /(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|fileprivate|private)\s+)?/
        let kind = /(?:(?:struct|class|enum|protocol|typealias|func|let|var)\s+)?/
        var isComment = false
        return source.split(whereSeparator: \.isNewline).flatMap { line -> [String] in
            if line.contains("/*") { isComment = true }
            defer { if line.contains("*/") { isComment = false } }
            guard !isComment else { return [] }
            // Declarations may share a line.
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
