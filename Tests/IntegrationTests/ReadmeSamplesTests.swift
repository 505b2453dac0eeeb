import Testing

/// The Swift code of the README, and of the documentation's pages, is code that the tests compile.
@Suite("The samples of the README and of the documentation")
struct ReadmeSamplesTests {
    /// A block of Swift code, and the mark before it.
    struct Sample {
        let name: String
        let lines: [String]
    }

    private let readme = "README.md"
    private static let samples =
        ["Client", "Downloads", "Offline", "XML", "Images"].map {
            "Tests/Martlet\($0)Tests/Samples"
        } + ["Examples/CircuitBreaker/Sources"]
    private static let pages = "Sources/Martlet/Martlet.docc"

    @Test("Each marked block stands verbatim in the compiled samples")
    func blocksAreCompiled() throws {
        let compiled = try compiledLines()
        let blocks = Self.markedBlocks(in: try Repository.text(readme))
        try #require(!blocks.isEmpty)
        for block in blocks {
            let lines = Self.withoutIndentation(block.lines)
            #expect(!lines.isEmpty, "'\(block.name)' is empty")
            #expect(
                compiled.contains { $0.contains(lines) }, "'\(block.name)' is in no file of \(Self.samples)")
        }
    }

    @Test(
        "Each block of Swift code in a page stands verbatim in the compiled samples",
        arguments: try pageNames())
    func pagesAreCompiled(page: String) throws {
        let compiled = try compiledLines()
        for block in Self.swiftBlocks(in: try Repository.text("\(Self.pages)/\(page)")) {
            #expect(!block.isEmpty)
            #expect(
                compiled.contains { $0.contains(block) },
                "in no file of \(Self.samples):\n\(block.joined(separator: "\n"))")
        }
    }

    private static func pageNames() throws -> [String] {
        try Repository.contents(of: pages).filter { $0.hasSuffix(".md") }
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

    @Test("Each block of Swift code has a mark, and no two have the same")
    func blocksAreMarked() throws {
        let text = try Repository.text(readme)
        let names = Self.markedBlocks(in: text).map(\.name)
        #expect(Set(names).count == names.count)
        let fences = text.split(separator: "\n").filter {
            $0.hasPrefix("```swift") && $0 != "```swift package"
        }
        #expect(fences.count == names.count)
    }

    @Test("A block's lines and name are read, and blank lines and indentation do not count")
    func reading() {
        let text =
            "Text\n<!-- sample: one -->\n```swift\nlet a = 1\n\n    a.b()\n```\nText\n```swift\nunmarked\n```\n"
        let blocks = Self.markedBlocks(in: text)
        #expect(blocks.map(\.name) == ["one"])
        #expect(blocks.map { Self.withoutIndentation($0.lines) } == [["let a = 1", "a.b()"]])
        #expect(["x", "let a = 1", "a.b()", "y"].contains(["let a = 1", "a.b()"]))
        #expect(!["let a = 1", "x", "a.b()"].contains(["let a = 1", "a.b()"]))
    }

    /// The blocks that follow a line `<!-- sample: NAME -->` at once.
    private static func markedBlocks(in text: String) -> [Sample] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        return lines.indices.compactMap { index in
            guard let mark = lines[index].wholeMatch(of: /<!-- sample: ([\w-]+) -->/),
                index + 1 < lines.count, lines[index + 1] == "```swift"
            else { return nil }
            let body = lines[(index + 2)...].prefix { $0 != "```" }
            return Sample(name: String(mark.1), lines: Array(body))
        }
    }

    private static func withoutIndentation(_ lines: [String]) -> [String] {
        lines.map { String($0.drop { $0 == " " }) }.filter { !$0.isEmpty }
    }
}
