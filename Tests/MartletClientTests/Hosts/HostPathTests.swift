import FoundationEssentials
import Martlet
import Testing

@Suite("Paths of a host")
struct HostPathTests {
    /// An identifier of a program, which is a segment by its description.
    private struct UserID: HTTPPathSegment, CustomStringConvertible {
        var description: String { "u/7" }
    }

    private func url(_ path: String, at base: String = "https://api.example.com/v2") throws -> String {
        try HTTPSession().host(base).url(for: path).absoluteString
    }

    @Test(
        "A path is resolved below the base, with or without slashes at the joint",
        arguments: ["https://api.example.com/v2", "https://api.example.com/v2/"])
    func slashes(_ base: String) throws {
        for path in ["posts", "/posts", "./posts", "/./posts"] {
            #expect(try url(path, at: base) == "https://api.example.com/v2/posts")
        }
        #expect(try url("posts/", at: base) == "https://api.example.com/v2/posts/")
        #expect(try url("/a/b?c=d", at: base) == "https://api.example.com/v2/a/b?c=d")
        #expect(try url("/", at: base) == "https://api.example.com/v2/")
        #expect(try url("posts", at: "https://api.example.com") == "https://api.example.com/posts")
    }

    @Test("The empty path is the unchanged base")
    func empty() throws {
        #expect(try url("") == "https://api.example.com/v2")
        #expect(try url("?a=1") == "https://api.example.com/v2?a=1")
        #expect(try url("", at: "https://api.example.com/v2/") == "https://api.example.com/v2/")
    }

    @Test("A whole URL is used unchanged, and its scheme may have any case")
    func whole() throws {
        #expect(try url("https://other.example/x?y") == "https://other.example/x?y")
        #expect(try url("HTTP://Other.example:8080") == "http://other.example:8080/")
    }

    @Test("A colon does not make a path a URL, and neither does a URL in a query")
    func colons() throws {
        #expect(try url("users:batchGet") == "https://api.example.com/v2/users:batchGet")
        #expect(try url("http:x") == "https://api.example.com/v2/http:x")
        #expect(try url("go?to=https://a.example/") == "https://api.example.com/v2/go?to=https://a.example/")
        #expect(try url("1://x") == "https://api.example.com/v2/1://x")
    }

    @Test(
        "A path outside of the base is rejected",
        arguments: [
            "../admin", "/../admin", "a/../../admin", "%2e%2e/admin", ".%2E/admin", "..", "a/../..",
            "//evil.example/x",
            "///x",
        ])
    func leaving(_ path: String) throws {
        let error = #expect(throws: HTTPError.self) { try url(path) }
        #expect(error?.code == .invalidURL)
        #expect(error?.wasSent == false)
    }

    @Test("Dot segments below the base are resolved")
    func dots() throws {
        #expect(try url("a/../b") == "https://api.example.com/v2/b")
        #expect(try url("a/..") == "https://api.example.com/v2/")
        #expect(try url("../x", at: "https://api.example.com/") == "https://api.example.com/x")
    }

    @Test("An encoded slash stays within its segment")
    func encodedSlash() throws {
        #expect(try url("users/..%2f..%2fadmin") == "https://api.example.com/v2/users/..%2f..%2fadmin")
    }

    @Test("Characters that a URL cannot contain are rejected with their position in the path")
    func characters() throws {
        for (path, place) in [("ab\u{0}", 2), ("/ab\n", 3), ("\\x", 0), ("é\t", 1)] {
            let error = #expect(throws: HTTPError.self) { try url(path) }
            #expect(error?.code == .invalidURL)
            #expect((error?.underlying as? HTTPURL.ParseError)?.offset == place)
        }
        #expect(try url("größe x") == "https://api.example.com/v2/gr%C3%B6%C3%9Fe%20x")
    }

    @Test("A # in a path is an error with a remedy, and in a whole URL it is a fragment")
    func fragments() throws {
        for path in ["issues/a#x", "#", "/a?b#c"] {
            let error = #expect(throws: HTTPError.self) { try url(path) }
            #expect(error?.code == .invalidURL && error?.message.contains("give the segments") == true)
        }
        #expect(try url("https://a.example/x#y") == "https://a.example/x#y")
    }

