import Testing

/// The Swift code of the README and of the articles is code that the tests compile.
@Suite("Samples of the README and of the documentation")
struct SamplesTests {
    private static let samples =
        [
            "Client", "Compression", "Downloads", "HSTS", "Images", "Mirrors", "Offline", "Services", "Testing",
            "Upgrade", "Uploads", "WebSocket", "XML",
        ].map { "Tests/Martlet\($0)Tests/Samples" }
        + ["Examples/CircuitBreaker/Sources"]
    private static let pages = "Sources/Martlet/Martlet.docc"

    /// Imports at the beginning of a block count as present: the file of the sample has them.
    @Test("Each block of Swift code is, line by line, part of the compiled samples", arguments: try pageNames())
    func blocksAreCompiled(page: String) throws {
        let compiled = try compiledLines()
        let blocks = Self.swiftBlocks(in: try Repository.text(page)).map { $0.drop { $0.hasPrefix("import Martlet") } }
        for block in blocks {
            #expect(!block.isEmpty)
            #expect(
                compiled.contains { $0.contains(block) },
                "in no file of \(Self.samples):\n\(block.joined(separator: "\n"))")
        }
        #expect(page != "README.md" || !blocks.isEmpty)
    }

    @Test("Blocks are read without their indentation, and blocks of another language are skipped")
    func reading() {
        let text = "Text\n```swift\nlet a = 1\n\n    a.b()\n```\nText\n```\nplain\n```\n"
        #expect(Self.swiftBlocks(in: text) == [["let a = 1", "a.b()"]])
    }

    private static func pageNames() throws -> [String] {
        ["README.md"] + (try Repository.contents(of: pages)).filter { $0.hasSuffix(".md") }.map { "\(pages)/\($0)" }
    }

    private func compiledLines() throws -> [[String]] {
        try Self.samples.flatMap(Repository.swiftFiles).map { file in
            Self.withoutIndentation(try Repository.text(file).split(separator: "\n").map(String.init))
        }
    }

    /// All blocks of Swift code, without indentation.
    private static func swiftBlocks(in text: String) -> [[String]] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        return lines.indices.filter { lines[$0] == "```swift" }
            .map { withoutIndentation(Array(lines[($0 + 1)...].prefix { $0 != "```" })) }
    }

    private static func withoutIndentation(_ lines: [String]) -> [String] {
        lines.map { String($0.drop { $0 == " " }) }.filter { !$0.isEmpty }
    }
}
