import Testing

/// The configurations of other programs that the documentation shows are files of the repository, which tests run.
@Suite("The configurations that the documentation quotes")
struct QuotedConfigurationTests {
    private static let page = "Sources/Martlet/Martlet.docc/SharingACache.md"

    private static func names() throws -> [String] {
        try Repository.contents(of: ExampleConfiguration.directory)
    }

    @Test("Each file stands whole in the page, as a block of its own", arguments: try names())
    func quoted(name: String) throws {
        let file = try Repository.text("\(ExampleConfiguration.directory)/\(name)")
        #expect(file.count > 500 && file.hasSuffix("\n"))
        #expect(
            try Repository.text(Self.page).contains("\n```\n\(file)```\n"),
            "the page does not quote \(name) as it is")
    }

    @Test("A place that is to be replaced and is not there is an error")
    func misplaced() throws {
        #expect(throws: ServerFailure.self) {
            try ExampleConfiguration.text("squid.conf", replacing: ["http_port 1": ""])
        }
        let text = try ExampleConfiguration.text("squid.conf", replacing: ["/var/spool/squid": "/nest"])
        #expect(text.split(separator: "/nest", omittingEmptySubsequences: false).count == 3)
        #expect(!text.contains("/var/spool/squid"))
    }
}
