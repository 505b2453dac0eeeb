import MartletContent
import Testing

@Suite("Imports of each target")
struct ImportTests {
    @Test("A target imports only the modules that the manifest declares for it", arguments: LayerRule.all.map(\.target))
    func targetKeepsItsRule(_ target: String) throws {
        let rule = try #require(LayerRule.all.first { $0.target == target })
        for file in Repository.swiftFiles(below: rule.directory) {
            let violations = rule.violations(in: try Repository.text(file))
            #expect(violations.isEmpty, "\(file) imports \(violations.joined(separator: ", "))")
        }
    }

    @Test("The program creates sessions in one place, which closes them before the exit")
    func programSessions() throws {
        let makers = try ["CLI", "Demo"].flatMap { Repository.swiftFiles(below: "Sources/Martlet\($0)") }
            .filter { try Repository.text($0).contains(/\bHTTPSession\(/) }
        #expect(makers == ["Sources/MartletCLI/ProgramSessions.swift"])
    }

    @Test("No test blocks the threads of the task pool, and no test script waits in a loop without a pause")
    func testsDoNotBlock() throws {
        let blocking = /\bProcess\(\)|DispatchQueue\.global\(\)\.async \{|\bdo :; done/
        let found = try Repository.swiftFiles(below: "Tests").filter { file in
            try !file.hasSuffix("/ImportTests.swift") && Repository.text(file).contains(blocking)
        }
        #expect(found.isEmpty)
    }

    @Test("Each source directory belongs to a target, and each one under Sources has a row in CONTRIBUTING")
    func rulesAreComplete() throws {
        let directories = Set(LayerRule.all.map(\.directory))
        for directory in ["Sources", "Tests"] {
            for target in try Repository.contents(of: directory) {
                #expect(directories.contains("\(directory)/\(target)"), "\(directory)/\(target)")
            }
        }
        let table = try Repository.text("CONTRIBUTING.md")
        for target in try Repository.contents(of: "Sources") {
            #expect(table.contains(try Regex("(?m)^\\| .*`\(target)`")), "\(target) has no row")
        }
    }

    @Test("Nothing in Sources imports all of Foundation, and only two targets import OpenSSL")
    func rulesKeepTheWalls() {
        let whole: Set = ["Foundation", "FoundationNetworking", "FoundationXML"]
        for rule in LayerRule.all where rule.directory.hasPrefix("Sources/") {
            #expect(rule.allowed.isDisjoint(with: whole))
            #expect(
                !rule.allowed.contains("CMartletOpenSSL")
                    || ["MartletTransport", "MartletTesting"].contains(rule.target))
            #expect(!rule.allowed.contains("MartletTestSupport"))
        }
    }

    @Test("A rule contains the dependencies of a declaration, in every form")
    func formsOfDeclaration() throws {
        let manifest = """
            let heap = Target.Dependency.product(name: "HeapModule", package: "c")
            let metrics = Target.Dependency.product(
                name: "CoreMetrics", package: "m", condition: .when(traits: ["Metrics"]))
            let group: [Target.Dependency] = [
                "CFirst", "Second",
            ]
            let package = Package(
                targets: [
                    .target(name: "CFirst"),
                    .target(
                        name: "Second",
                        dependencies: [
                            "CFirst", heap,
                            metrics,
                            .target(name: "CMartletBrotli", condition: .when(traits: ["Brotli"])),
                        ],
                        swiftSettings: strict),
                    .testTarget(name: "SecondTests", dependencies: ["Second"], swiftSettings: strict),
                    .target(name: "Third", dependencies: group + [heap], swiftSettings: strict),
                    .executableTarget(
                        name: "Child", dependencies: [heap], path: "Tests/Child", swiftSettings: strict),
                ]
            )
            """
        let rules = LayerRule.rules(of: manifest)
        #expect(rules.map(\.target) == ["CFirst", "Second", "SecondTests", "Third", "Child"])
        #expect(
            rules.map(\.directory) == [
                "Sources/CFirst", "Sources/Second", "Tests/SecondTests", "Sources/Third", "Tests/Child",
            ])
        let second = try #require(rules.dropFirst().first)
        #expect(second.allowed == ["CFirst", "HeapModule", "CoreMetrics", "CMartletBrotli"])
        let tests = try #require(rules.dropFirst(2).first)
        #expect(tests.allowed.isSuperset(of: ["Second", "Testing"]) && !tests.allowed.contains("HeapModule"))
        #expect(rules.dropFirst(3).first?.allowed == ["CFirst", "Second", "HeapModule"])
        #expect(rules.last?.allowed.isSuperset(of: ["HeapModule", "Glibc"]) == true)
    }

    @Test("A rule finds an import in every form")
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

    @Test("A rule reports the imports that it does not allow")
    func violation() {
        let rule = LayerRule("Example", in: "Sources/Example", allowed: ["Allowed"])
        #expect(rule.violations(in: "import Allowed\npublic import Foundation\n") == ["Foundation"])
    }
}
