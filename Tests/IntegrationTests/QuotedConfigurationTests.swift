import Testing

/// The documentation quotes configurations of other programs. They are files of the repository, which tests run.
@Suite("Configurations quoted in the documentation")
struct QuotedConfigurationTests {
    private static let page = "Sources/Martlet/Martlet.docc/SharingACache.md"

    private static func names() throws -> [String] {
        try Repository.contents(of: ExampleConfiguration.directory)
    }

    @Test("Each page quotes its configuration file completely, as a separate block", arguments: try names())
    func quoted(name: String) throws {
        let file = try Repository.text("\(ExampleConfiguration.directory)/\(name)")
        #expect(file.count > 500 && file.hasSuffix("\n"))
        #expect(
            try Repository.text(Self.page).contains("\n```\n\(file)```\n"),
            "the page does not quote \(name) as it is")
    }

    @Test("A placeholder that a configuration does not contain is an error")
    func misplaced() throws {
        #expect(throws: ServerFailure.self) {
            try ExampleConfiguration.text("squid.conf", replacing: ["http_port 1": ""])
        }
        let text = try ExampleConfiguration.text("squid.conf", replacing: ["/var/spool/squid": "/nest"])
        #expect(text.split(separator: "/nest", omittingEmptySubsequences: false).count == 3)
        #expect(!text.contains("/var/spool/squid"))
    }
}
