@testable import MartletContent
@testable import MartletURL
import MartletWire
import Testing

@testable import MartletCore
@testable import MartletHosts
@testable import MartletPolicies

@Suite("Redirect rules")
struct RedirectRuleTests {
    private static func head(_ status: Int, _ locations: String...) throws -> ResponseHead {
        let lines = locations.map { "Location: \($0)\r\n" }.joined()
        return try head(bytes: Array("HTTP/1.1 \(status) x\r\n\(lines)\r\n".utf8))
    }

    private static func head(bytes: [UInt8]) throws -> ResponseHead {
        var machine = ClientMachine(limits: WireLimits())
        machine.startRequest(method: "GET")
        let event = try machine.receive(bytes.span).event
        guard case .head(let head, _) = event else {
            Issue.record("no head")
            throw CancellationError()
        }
        return head
    }

    private static func decide(
        _ status: Int, _ location: String, from url: String = "https://a.example/dir/page?q#part",
        method: HTTPRequest.Method = .get, isReplayable: Bool = true, followed: Int = 0,
        policy: RedirectPolicy = .follow()
    ) throws -> RedirectRule.Decision {
        RedirectRule(policy: policy).decide(
            try head(status, location), from: try HTTPURL(url), method: method, isReplayable: isReplayable,
            followed: followed)
    }

    private static func followed(_ decision: RedirectRule.Decision) throws -> RedirectRule.Redirect {
        guard case .follow(let redirect) = decision else {
            Issue.record("not followed: \(decision)")
            throw CancellationError()
        }
        return redirect
    }

    @Test("A policy that stays on the host returns redirects to other hosts, whatever their scheme and port")
    func staysOnHost() throws {
        var policy = RedirectPolicy.follow()
        policy.staysOnHost = true
        for location in [
            "https://b.example/", "http://b.example/", "https://a.example.b.example/", "//b.example",
            "ftp://b.example/",
        ] {
            #expect(try RedirectRuleTests.decide(302, location, followed: 99, policy: policy) == .deliver)
        }
        for location in ["/next", "https://A.example:8443/next", "//a.example/next"] {
            _ = try RedirectRuleTests.followed(try RedirectRuleTests.decide(302, location, policy: policy))
        }
    }

    @Test("A redirect to a scheme outside of the policy is rejected, from http and from https")
    func schemes() throws {
        var policy = RedirectPolicy.follow()
        policy.allowsDowngrade = true
        policy.schemes = [.https]
        for base in ["http://a.example/", "https://a.example/"] {
            let plain = try RedirectRuleTests.decide(302, "http://b.example/", from: base, policy: policy)
            #expect(plain == .fail(.rejectedScheme(try HTTPURL("http://b.example/").origin)))
            _ = try RedirectRuleTests.followed(
                try RedirectRuleTests.decide(302, "https://b.example/", from: base, policy: policy))
        }
        policy.schemes = []
        let none = try RedirectRuleTests.decide(302, "/next", policy: policy)
        #expect(none == .fail(.rejectedScheme(try HTTPURL("https://a.example/").origin)))
    }

    /// RFC 9110 §15.4: status, method before, method after, and whether the body is dropped.
    @Test(
        "The method after each status follows RFC 9110",
        arguments: [
            (301, "GET", "GET", false), (301, "POST", "GET", true), (301, "PUT", "PUT", false),
            (301, "HEAD", "HEAD", false), (302, "GET", "GET", false), (302, "POST", "GET", true),
            (302, "DELETE", "DELETE", false), (303, "GET", "GET", false), (303, "HEAD", "HEAD", false),
            (303, "POST", "GET", true), (303, "PUT", "GET", true), (303, "DELETE", "GET", true),
            (307, "POST", "POST", false), (307, "PUT", "PUT", false), (308, "POST", "POST", false),
            (308, "PATCH", "PATCH", false),
        ])
    func methods(_ status: Int, _ before: String, _ after: String, _ drops: Bool) throws {
        let method = try #require(HTTPRequest.Method(before))
        let redirect = try RedirectRuleTests.followed(
            try RedirectRuleTests.decide(status, "/next", method: method))
        #expect(redirect.method.rawValue == after)
        #expect(redirect.dropsBody == drops)
    }

