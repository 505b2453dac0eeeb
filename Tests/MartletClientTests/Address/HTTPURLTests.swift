import MartletConditions
import MartletURL
import MartletCore
import MartletHosts
import Testing

@Suite("URL parsing")
struct HTTPURLTests {
    @Test("A URL is split into its components")
    func components() throws {
        let url = try HTTPURL("HTTPS://Ann:s%20x@Example.COM:8443/a/b?q=1#top")
        #expect(url.scheme == .https)
        #expect(url.user == "Ann")
        #expect(url.password == "s x")
        #expect(url.host == "example.com")
        #expect(url.explicitPort == 8443)
        #expect(url.port == 8443)
        #expect(url.path == "/a/b")
        #expect(url.query == "q=1")
        #expect(url.fragment == "top")
        #expect(!url.isIPLiteral)
    }

    @Test("The shortest URL has the path / and the default port")
    func shortest() throws {
        let url = try HTTPURL("http://h")
        #expect(url.path == "/")
        #expect(url.query == nil)
        #expect(url.fragment == nil)
        #expect(url.user == nil)
        #expect(url.password == nil)
        #expect(url.explicitPort == nil)
        #expect(url.port == 80)
        #expect(url.absoluteString == "http://h/")
    }

    @Test(
        "A URL is serialized as the URL Standard specifies",
        arguments: [
            ("http://h:80/", "http://h/"),
            ("https://h:443", "https://h/"),
            ("https://h:80", "https://h:80/"),
            ("http://h:/", "http://h/"),
            ("http://h:00080/", "http://h/"),
            ("http://h:65535/", "http://h:65535/"),
            ("http://h?q", "http://h/?q"),
            ("http://h#f", "http://h/#f"),
            ("http://h/?", "http://h/?"),
            ("http://h/#", "http://h/#"),
            ("http://h/?#", "http://h/?#"),
            ("http://h/a#b#c", "http://h/a#b#c"),
            ("http://h/a?b?c", "http://h/a?b?c"),
            ("http://h/#?x", "http://h/#?x"),
            ("http://a#@b/", "http://a/#@b/"),
            ("http://a?@b/", "http://a/?@b/"),
            ("http://a/@b/", "http://a/@b/"),
            ("http://u@h/", "http://u@h/"),
            ("http://u:@h/", "http://u@h/"),
            ("http://:p@h/", "http://:p@h/"),
            ("http://:@h/", "http://h/"),
            ("http://@h/", "http://h/"),
            ("http://u@v:w:x@h/", "http://u%40v:w%3Ax@h/"),
            ("http://u;=[]:p|^@h/", "http://u%3B%3D%5B%5D:p%7C%5E@h/"),
            ("http://h//a//b", "http://h//a//b"),
        ])
    func serialization(input: String, output: String) throws {
        #expect(try HTTPURL(input).absoluteString == output)
    }

    @Test(
        "Characters that a component does not allow are encoded, and encoded characters stay",
        arguments: [
            ("http://h/a b", "http://h/a%20b"),
            ("http://h/%2f%2F%7e", "http://h/%2f%2F%7e"),
            ("http://h/100%", "http://h/100%25"),
            ("http://h/%zz%4", "http://h/%25zz%254"),
            ("http://h/%%41", "http://h/%25%41"),
            ("http://h/%25%32%65", "http://h/%25%32%65"),
            ("http://h/é", "http://h/%C3%A9"),
            ("http://h/\"<>^`{}|[]'~!$&()*+,;=:@", "http://h/%22%3C%3E%5E%60%7B%7D|[]'~!$&()*+,;=:@"),
            ("http://h/?a b\"<>'^`{}|[]%", "http://h/?a%20b%22%3C%3E%27^`{}|[]%25"),
            ("http://h/?ü=%c3%bc", "http://h/?%C3%BC=%c3%bc"),
            ("http://h/#a b\"<>`'^{}|é%", "http://h/#a%20b%22%3C%3E%60'^{}|%C3%A9%25"),
            ("http://h/\u{80}\u{2028}", "http://h/%C2%80%E2%80%A8"),
        ])
    func encoding(input: String, output: String) throws {
        let url = try HTTPURL(input)
        #expect(url.absoluteString == output)
        #expect(try HTTPURL(url.absoluteString) == url)
    }

    @Test(
        "Dot segments are removed, also when they are percent-encoded",
        arguments: [
            ("/.", "/"), ("/..", "/"), ("/./", "/"), ("/../", "/"), ("/a/.", "/a/"), ("/a/..", "/"),
            ("/a/../", "/"), ("/a/b/../c", "/a/c"), ("/a/b/../../../c", "/c"), ("/a/./b", "/a/b"),
            ("/%2e", "/"), ("/a/%2E%2e/b", "/b"), ("/a/.%2e/b", "/b"), ("/a/%2e./b", "/b"), ("/...", "/..."),
            ("/..a/b..", "/..a/b.."), ("/a//../b", "/a/b"), ("/a/..//b", "//b"), ("/%2e%2e%2e", "/%2e%2e%2e"),
            ("/%252e%252e/", "/%252e%252e/"), ("/..%2f", "/..%2f"), ("/a/b/..", "/a/"), ("/a/b/.", "/a/b/"),
        ])
    func dotSegments(input: String, output: String) throws {
        #expect(try HTTPURL("http://h" + input).path == output)
    }

