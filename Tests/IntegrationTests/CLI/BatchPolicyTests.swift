import MartletCredentials
import Foundation
import MartletTesting
import Testing

@Suite("Redirects, credentials, cookies and retries of martlet batch")
struct BatchPolicyTests {
    /// Runs requests one after the other, and returns the replies.
    private func batch(_ lines: [String]) async throws -> [[String: Any]] {
        try await Program.batch(lines, "--parallel", "1").map(\.members)
    }

    private func withRoutes(_ body: (TestOrigin) async throws -> Void) async throws {
        try await TestOrigin.withOrigin(.plain, handler: StandardRoutes().handler, run: body)
    }

    @Test("Redirects are followed on request, and the reply has the last URL")
    func redirects() async throws {
        try await withRoutes { origin in
            let url = origin.url("/redirect/3")
            let replies = try await batch([
                "{\"seq\":1,\"url\":\"\(url)\"}", "{\"seq\":2,\"url\":\"\(url)\",\"redirect\":\"follow\"}",
                "{\"seq\":3,\"url\":\"\(url)\",\"redirect\":\"follow\",\"max_redirects\":2}",
                "{\"seq\":4,\"url\":\"\(url)\",\"redirect\":\"follow\",\"max_redirects\":3}",
            ])
            #expect(replies.map { $0["status"] as? Int } == [302, 200, nil, 200])
            #expect(replies[1]["url"] as? String == origin.url("/redirect/0"))
            #expect(replies[1]["body"] as? String == "arrived\n")
            #expect(replies[2]["error"] as? String == "too_many_redirects")
        }
    }

    @Test("keep_method keeps POST and its body for the statuses in its list")
    func keepMethod() async throws {
        try await TestOrigin.withOrigin(.plain) { request in
            request.path == "/from" ? .redirect(to: "/to", status: 302) : .text("x")
        } run: { origin in
            let members =
                "\"url\":\"\(origin.url("/from"))\",\"method\":\"POST\",\"body\":\"b\",\"redirect\":\"follow\""
            let replies = try await batch([
                "{\"seq\":1,\(members)}", "{\"seq\":2,\(members),\"keep_method\":[302]}",
                "{\"seq\":3,\(members),\"keep_method\":[307]}",
            ])
            #expect(replies.map { $0["ok"] as? Bool } == [true, true, false])
            #expect(origin.requests.filter { $0.target == "/to" }.map(\.method) == [.get, .post])
        }
    }

    @Test("Credentials are sent only to their origin, unless redirects are trusted")
    func credentials() async throws {
        try await TestOrigin.withOrigin(.plain, handler: .echo) { other in
            let location = other.url("/there")
            try await TestOrigin.withOrigin(.plain) { _ in
                .redirect(to: location)
            } run: { origin in
                let members =
                    "\"url\":\"\(origin.url("/"))\",\"redirect\":\"follow\","
                    + "\"auth\":{\"type\":\"basic\",\"user\":\"me\",\"password\":\"secret\"}"
                let replies = try await batch([
                    "{\"seq\":1,\(members)}", "{\"seq\":2,\(members),\"trusted_redirect\":true}",
                ])
                #expect(replies.map { $0["status"] as? Int } == [200, 200])
                let value = ["Basic bWU6c2VjcmV0"]
                #expect(origin.requests.map { $0.headers.values(of: "Authorization") } == [value, value])
                #expect(other.requests.map { $0.headers.values(of: "Authorization") } == [[], value])
            }
        }
    }

