import MartletConditions
import MartletURL
import MartletCore
import Testing

@Suite("Relative URL references")
struct HTTPURLResolvingTests {
    @Test(
        "Relative references resolve as in the examples of RFC 3986",
        arguments: [
            ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g/"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q#s"), ("g#s", "http://a/b/c/g#s"), ("g?y#s", "http://a/b/c/g?y#s"),
            (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"), ("g;x?y#s", "http://a/b/c/g;x?y#s"),
            ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../", "http://a/"),
            ("../../g", "http://a/g"),
            // §5.4.2, abnormal examples.
            ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"), ("/./g", "http://a/g"),
            ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."), (".g", "http://a/b/c/.g"),
            ("g..", "http://a/b/c/g.."),
            ("..g", "http://a/b/c/..g"), ("./../g", "http://a/b/g"), ("./g/.", "http://a/b/c/g/"),
            ("g/./h", "http://a/b/c/g/h"), ("g/../h", "http://a/b/c/h"),
            ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
            ("g;x=1/../y", "http://a/b/c/y"), ("g?y/./x", "http://a/b/c/g?y/./x"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("g#s/./x", "http://a/b/c/g#s/./x"), ("g#s/../x", "http://a/b/c/g#s/../x"),
        ])
    func rfc3986(reference: String, output: String) throws {
        let base = try HTTPURL("http://a/b/c/d;p?q")
        #expect(try base.resolving(reference).absoluteString == output)
    }

    @Test(
        "A reference with another scheme is rejected",
        arguments: ["g:h", "ftp://x/", "data:,x", "a:1/b", "mailto:a@b"])
    func otherSchemes(reference: String) throws {
        let base = try HTTPURL("http://a/b/c/d;p?q")
        let error = #expect(throws: HTTPURL.ParseError.self) { try base.resolving(reference) }
        #expect(error?.code == .unsupportedScheme)
    }

    @Test("The reference http:g has no host and is rejected, as in strict parsers")
    func schemeWithoutAuthority() throws {
        let base = try HTTPURL("http://a/b/c/d;p?q")
        let error = #expect(throws: HTTPURL.ParseError.self) { try base.resolving("http:g") }
        #expect(error?.code == .missingAuthority)
    }

    @Test(
        "Scheme, user info and port are inherited together or replaced together",
        arguments: [
            ("/x", "https://u:p@h:8443/x"), ("x", "https://u:p@h:8443/a/x"), ("?", "https://u:p@h:8443/a/b?"),
            ("#", "https://u:p@h:8443/a/b?q#"), ("", "https://u:p@h:8443/a/b?q"), ("//i", "https://i/"),
            ("//i:443/x", "https://i/x"), ("//v@i:1/", "https://v@i:1/"), ("http://j:443", "http://j:443/"),
            ("HTTP://J/", "http://j/"), ("///", nil), ("//", nil), ("//h:0/", nil), ("\\\\evil", nil),
            ("/a\nb", nil),
            ("/a b/é?é", "https://u:p@h:8443/a%20b/%C3%A9?%C3%A9"),
            ("%0d%0aX:1", "https://u:p@h:8443/a/%0d%0aX:1"),
            ("1:2", "https://u:p@h:8443/a/1:2"), ("./a:b", "https://u:p@h:8443/a/a:b"),
        ] as [(String, String?)])
    func inheritance(reference: String, output: String?) throws {
        let base = try HTTPURL("https://u:p@h:8443/a/b?q#f")
        #expect((try? base.resolving(reference))?.absoluteString == output)
    }

    @Test("A host in a reference is parsed as strictly as the host of a URL")
    func hosts() throws {
        let base = try HTTPURL("https://h/")
        #expect(try base.resolving("//0x7f.1/").host == "127.0.0.1")
        let error = #expect(throws: HTTPURL.ParseError.self) { try base.resolving("//a%2fb/") }
        #expect(error?.code == .forbiddenHostCharacter)
        #expect(error?.offset == 3)
    }

    @Test("The length limit applies to the resolved URL")
    func lengthLimit() throws {
        let half = String(repeating: "a", count: 40_000)
        let base = try HTTPURL("http://h/\(half)/")
        let error = #expect(throws: HTTPURL.ParseError.self) { try base.resolving(half) }
        #expect(error?.code == .tooLong)
    }
}
