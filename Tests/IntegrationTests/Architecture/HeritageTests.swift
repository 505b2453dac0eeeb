import Testing

/// What users of AFNetworking and MKNetworkKit had is numbered: `A1` to `A18` for AFNetworking, `M1` to `M15` and `K1` to
/// `K14` for the two MKNetworkKits. The name of a test that shows one of these begins with its number, or with several.
@Suite("The heritage of AFNetworking and MKNetworkKit")
struct HeritageTests {
    /// All rows.
    static let rows = [
        "M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8", "M9", "M10", "M11", "M12", "M13", "M14", "M15",
        "K1", "K2", "K3", "K4", "K5", "K6", "K7", "K8", "K9", "K10", "K11", "K12", "K13", "K14",
        "A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A9", "A10", "A11", "A12", "A13", "A14", "A15", "A16",
        "A17",
        "A18",
    ]

    @Test("Each row of the heritage has a test that bears its id")
    func rowsHaveTests() throws {
        var ids: Set<String> = []
        for file in Repository.swiftFiles(below: "Tests") {
            ids.formUnion(Self.ids(in: try Repository.text(file)))
        }
        for row in Self.rows {
            #expect(ids.contains(row), "no test's name begins with \(row)")
        }
    }

    @Test("Ids are read from the names of tests alone, in any number, on the same line or the next")
    func reading() {
        // Put together here, so that the text is no test of this file.
        let mark = "@" + "Test("
        let source = """
            \(mark)"A1: one")
            \(mark)
                "M2, K3/A4: three, and no A9", arguments: [])
            \(mark)"What A5 is")
            \(mark)"A6 without a colon")
            \(mark)"A7, : with a gap")
            // "A8: no test"
            """
        #expect(Self.ids(in: source) == ["A1", "M2", "K3", "A4"])
    }

    /// The ids that the names of a file's tests begin with.
    private static func ids(in source: String) -> Set<String> {
        let names = source.matches(of: /@Test\(\s*"([AKM]\d+(?:(?:, ?|\/)[AKM]\d+)*):/)
        return Set(names.flatMap { $0.1.matches(of: /[AKM]\d+/).map { String($0.0) } })
    }
}
