import Testing

@testable import MartletTransport

@Suite("Public suffixes")
struct RegistrySuffixesTests {
    private static let text = """
        // A comment with co.uk
        early.example
        // ===BEGIN ICANN DOMAINS===
        // uk : https://en.wikipedia.org/wiki/.uk
        uk
        co.uk
        *.ck
        !www.ck
        公司.cn
        å.no
        // ===END ICANN DOMAINS===
        // ===BEGIN PRIVATE DOMAINS===
        github.io
        // ===END PRIVATE DOMAINS===

        """

    @Test(
        "A domain is a suffix if a line of the first section lists it",
        arguments: [
            ("uk", true), ("co.uk", true), ("o.uk", false), ("x.co.uk", false), ("co.u", false),
            ("a.ck", true), ("www.ck", false), ("x.a.ck", false), ("xn--55qx5d.cn", true),
            ("xn--5cab8c.cn", false), ("xn--\u{7f}.cn", false), ("xn--5ca.no", true), ("github.io", false),
            ("early.example", false), ("", false), (".", false), ("uk\nco.uk", false),
            ("// ===begin icann domains===", false),
        ])
    func lines(domain: String, isSuffix: Bool) {
        let suffixes = RegistrySuffixes(Array(RegistrySuffixesTests.text.utf8))
        #expect(suffixes.contains(domain) == isSuffix)
    }

    @Test("A file that is not a complete list has no suffixes")
    func malformed() {
        let texts = [
            "", "co.uk\n", "// ===BEGIN ICANN DOMAINS===\nco.uk\n",
            "// ===END ICANN DOMAINS===\nco.uk\n// ===BEGIN ICANN DOMAINS===\nco.uk\n",
        ]
        for text in texts {
            let suffixes = RegistrySuffixes(Array(text.utf8))
            #expect(suffixes.isEmpty && !suffixes.contains("co.uk"))
        }
        #expect(RegistrySuffixes(contentsOf: "/nowhere/list").isEmpty)
        #expect(RegistrySuffixes(contentsOf: "/").isEmpty)
    }
}