    @Test("Other statuses are returned as responses", arguments: [200, 201, 300, 304, 305, 306, 309, 399, 401, 503])
    func others(_ status: Int) throws {
        #expect(try RedirectRuleTests.decide(status, "/next") == .deliver)
    }

    @Test("A redirect without a Location is returned as a response")
    func nowhere() throws {
        let url = try HTTPURL("http://a.example/")
        let rule = RedirectRule(policy: .follow())
        #expect(
            try rule.decide(
                RedirectRuleTests.head(302), from: url, method: .get, isReplayable: true, followed: 0)
                == .deliver)
        #expect(try RedirectRuleTests.decide(302, "") == .deliver)
    }

    @Test("A policy that does not follow returns every redirect")
    func notFollowing() throws {
        #expect(try RedirectRuleTests.decide(302, "/next", policy: .doNotFollow) == .deliver)
    }

    @Test(
        "A reference is resolved against the URL of the response",
        arguments: [
            ("/next", "https://a.example/next#part"), ("other", "https://a.example/dir/other#part"),
            ("?x=1", "https://a.example/dir/page?x=1#part"), ("//b.example/c", "https://b.example/c#part"),
            ("../up", "https://a.example/up#part"), ("#new", "https://a.example/dir/page?q#new"),
            ("https://c.example", "https://c.example/#part"),
            ("/with space", "https://a.example/with%20space#part"),
            ("/login?to=C:\\x", "https://a.example/login?to=C:%5Cx#part"),
            ("/x#a\\b", "https://a.example/x#a%5Cb"),
            ("/ü", "https://a.example/%C3%BC#part"), ("/a%2fb", "https://a.example/a%2fb#part"),
        ])
    func places(_ location: String, _ expected: String) throws {
        let redirect = try RedirectRuleTests.followed(try RedirectRuleTests.decide(302, location))
        #expect(redirect.url.absoluteString == expected)
    }

    @Test("Bytes that are not UTF-8 are forwarded percent-encoded")
    func latin() throws {
        let head = try RedirectRuleTests.head(
            bytes: Array("HTTP/1.1 302 x\r\nLocation: /caf".utf8) + [0xE9] + Array("\r\n\r\n".utf8))
        let decision = RedirectRule(policy: .follow()).decide(
            head, from: try HTTPURL("http://a.example/"), method: .get, isReplayable: true, followed: 0)
        #expect(try RedirectRuleTests.followed(decision).url.path == "/caf%E9")
    }

    @Test("User information in a Location never becomes credentials")
    func userInfo() throws {
        let redirect = try RedirectRuleTests.followed(
            try RedirectRuleTests.decide(302, "https://user:secret@a.example/x"))
        #expect(redirect.url.user == nil)
        #expect(redirect.url.password == nil)
    }

    @Test(
        "Schemes other than http and https are rejected",
        arguments: [
            "file:///etc/passwd", "ftp://a.example/", "gopher://a.example/", "data:text/html,x",
            "javascript:alert(1)",
            "unix:/run/x", "ws://a.example/", "mailto:a@b.c",
        ])
    func schemes(_ location: String) throws {
        guard case .fail(.unsupportedScheme) = try RedirectRuleTests.decide(302, location) else {
            Issue.record("not refused")
            return
        }
    }

    @Test("A redirect from https to http is rejected unless it is allowed")
    func downgrade() throws {
        let decision = try RedirectRuleTests.decide(302, "http://a.example/")
        #expect(decision == .fail(.downgrade(to: try HTTPURL("http://a.example/").origin)))
        var policy = RedirectPolicy.follow()
        policy.allowsDowngrade = true
        let redirect = try RedirectRuleTests.followed(
            try RedirectRuleTests.decide(302, "http://a.example/", policy: policy))
        #expect(redirect.leavesOrigin)
    }

    @Test("Two different Locations are rejected, and two equal ones are accepted")
    func ambiguous() throws {
        let url = try HTTPURL("http://a.example/")
        let rule = RedirectRule(policy: .follow())
        func decide(_ second: String) throws -> RedirectRule.Decision {
            rule.decide(
                try RedirectRuleTests.head(302, "/one", second), from: url, method: .get, isReplayable: true,
                followed: 0)
        }
        #expect(try decide("/two") == .fail(.ambiguous))
        #expect(try RedirectRuleTests.followed(try decide("/one")).url.path == "/one")
    }

    @Test("A one-shot body makes 307 a normal response, but not 303")
    func replay() throws {
        #expect(try RedirectRuleTests.decide(307, "/n", method: .post, isReplayable: false) == .deliver)
        _ = try RedirectRuleTests.followed(
            try RedirectRuleTests.decide(303, "/n", method: .post, isReplayable: false))
    }

    @Test("A redirect above the limit fails the call")
    func limit() throws {
        let policy = RedirectPolicy.follow(limit: 20)
        _ = try RedirectRuleTests.followed(
            try RedirectRuleTests.decide(302, "/n", followed: 19, policy: policy))
        #expect(
            try RedirectRuleTests.decide(302, "/n", followed: 20, policy: policy)
                == .fail(.tooMany(limit: 20)))
    }

    @Test(
        "An origin consists of scheme, host and port",
        arguments: [
            ("https://a.example:443/x", false), ("https://A.EXAMPLE/x", false),
            ("https://a.example:444/x", true),
            ("https://b.a.example/x", true), ("https://a.example./x", true), ("//a.example/x", false),
        ])
    func origin(_ location: String, _ leaves: Bool) throws {
        let redirect = try RedirectRuleTests.followed(try RedirectRuleTests.decide(302, location))
        #expect(redirect.leavesOrigin == leaves)
    }

    @Test("Credential fields and declared secret fields are not sent to another origin")
    func secrets() throws {
        var policy = RedirectPolicy.follow()
        let key = try #require(HTTPField.Name("X-Api-Key"))
        policy.secretFields = [key]
        var fields = HTTPFields()
        fields[.authorization] = "Basic x"
        fields[.cookie] = "a=b"
        fields[.proxyAuthorization] = "Basic y"
        fields[key] = "k"
        fields[.accept] = "text/plain"
        let rule = RedirectRule(policy: policy)
        var redirect = RedirectRule.Redirect(
            url: try HTTPURL("https://b.example/"), method: .get, dropsBody: false, leavesOrigin: true)
        let kept = rule.fields(fields, after: redirect)
        #expect(kept.count == 1)
        #expect(kept[.accept] == "text/plain")
        redirect.leavesOrigin = false
        #expect(rule.fields(fields, after: redirect) == fields)
        redirect.leavesOrigin = true
        policy.sendsCredentialsCrossOrigin = true
        #expect(RedirectRule(policy: policy).fields(fields, after: redirect) == fields)
    }

    @Test("Fields that describe a body are removed together with it")
    func bodyFields() throws {
        var fields = HTTPFields()
        fields[.contentType] = "text/plain"
        fields[.contentEncoding] = "gzip"
        fields[.expect] = "100-continue"
        fields[.userAgent] = "x"
        let redirect = RedirectRule.Redirect(
            url: try HTTPURL("https://b.example/"), method: .get, dropsBody: true, leavesOrigin: false)
        let kept = RedirectRule(policy: .follow()).fields(fields, after: redirect)
        #expect(kept.count == 1)
        #expect(kept[.userAgent] == "x")
    }
}
