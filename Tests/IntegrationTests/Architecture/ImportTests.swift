import Testing

@Suite("What each target imports")
struct ImportTests {
    @Test("A target imports only what its row names", arguments: LayerRule.all.map(\.target))
    func targetKeepsItsRow(_ target: String) throws {
        let rule = try #require(LayerRule.all.first { $0.target == target })
        for file in Repository.swiftFiles(below: "Sources/\(target)") {
            let violations = rule.violations(in: try Repository.text(file))
            #expect(violations.isEmpty, "\(file) imports \(violations.joined(separator: ", "))")
        }
    }

    @Test(
        "A target of the fuzz harness imports only what its row names",
        arguments: LayerRule.fuzzing.map(\.target))
    func harnessKeepsItsRow(_ target: String) throws {
        let rule = try #require(LayerRule.fuzzing.first { $0.target == target })
        let files = Repository.swiftFiles(below: "Fuzz/\(target)")
        #expect(!files.isEmpty)
        for file in files {
            let violations = rule.violations(in: try Repository.text(file))
            #expect(violations.isEmpty, "\(file) imports \(violations.joined(separator: ", "))")
        }
    }

    @Test("The program makes its sessions in one place, which ends them before it exits")
    func programSessions() throws {
        let makers = try Repository.swiftFiles(below: "Sources/MartletCLI").filter { file in
            try Repository.text(file).contains(/\bHTTPSession\(/)
        }
        #expect(makers == ["Sources/MartletCLI/ProgramSessions.swift"])
    }

    @Test("Each target under Sources has a row, and each row a target")
    func rowsAreComplete() throws {
        let targets = try Repository.contents(of: "Sources")
        #expect(targets == LayerRule.all.map(\.target).sorted())
    }

    @Test("No target but the transport talks to OpenSSL, and none imports the whole of Foundation")
    func rowsKeepTheWalls() {
        let whole: Set = ["Foundation", "FoundationNetworking", "FoundationXML"]
        for rule in LayerRule.all {
            #expect(rule.allowed.isDisjoint(with: whole))
            #expect(!rule.allowed.contains("COpenSSL") || rule.target == "MartletTransport")
        }
    }

    @Test("A rule sees an import in every form it can have")
    func formsOfImport() {
        let source = """
            import Plain
            public import WithAccess
            package import struct OneType.Name
            @_exported import Exported
            @preconcurrency internal import Older
            @_spi(Testing) @testable import Attributed
            import func Functions.one
              import Indented; import Second
            // import Commented
            /* import Enclosed
               import InBlock */
            let important = "import Text"
            """
        let found = LayerRule.imports(in: source)
        let expected = [
            "Plain", "WithAccess", "OneType", "Exported", "Older", "Attributed", "Functions", "Indented",
            "Second",
        ]
        #expect(found == expected)
    }

    @Test("A rule names what is not in its row")
    func violation() {
        let rule = LayerRule("Example", "Allowed")
        #expect(rule.violations(in: "import Allowed\npublic import Foundation\n") == ["Foundation"])
    }
}