    @Test("A URL with pathAsIs keeps the dot segments of its path")
    func pathAsIs() throws {
        let url = try HTTPURL("http://h/a/../%2e/./b c", pathAsIs: true)
        #expect(url.path == "/a/../%2e/./b%20c")
    }

    @Test("The origin form has path and query, and the absolute form omits user info and fragment")
    func targets() throws {
        let url = try HTTPURL("http://u:p@h:8080/a%20b?x=1#f")
        #expect(url.requestTarget == "/a%20b?x=1")
        #expect(url.absoluteForm == "http://h:8080/a%20b?x=1")
        #expect(url.hostFieldValue == "h:8080")
        #expect(try HTTPURL("http://h?").requestTarget == "/?")
        #expect(try HTTPURL("http://h#f").requestTarget == "/")
    }

    @Test("The Host field has brackets for IPv6 and omits the default port")
    func hostField() throws {
        #expect(try HTTPURL("https://[::1]:443/").hostFieldValue == "[::1]")
        #expect(try HTTPURL("https://[::1]:80/").hostFieldValue == "[::1]:80")
        #expect(try HTTPURL("http://h:80/").hostFieldValue == "h")
    }

    @Test("An origin consists of scheme, host and port, with the default port filled in")
    func origin() throws {
        let origin = try HTTPURL("https://u@EXAMPLE.com/x").origin
        #expect(origin.description == "https://example.com:443")
        #expect(try HTTPURL("https://example.com:443/y").origin == origin)
        #expect(try HTTPURL("http://example.com:443/").origin != origin)
        #expect(try HTTPURL("https://example.com:444/").origin != origin)
        #expect(try HTTPURL("https://example.com./").origin != origin)
        #expect(try HTTPURL("https://[::1]/").origin.description == "https://[::1]:443")
    }

    @Test("Descriptions and dumps of a URL do not contain its password")
    func redaction() throws {
        let url = try HTTPURL("https://ann:hunter2@h/p")
        #expect(url.redacted == "https://ann:***@h/p")
        #expect(url.description == url.redacted)
        var dumped = ""
        dump(url, to: &dumped)
        for text in ["\(url)", String(reflecting: url), "\([url])", "\(Optional(url) as Any)", dumped] {
            #expect(!text.contains("hunter2"))
        }
        #expect(url.absoluteString == "https://ann:hunter2@h/p")
        #expect(url.withoutUserInfo.absoluteString == "https://h/p")
        let tokens = try HTTPURL("https://h/p?a%5Btoken%5D=hunter2&b=1#c&access_token=hunter2")
        #expect(tokens.redacted == "https://h/p?a%5Btoken%5D=***&b=1#c&access_token=***")
    }

    @Test("A URL without fragment has all other components, and equals the URL that was written without one")
    func withoutFragment() throws {
        let url = try HTTPURL("https://ann:hunter2@h:81/p?a=1#part")
        #expect(try url.withoutFragment == HTTPURL("https://ann:hunter2@h:81/p?a=1"))
        #expect(url.withoutFragment.withoutFragment == url.withoutFragment)
        #expect(try HTTPURL("https://h/p#").withoutFragment.absoluteString == "https://h/p")
    }

    @Test("Appended query items are encoded and follow the existing query")
    func queryItems() throws {
        let url = try HTTPURL("http://h/p?a=1#f")
        let items = [QueryItem(name: "b c", value: "x+y&z=ü"), QueryItem(name: "flag", value: nil)]
        #expect(
            try url.appending(queryItems: items).absoluteString
                == "http://h/p?a=1&b%20c=x%2By%26z%3D%C3%BC&flag#f")
        #expect(try HTTPURL("http://h").appending(queryItems: items).query?.hasPrefix("b%20c=") == true)
        #expect(try HTTPURL("http://h?").appending(queryItems: items).query?.hasPrefix("b%20c=") == true)
        #expect(try url.appending(queryItems: []) == url)
    }

    @Test("Appending query items beyond the length limit is an error")
    func tooManyQueryItems() throws {
        let item = QueryItem(name: "a", value: String(repeating: "x", count: HTTPURL.lengthLimit))
        let error = #expect(throws: HTTPURL.ParseError.self) {
            try HTTPURL("http://h/").appending(queryItems: [item])
        }
        #expect(error?.code == .tooLong)
    }

    @Test("A URL inherits a fragment only if it has none")
    func fragmentInheritance() throws {
        let old = try HTTPURL("http://h/a#old")
        #expect(try HTTPURL("http://h/b").inheritingFragment(of: old).absoluteString == "http://h/b#old")
        #expect(try HTTPURL("http://h/b#new").inheritingFragment(of: old).fragment == "new")
    }
}
