import Testing

/// Checks that the language of comments and documents is plain.
@Suite("Prose")
struct ProseTests {
    @Test("Doc comments open with a noun or a verb, and hardly any of them only repeats a name")
    func openings() throws {
        let prose = try Prose(paths: Repository.swiftFiles(below: "Sources"))
        try #require(prose.docCommentCount > 5000)
        let share = Double(prose.openings.count) / Double(prose.docCommentCount)
        #expect(share <= 0.005, "\(prose.openings.joined(separator: "\n"))")
        #expect(prose.repetitions.count <= 50, "\(prose.repetitions.joined(separator: "\n"))")
    }

    @Test(
        "Comments and documents have at most eight words of the watch list in 10,000",
        arguments: ["Sources", "Tests", "documents"])
    func watchList(part: String) throws {
        let pages = "Sources/Martlet/Martlet.docc"
        let prose = try Prose(
            paths: part == "documents"
                ? ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Locks.md"]
                    + Repository.contents(of: pages).filter { $0.hasSuffix(".md") }.map { "\(pages)/\($0)" }
                : Repository.swiftFiles(below: part))
        try #require(prose.wordCount > 1000)
        let rate = 10_000 * Double(prose.watched.count) / Double(prose.wordCount)
        #expect(rate <= 8, "\(rate) words in 10,000:\n\(prose.watched.joined(separator: "\n"))")
    }

    @Test("Openings, repetitions and words of the watch list are found in comments and outside of code")
    func measuring() {
        var prose = Prose()
        prose.measure(
            """
            /// Which one it is.
            let a = 1
            /// The URL.
            let b = "told"  // not a comment line
            // Nobody waits, `told` is code.
            /// Resumes the caller,
            /// which goes on.
            """, of: "a.swift")
        #expect(prose.openings == ["a.swift:1: Which one it is."])
        #expect(prose.repetitions == ["a.swift:3: The URL."])
        #expect(prose.watched == ["a.swift:5: nobody", "a.swift:6: goes on"])
        prose = Prose()
        prose.measure("# Behind\n```swift\nlet told = 1\n```\nA word.", of: "a.md")
        #expect(prose.watched == ["a.md:1: behind"])
        #expect(prose.wordCount == 3)
    }
}

/// The counts of openings and words in comments and documents.
private struct Prose {
    private static let questions: Set<Substring> = [
        "What", "Who", "Whom", "Whose", "Where", "When", "How", "Why", "Which", "Those", "Such", "With what", "By what",
        "From where",
    ]
    private static let watchList = [
        "behind", "whoever", "whosever", "whichever", "told", "tells", "nobody", "somebody", "bear", "borne", "goes on",
        "go on", "as good as", "is none", "are none", "had better", "for good", "one's own", "oneself", "mend",
        "mended",
        "whereupon", "meanwhile", "anew", "henceforth", "thereby", "of which", "in which", "is there", "stands",
        "stand in",
    ].map { $0.split(separator: " ") }

    var docCommentCount = 0
    var wordCount = 0
    /// Doc comments that open with a question word, each with its place.
    var openings: [String] = []
    /// Doc comments of one or two words.
    var repetitions: [String] = []
    /// The words of the watch list that occur.
    var watched: [String] = []

    init() {}

    init(paths: [String]) throws {
        for path in paths { measure(try Repository.text(path), of: path) }
    }

    mutating func measure(_ text: String, of path: String) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard path.hasSuffix(".swift") else {
            var isCode = false
            for (index, line) in lines.enumerated() {
                if line.hasPrefix("```") { isCode.toggle() } else if !isCode { count(line, at: "\(path):\(index + 1)") }
            }
            return
        }
        var index = 0
        while index < lines.count {
            guard let (marker, _) = Self.comment(lines[index]) else {
                index += 1
                continue
            }
            let start = index
            var block: [Substring] = []
            while index < lines.count, let (other, text) = Self.comment(lines[index]), other == marker {
                block.append(text)
                index += 1
            }
            let place = "\(path):\(start + 1)"
            count(Substring(block.joined(separator: " ")), at: place)
            if marker == "///" { countOpening(block, at: place) }
        }
    }

    /// The marker and the text of a line that is a comment.
    private static func comment(_ line: Substring) -> (marker: String, text: Substring)? {
        let line = line.drop { $0 == " " }
        for marker in ["///", "//"] where line.hasPrefix(marker) {
            return (marker, line.dropFirst(marker.count).drop { $0 == " " })
        }
        return nil
    }

    private mutating func countOpening(_ block: [Substring], at place: String) {
        docCommentCount += 1
        let words = Self.words(block[0])
        let two = words.prefix(2).joined(separator: " ")
        if words.first.map(Self.questions.contains) == true || Self.questions.contains(Substring(two)) {
            openings.append("\(place): \(block[0])")
        }
        if words.count <= 2, block.count == 1, !block[0].contains("`") { repetitions.append("\(place): \(block[0])") }
    }

    private mutating func count(_ text: Substring, at place: String) {
        let words = Self.words(text)
        wordCount += words.count
        let lower = words.map { Substring($0.lowercased()) }
        for entry in Self.watchList {
            for start in lower.indices where lower[start...].starts(with: entry) {
                watched.append("\(place): \(entry.joined(separator: " "))")
            }
        }
    }

    /// The words of a text, without code in backticks.
    private static func words(_ text: Substring) -> [Substring] {
        text.split(separator: "`", omittingEmptySubsequences: false).enumerated().filter { $0.offset % 2 == 0 }
            .flatMap { part in
                part.element.split { !($0.isASCII && ($0.isLetter || $0 == "'" || $0 == "-")) }
                    .filter { $0.first?.isLetter == true }
            }
    }
}
