import Foundation
import Testing

@Suite("Documentation")
struct DocumentationTests {
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
}
