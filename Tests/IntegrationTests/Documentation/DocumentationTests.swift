import Foundation
import Testing

@Suite("Documentation")
struct DocumentationTests {
    private static let pages = "Sources/Martlet/Martlet.docc"
    /// The columns that a block of code on a page of the site has; longer lines are cut off until they are scrolled.
    private static let codeColumns = 84

    /// The parts of a symbol graph that the test checks.
    private struct SymbolGraph: Decodable {
        struct Symbol: Decodable {
            struct Comment: Decodable {}

            struct Kind: Decodable {
                let identifier: String
            }

            let kind: Kind
            let pathComponents: [String]
            let docComment: Comment?
        }

        let symbols: [Symbol]
    }

    @Test("The site has every page and every public symbol, without dead links or warnings")
    func site() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let graphs = directory.appending("graphs")
        try FileManager.default.createDirectory(atPath: graphs, withIntermediateDirectories: true)
        let tests = try #require(CommandLine.arguments.first)
        try await Command.succeed(
            "env",
            [
                "MARTLET_BUILD_PATH=\(URL(fileURLWithPath: tests).deletingLastPathComponent().path)",
                "MARTLET_SYMBOL_GRAPHS=\(graphs)", Repository.root.appendingPathComponent("Scripts/docs.sh").path,
                directory.appending("site"),
            ])

        var missing: [String] = []
        var count = 0
        for file in try FileManager.default.contentsOfDirectory(atPath: graphs) {
            let data = try Data(contentsOf: URL(fileURLWithPath: "\(graphs)/\(file)"))
            let symbols = try JSONDecoder().decode(SymbolGraph.self, from: data).symbols
            count += symbols.count
            // The block of an extension has no documentation of its own.
            missing += symbols.filter { $0.docComment == nil && $0.kind.identifier != "swift.extension" }
                .map { $0.pathComponents.joined(separator: ".") }
        }
        #expect(count > 2000, "the symbol graphs hold \(count) symbols")
        #expect(missing.isEmpty, "public symbols without documentation: \(missing.joined(separator: ", "))")
        for page in [
            "martlet/httpsession", "martlet/gettingstarted", "martlettesting/testorigin", "martletxml", "martletimages",
        ] {
            let path = directory.appending("site/documentation/\(page)/index.html")
            #expect(FileManager.default.fileExists(atPath: path), "no page \(page)")
        }
    }

    @Test("Lines of code on the pages fit into a block of code of the site")
    func codeLines() throws {
        let names = try Repository.contents(of: Self.pages).filter { $0.hasSuffix(".md") }
        try #require(!names.isEmpty)
        let long = try names.map { "\(Self.pages)/\($0)" }
            .flatMap { Self.longCodeLines(in: try Repository.text($0), of: $0) }
        #expect(long.isEmpty, "more than \(Self.codeColumns) columns:\n\(long.joined(separator: "\n"))")
    }

    @Test("A long line is found in a block of any language, and prose may be longer")
    func longCode() {
        let fits = String(repeating: "…", count: Self.codeColumns)
        let text = "\(fits)prose\n```swift\n\(fits)\n\(fits)!\n```\n\(fits)prose\n```\n\(fits)?\n```\n"
        #expect(Self.longCodeLines(in: text, of: "a.md") == ["a.md:4: \(fits)!", "a.md:8: \(fits)?"])
    }

    /// The lines of code that do not fit into a block of the site, each with its place.
    private static func longCodeLines(in text: String, of path: String) -> [String] {
        var isCode = false
        return text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().compactMap { index, line in
            if line.hasPrefix("```") { isCode.toggle() }
            return isCode && line.count > codeColumns ? "\(path):\(index + 1): \(line)" : nil
        }
    }
}