    @Test(
        "Each element of a list stays one path segment, whatever its characters",
        arguments: [
            ("a/b", "a%2Fb"), ("a?b", "a%3Fb"), ("a#x", "a%23x"), ("50%", "50%25"), ("%2e%2e", "%252e%252e"),
            ("a b", "a%20b"), ("ä", "%C3%A4"), ("...", "..."), (".a", ".a"), ("http://x", "http%3A%2F%2Fx"),
            ("a;b", "a%3Bb"),
            ("\\", "%5C"), ("\n", "%0A"), ("a+b&c=d", "a%2Bb%26c%3Dd"), ("-._~", "-._~"),
        ])
    func segments(_ segment: String, _ escaped: String) throws {
        for base in ["https://api.example.com/v2", "https://api.example.com/v2/"] {
            let api = try HTTPSession().host(base)
            #expect(
                try api.url(for: ["issues", segment]).absoluteString == "https://api.example.com/v2/issues/\(escaped)")
            #expect(try api.url(for: [segment]).absoluteString == "https://api.example.com/v2/\(escaped)")
            #expect(
                try api.prepare(.get, ["issues", segment], parameters: ["a": 1]).request.path
                    == "/v2/issues/\(escaped)?a=1")
        }
    }

    @Test(
        "A segment that would name another resource is rejected, as are segments without a host",
        arguments: ["", ".", ".."])
    func emptySegments(_ segment: String) async throws {
        let api = try HTTPSession().host("https://api.example.com/v2")
        let error = await #expect(throws: HTTPError.self) { try await api.delete(["issues", segment]) }
        #expect(error?.code == .invalidURL && error?.wasSent == false)
        #expect(error?.message.contains("segment 2") == true)
        #expect(try api.url(for: [String]()).absoluteString == "https://api.example.com/v2")
        let session = api.session
        let alone = await #expect(throws: HTTPError.self) { try await session.get(["https://a.example", "b"]) }
        #expect(alone?.code == .invalidURL && alone?.message.contains("need a host") == true)
    }

    @Test("A segment can be a text, an integer, a UUID or a type of the program, also in one path")
    func segmentTypes() throws {
        let uuid = try #require(UUID(uuidString: "E621E1F8-C36C-495A-93FC-0C247A3E6E5F"))
        let part = "a/b".split(separator: "/")[1]
        let segments: [(any HTTPPathSegment, String)] = [
            ("a/b", "a%2Fb"), (part, "b"), (42, "42"), (-1 as Int32, "-1"), (Int64.max, "9223372036854775807"),
            (7 as UInt, "7"), (8 as UInt32, "8"), (UInt64.max, "18446744073709551615"),
            (uuid, "E621E1F8-C36C-495A-93FC-0C247A3E6E5F"), (UserID(), "u%2F7"),
        ]
        let api = try HTTPSession().host("https://api.example.com/v2")
        for (segment, text) in segments {
            #expect(try api.base.appending("x", segment).absoluteString == "https://api.example.com/v2/x/\(text)")
            #expect(try api.prepare(.get, .path("x", segment)).request.path == "/v2/x/\(text)")
        }
        let id = 42
        #expect(try api.prepare(.get, .path("users", id, "avatar")).request.path == "/v2/users/42/avatar")
        #expect(try api.prepare(.get, [1, 2]).request.path == "/v2/1/2")
        #expect(try api.prepare(.get, "a/b".split(separator: "/")).request.path == "/v2/a/b")
    }

    @Test("Segments are appended to the path of a URL, whose query and fragment are preserved")
    func appending() throws {
        for (url, expected) in [
            ("https://a.example", "https://a.example/b/1"), ("https://a.example/x", "https://a.example/x/b/1"),
            ("https://a.example/x/", "https://a.example/x/b/1"),
            ("https://u:p@a.example:8443/x?q=1#f", "https://u:p@a.example:8443/x/b/1?q=1#f"),
        ] {
            #expect(try HTTPURL(url).appending("b", 1).absoluteString == expected)
        }
        let base = try HTTPURL("https://a.example/x")
        #expect(try base.appending() == base)
        for segment in ["", ".", ".."] {
            let error = #expect(throws: HTTPURL.ParseError.self) { try base.appending("b", segment) }
            #expect(error?.code == .invalidSegment && error?.description.hasPrefix("segment 2 ") == true)
        }
        let long = String(repeating: "/", count: HTTPURL.lengthLimit / 3)
        let error = #expect(throws: HTTPURL.ParseError.self) { try base.appending(long) }
        #expect(error?.code == .tooLong)
    }

    @Test("A whole URL with another scheme is rejected")
    func otherSchemes() throws {
        #expect(throws: HTTPError.self) { try url("ftp://api.example.com/x") }
        #expect(throws: HTTPError.self) { try url("javascript://x") }
    }

    @Test(
        "A host without a name is a thrown error",
        arguments: [
            "", "/v2", "https://", "https:///v2", "api.example.com/v2", "https://:80/",
            "https://a.example/?q=1", "https://a.example/#x",
        ])
    func nameless(_ base: String) throws {
        let error = #expect(throws: HTTPError.self) { try HTTPSession().host(base) }
        #expect(error?.code == .invalidURL)
    }

    @Test("A host can be created from name, port, path and scheme")
    func parts() throws {
        let session = HTTPSession()
        #expect(try session.host(named: "a.example").base.absoluteString == "https://a.example/")
        #expect(
            try session.host(named: "a.example", port: 8080, path: "v1", isSecure: false).base.absoluteString
                == "http://a.example:8080/v1")
        #expect(try session.host(named: "::1", path: "/v1").base.absoluteString == "https://[::1]/v1")
        #expect(try session.host(named: "[::1]", port: 443).base.absoluteString == "https://[::1]/")
        for name in ["", "a/b", "u@a", "a?b", "a#b", "[a]", "a:80", "a\\b", "a b"] {
            #expect(throws: HTTPError.self) { try session.host(named: name) }
        }
        for (name, shown) in [
            ("https://a.example", "https://a.example"), ("u:secret@a", "***@a"), ("a?key=secret", "a"), ("a/b", "a/b"),
        ] {
            let error = #expect(throws: HTTPError.self) { try session.host(named: name) }
            let expected = "invalid host name “\(shown)”: give a name or an IP address"
            #expect(error?.message.hasPrefix(expected) == true, "\(error?.message ?? "")")
            #expect(error?.description.contains("secret") == false)
        }
        for port in [0, -1, 65_536] {
            #expect(throws: HTTPError.self) { try session.host(named: "a.example", port: port) }
        }
    }
}
