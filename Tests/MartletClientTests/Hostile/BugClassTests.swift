import FoundationEssentials
import Testing

/// The table of bug classes, compared with the existing tests.
@Suite("Table of bug classes")
struct BugClassTests {
    /// The titles of all tests of this package, read from the sources.
    private static let testNames: Set<String> = {
        // This file is three levels below the tests directory.
        let directory = #filePath.split(separator: "/").dropLast(3).reduce("") { "\($0)/\($1)" }
        guard let paths = try? FileManager.default.subpathsOfDirectory(atPath: directory) else { return [] }
        var names: Set<String> = []
        for path in paths where path.hasSuffix("Tests.swift") {
            guard let data = FileManager.default.contents(atPath: directory + "/" + path) else { continue }
            names.formUnion(BugClassTests.names(in: String(decoding: data, as: UTF8.self)))
        }
        return names
    }()

    /// Returns the first string after each `@Test(`.
    private static func names(in source: String) -> [String] {
        source.split(separator: "@Test(").dropFirst().compactMap { part in
            let text = part.drop { $0.isWhitespace }
            guard text.first == "\"" else { return nil }
            return String(text.dropFirst().prefix { $0 != "\"" })
        }
    }

    @Test("The table has each of the 64 classes once, and every class has an entry")
    func complete() {
        #expect(BugClass.all.map(\.number).sorted() == Array(1...64))
        #expect(BugClass.all.allSatisfy { !$0.proofs.isEmpty })
    }

    @Test("Every test that the table names exists", arguments: BugClass.all.map(\.number))
    func tests(_ number: Int) {
        let rows = Set(HostilePeer.all.map(\.name))
        for proof in BugClass.all.first(where: { $0.number == number })?.proofs ?? [] {
            switch proof {
            case .test(let name): #expect(BugClassTests.testNames.contains(name))
            case .row(let name): #expect(rows.contains(name))
            case .awaits: break
            }
        }
    }
}
