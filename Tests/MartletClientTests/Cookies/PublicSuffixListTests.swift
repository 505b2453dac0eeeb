import MartletCookies
import MartletCore
import MartletStreams
import SystemPackage
import Testing

@Suite("Public suffixes")
struct PublicSuffixListTests {
    @Test("The longest rule is used, a wildcard matches one label, and an exception removes one")
    func rules() {
        let list = CookieScene.suffixes
        let cases = [
            ("com", "com"), ("a.com", "com"), ("b.a.com", "com"), ("co.uk", "co.uk"), ("a.co.uk", "co.uk"),
            ("a.uk", "uk"), ("ck", "ck"), ("a.ck", "a.ck"), ("b.a.ck", "a.ck"), ("www.ck", "ck"),
            ("a.www.ck", "ck"),
            ("pages.example.com", "pages.example.com"), ("me.pages.example.com", "pages.example.com"),
            ("example.com", "com"), ("localhost", "localhost"), ("a.unlisted", "unlisted"),
            ("co.uk.", "co.uk."),
            ("a.co.uk.", "co.uk."), ("xco.uk", "uk"), ("", ""), (".", "."),
        ]
        for (name, suffix) in cases {
            #expect(list.publicSuffix(of: name) == suffix, "\(name)")
            #expect(list.isPublicSuffix(name) == (name == suffix), "\(name)")
        }
    }

    @Test("The registrable domain has one label more than the public suffix")
    func registrable() {
        let list = CookieScene.suffixes
        let cases: [(String, String?)] = [
            ("com", nil), ("a.com", "a.com"), ("c.b.a.com", "a.com"), ("a.co.uk", "a.co.uk"),
            ("x.a.co.uk", "a.co.uk"),
            ("co.uk", nil), ("a.ck", nil), ("b.a.ck", "b.a.ck"), ("www.ck", "www.ck"), ("x.www.ck", "www.ck"),
            ("x.a.com.", "a.com."), ("", nil), (".", nil), (".com", nil), ("a..com", ".com"), ("...", nil),
        ]
        for (name, domain) in cases {
            #expect(list.registrableDomain(of: name).map(String.init) == domain, "\(name)")
        }
    }

    @Test(
        "Comments, blank lines, text after white space, CRLF and capitals follow the list's format"
    )
    func syntax() {
        let list = PublicSuffixList("// x\r\n\r\nCOM comment\r\n  \n.net\r\nco.uk\t// more\n".utf8)
        #expect(list.ruleCount == 3)
        #expect(list.malformedLines == [])
        #expect(list.publicSuffix(of: "a.co.uk") == "co.uk")
    }

    @Test("Rules in Unicode match A-labels")
    func international() {
        let list = PublicSuffixList("公司.cn\n*.বাংলা\n".utf8)
        #expect(list.publicSuffix(of: "a.xn--55qx5d.cn") == "xn--55qx5d.cn")
        #expect(list.publicSuffix(of: "b.a.xn--54b7fta0cc") == "a.xn--54b7fta0cc")
    }

    @Test("Malformed lines are skipped and reported")
    func malformed() {
        let text =
            "com\na..b/\n*\n!\n*.*.x\nfoo.*.bar\n\u{202E}.x\norg\n" + String(repeating: "x", count: 300)
        let list = PublicSuffixList(text.utf8)
        #expect(list.ruleCount == 2)
        #expect(list.malformedLines == [2, 3, 4, 5, 6, 7, 9])
        #expect(PublicSuffixList([0xFF, 0xFE, 0x0A, 0x00]).malformedLines == [1])
    }

    @Test("The private section of the list can be omitted")
    func sections() {
        let text = "com\n// ===BEGIN PRIVATE DOMAINS===\npages.example.com\n".utf8
        #expect(PublicSuffixList(text).isPublicSuffix("pages.example.com"))
        #expect(!PublicSuffixList(text, section: .registries).isPublicSuffix("pages.example.com"))
        #expect(PublicSuffixList(text, section: .registries).isPublicSuffix("com"))
    }

    @Test("The system's list is found and complete")
    func system() async throws {
        let list = SystemPublicSuffixes()
        await list.prepare()
        #expect(list.isComplete)
        for suffix in ["com", "co.uk", "github.io", "xn--55qx5d.cn", "kawasaki.jp"] {
            #expect(list.registrableDomain(of: "a.b.\(suffix)") != "b", "\(suffix)")
        }
        #expect(list.publicSuffix(of: "www.bbc.co.uk") == "co.uk")
        #expect(list.publicSuffix(of: "me.github.io") == "github.io")
        #expect(list.publicSuffix(of: "x.y.kawasaki.jp") == "y.kawasaki.jp")
        #expect(list.publicSuffix(of: "x.city.kawasaki.jp") == "kawasaki.jp")
        let file = try await PublicSuffixList(contentsOf: "/usr/share/publicsuffix/public_suffix_list.dat")
        #expect(file.ruleCount > 9000)
        #expect(file.malformedLines == [])
    }

    @Test("A missing list makes the suffixes incomplete")
    func absent() async {
        #expect(!SystemPublicSuffixes.firstList(of: []).isComplete)
        #expect(!SystemPublicSuffixes.firstList(of: ["/nowhere/list.dat", "/dev/null"]).isComplete)
        await #expect(throws: StorageError.self) {
            try await PublicSuffixList(contentsOf: "/nowhere/list.dat")
        }
    }

    @Test("A name of any length and form has a public suffix")
    func anyName() {
        let list = CookieScene.suffixes
        for name in [
            String(repeating: "a.", count: 5000), String(repeating: ".", count: 5000),
            String(repeating: "a", count: 5000),
            String(repeating: "x.", count: 200) + "co.uk", "a\u{301}.com", "\u{1F36A}", ".co.uk", "..uk",
        ] {
            let suffix = list.publicSuffix(of: name)
            #expect(
                name.utf8.count >= suffix.utf8.count
                    && name.utf8.suffix(suffix.utf8.count).elementsEqual(suffix.utf8))
            _ = list.registrableDomain(of: name)
        }
        #expect(list.publicSuffix(of: String(repeating: "x.", count: 200) + "co.uk") == "co.uk")
    }
}