    @Test("Digest replies to a challenge, and credentials of the URL use Basic")
    func schemes() async throws {
        try await TestOrigin.withOrigin(.plain) { request in
            request.headers.values(of: "Authorization").isEmpty
                ? OriginResponse(
                    401, headers: ["WWW-Authenticate": "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""])
                : .text("x")
        } run: { origin in
            let replies = try await batch([
                "{\"seq\":1,\"url\":\"\(origin.url("/"))\",\"auth\":{\"type\":\"digest\",\"user\":\"u\",\"password\":\"p\"}}",
                "{\"seq\":2,\"url\":\"http://me:secret@\(origin.address)/\",\"first\":true}",
                "{\"seq\":3,\"url\":\"\(origin.url("/"))\",\"auth\":{\"type\":\"ntlm\",\"user\":\"u\"}}",
            ])
            #expect(replies.map { $0["status"] as? Int } == [200, 200, nil])
            #expect(replies[1]["url"] as? String == origin.url("/"))
            #expect(replies[2]["error"] as? String == "unsupported")
            let values = origin.requests.map { $0.headers.values(of: "Authorization").first ?? "" }
            try #require(values.count == 3)
            #expect(values[0].isEmpty && values[1].hasPrefix("Digest username=\"u\""))
            #expect(values[2] == "Basic bWU6c2VjcmV0")
        }
    }

    @Test("Cookies are kept between requests on request, and first deletes them")
    func cookies() async throws {
        try await TestOrigin.withOrigin(.plain) { _ in
            .text("x").with { $0.headers.append("Set-Cookie", "a=1; Path=/") }
        } run: { origin in
            let members = "\"url\":\"\(origin.url("/"))\",\"cookie_jar\":true"
            _ = try await batch([
                "{\"seq\":1,\(members)}", "{\"seq\":2,\(members)}",
                "{\"seq\":3,\"url\":\"\(origin.url("/"))\"}",
                "{\"seq\":4,\(members),\"first\":true}", "{\"seq\":5,\(members)}",
            ])
            #expect(
                origin.requests.map { $0.headers.values(of: "Cookie") } == [[], ["a=1"], [], [], ["a=1"]])
        }
    }

    @Test("Redirects follow only the schemes of proto_redir")
    func redirectSchemes() async throws {
        try await withRoutes { origin in
            let members = "\"url\":\"\(origin.url("/redirect/1"))\",\"redirect\":\"follow\""
            let replies = try await batch([
                "{\"seq\":1,\(members),\"proto_redir\":\"=https\"}",
                "{\"seq\":2,\(members),\"proto_redir\":\"=http\"}",
            ])
            #expect(replies.map { $0["ok"] as? Bool } == [false, true])
            #expect(replies[0]["message"] as? String != nil)
            #expect(origin.requests.map(\.target) == ["/redirect/1", "/redirect/1", "/redirect/0"])
        }
    }

    @Test("proxy_auth waits for a challenge of the proxy, and never sends the password in plain text")
    func proxySchemes() async throws {
        try await TestOrigin.withOrigin(.plain) { _ in
            .text("no", status: 407).with { $0.headers.append("Proxy-Authenticate", "Basic realm=\"p\"") }
        } run: { proxy in
            let members =
                "\"url\":\"http://a.test/\",\"proxy\":\"http://127.0.0.1:\(proxy.port)\",\"proxy_user\":\"me:pw\""
            let replies = try await batch([
                "{\"seq\":1,\(members),\"proxy_auth\":\"digest\"}",
                "{\"seq\":2,\(members),\"proxy_auth\":\"any\"}",
                "{\"seq\":3,\(members),\"proxy_auth\":\"basic\"}", "{\"seq\":4,\(members)}",
            ])
            #expect(replies.map { $0["status"] as? Int } == [407, 407, 407, 407])
            #expect(
                proxy.requests.map { $0.headers.values(of: "Proxy-Authorization") } == [
                    [], [], ["Basic bWU6cHc="], ["Basic bWU6cHc="], ["Basic bWU6cHc="],
                ])
        }
    }

    @Test("A transient failure is retried as often as retry specifies")
    func retry() async throws {
        try await TestOrigin.withOrigin(.plain) { request in
            request.number < 3
                ? .text("later", status: 503).with { $0.headers.append("Retry-After", "0") } : .text("x")
        } run: { origin in
            let members = "\"url\":\"\(origin.url("/"))\""
            let replies = try await batch(["{\"seq\":1,\(members)}", "{\"seq\":2,\(members),\"retry\":3}"])
            #expect(replies.map { $0["status"] as? Int } == [503, 200])
        }
    }

    @Test(
        "An invalid policy has its own error kind, and nothing is sent",
        arguments: [
            (#""redirect":"sideways""#, "unsupported"), (#""max_redirects":-1"#, "other"),
            (#""auth":{"user":"u"}"#, "other"), (#""auth":"me""#, "other"),
            (#""auth":{"type":"basic","user":"u","realm":"r"}"#, "unsupported"),
            (#""auth":{"type":"basic","user":"a:b","password":"p"}"#, "other"),
            (#""cookie_jar":1"#, "other"), (#""retry":"x""#, "other"),
            (#""keep_method":[200]"#, "unsupported"), (#""proto_redir":"=htps""#, "unsupported"),
            (#""proxy_auth":"ntlm""#, "unsupported"),
        ])
    func rejected(_ member: String, _ kind: String) async throws {
        try await withRoutes { origin in
            let replies = try await batch(["{\"seq\":1,\"url\":\"\(origin.url("/echo"))\",\(member)}"])
            #expect(replies.map { $0["error"] as? String } == [kind], "\(replies)")
            #expect(origin.requests.isEmpty)
        }
    }
}
