@testable import MartletURL
import Martlet
import Testing

@testable import MartletCore

@Suite("Proxies from the environment")
struct ProxyEnvironmentTests {
    private func environment(_ variables: [String: String]) -> ProxyEnvironment {
        ProxyEnvironment { variables[$0] }
    }

    private func proxy(_ variables: [String: String], _ url: String) throws -> String? {
        try environment(variables).proxy(for: HTTPURL(url))?.description
    }

    @Test("Each scheme has its variable, and all_proxy is the fallback")
    func schemes() throws {
        let both = ["http_proxy": "one:1", "https_proxy": "two:2"]
        #expect(try proxy(both, "http://a.test/") == "http://one:1")
        #expect(try proxy(both, "https://a.test/") == "http://two:2")
        #expect(try proxy(["http_proxy": "one:1"], "https://a.test/") == nil)
        let all = ["all_proxy": "socks5h://all:3", "http_proxy": "one:1"]
        #expect(try proxy(all, "http://a.test/") == "http://one:1")
        #expect(try proxy(all, "https://a.test/") == "socks5h://all:3")
        #expect(try proxy(["ALL_PROXY": "all:3"], "http://a.test/") == "http://all:3")
        #expect(
            try proxy(["all_proxy": "lower:1", "ALL_PROXY": "upper:2"], "http://a.test/") == "http://lower:1")
        #expect(try proxy([:], "https://a.test/") == nil)
        #expect(environment([:]).isEmpty && environment(["http_proxy": ""]).isEmpty)
    }

    @Test("HTTP_PROXY in upper case can come from a CGI request and is ignored")
    func httpoxy() throws {
        for variables in [
            ["HTTP_PROXY": "http://evil:1"], ["HTTP_PROXY": "http://evil:1", "REQUEST_METHOD": "GET"],
        ] {
            #expect(try proxy(variables, "http://a.test/") == nil)
            #expect(try proxy(variables, "https://a.test/") == nil)
            #expect(environment(variables).isEmpty)
        }
        #expect(try proxy(["HTTPS_PROXY": "two:2"], "https://a.test/") == "http://two:2")
        #expect(
            try proxy(["HTTPS_PROXY": "upper:1", "https_proxy": "lower:2"], "https://a.test/")
                == "http://lower:2")
    }

    @Test("TLS settings for proxies apply only to HTTPS proxies of the environment")
    func tls() throws {
        let tls = TLSSettings(trust: .dangerouslyAcceptingAnyCertificate)
        let settings = ProxySettings.environment.withTLS(tls)
        let variables = environment(["https_proxy": "https://two:2", "http_proxy": "one:1"])
        func proxy(_ url: String) throws -> ProxyServer? {
            try settings.proxy(for: HTTPURL(url), variables) {
                HTTPRequest(method: .get, scheme: nil, authority: nil, path: nil)
            }
        }
        #expect(try proxy("https://a.test/")?.tls == tls)
        #expect(try proxy("http://a.test/")?.tls == TLSSettings())
    }

    @Test("no_proxy is used, and the lower-case variable comes first")
    func bypass() throws {
        let variables = ["https_proxy": "two:2", "no_proxy": "a.test", "NO_PROXY": "b.test"]
        #expect(try proxy(variables, "https://a.test/") == nil)
        #expect(try proxy(variables, "https://b.test/") == "http://two:2")
        #expect(try proxy(["https_proxy": "two:2", "NO_PROXY": "b.test"], "https://b.test/") == nil)
        #expect(try proxy(["https_proxy": "two:2", "no_proxy": "b.test:443"], "https://b.test:444/") != nil)
    }

    @Test("An invalid variable is an error that names it, for the URLs that it applies to")
    func malformed() throws {
        let variables = ["http_proxy": "ftp://me:hunter2@proxy", "no_proxy": "direct.test"]
        let error = try #require(
            #expect(throws: HTTPError.self) { try proxy(variables, "http://a.test/") })
        #expect(error.code == .proxyFailed && error.phase == .preparing && !error.wasSent)
        #expect(error.message.contains("http_proxy") && error.message.hasSuffix("but this one is “ftp”"))
        #expect(!error.description.contains("hunter2"))
        #expect(try proxy(variables, "https://a.test/") == nil)
        #expect(try proxy(variables, "http://direct.test/") == nil)
    }
}
