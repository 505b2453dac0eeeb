import Martlet
import Testing

@Suite("Proxy URLs")
struct ProxyURLTests {
    @Test(
        "Scheme, host and port are parsed with curl's defaults",
        arguments: [
            ("proxy.example", "http://proxy.example:1080"),
            ("proxy.example:3128", "http://proxy.example:3128"),
            ("HTTP://Proxy.Example:80/", "http://proxy.example:80"),
            ("http://proxy.example", "http://proxy.example:1080"),
            ("https://proxy.example", "https://proxy.example:443"),
            ("https://proxy.example:8443", "https://proxy.example:8443"),
            ("socks5://[::1]", "socks5://[::1]:1080"),
            ("socks5h://192.0.2.1:9050", "socks5h://192.0.2.1:9050"),
            ("[2001:DB8::1]:8080", "http://[2001:db8::1]:8080"),
            ("http://bücher.example:1", "http://xn--bcher-kva.example:1"),
            ("user:secret@proxy.example:3128", "http://proxy.example:3128"),
        ])
    func reading(_ address: String, _ name: String) throws {
        #expect(try ProxyServer(address).description == name)
    }

    @Test("User name and password are percent-decoded")
    func credentials() throws {
        let server = try ProxyServer("http://us%40er:p%3Ass%2Fw%25@proxy:1")
        #expect(server.credentials == ProxyCredentials(user: "us@er", password: "p:ss/w%"))
        #expect(try ProxyServer("u@proxy").credentials == ProxyCredentials(user: "u", password: ""))
        #expect(try ProxyServer("http://:p@proxy").credentials == ProxyCredentials(user: "", password: "p"))
        #expect(try ProxyServer("http://@proxy").credentials == nil)
    }

    @Test(
        "An error contains its reason and its offset",
        arguments: [
            ("", .empty, 0), ("http://", .emptyHost, 7), ("ftp://proxy", .unsupportedScheme, 0),
            ("socks4://proxy", .unsupportedScheme, 0), ("://proxy", .unsupportedScheme, 0),
            ("proxy:0", .invalidPort, 6), ("proxy:65536", .invalidPort, 6), ("proxy:8x", .invalidPort, 7),
            ("http://u:p/w@proxy", .forbiddenCharacter, 10), ("u:p?w@proxy", .forbiddenCharacter, 3),
            ("u:p#w@proxy", .forbiddenCharacter, 3), ("pro xy", .forbiddenCharacter, 3),
            ("proxy\r\nX: y", .forbiddenCharacter, 5), ("pro\\xy", .forbiddenCharacter, 3),
            ("[::1", .invalidIPv6Address, 0), ("[fe80::1%25eth0]", .zoneNotSupported, 8),
            ("http://u:%00@proxy", .invalidUserInfo, 9), ("http://pro<xy", .forbiddenHostCharacter, 10),
            ("1.2.3.4.5", .invalidIPv4Address, 0),
        ] as [(String, HTTPURL.ParseError.Code, Int)])
    func faults(_ address: String, _ code: HTTPURL.ParseError.Code, _ offset: Int) throws {
        let error = try #require(
            #expect(throws: HTTPURL.ParseError.self) { try ProxyServer(address) })
        #expect(error.code == code)
        #expect(error.offset == offset)
    }

    @Test("The part after the port is ignored", arguments: ["/", "/path", "?x", "#y", "/a?b#c"])
    func behind(_ rest: String) throws {
        #expect(try ProxyServer("http://u:p@proxy:80\(rest)") == ProxyServer("http://u:p@proxy:80"))
        #expect(try ProxyServer("proxy\(rest)") == ProxyServer("proxy"))
    }

    @Test("The error of another scheme names the accepted ones and the given one")
    func otherScheme() {
        let unknown = #expect(throws: HTTPURL.ParseError.self) { try ProxyServer("ftp://me:hunter2@proxy") }
        #expect(
            unknown?.description
                == "a proxy's scheme must be http, https, socks5 or socks5h, but this one is “ftp”")
        let other = #expect(throws: HTTPURL.ParseError.self) { try ProxySettings.https("socks5://proxy") }
        #expect(other?.description == "this proxy's scheme must be https, but it is “socks5”")
    }

    @Test("Errors contain no part of a password")
    func secrecy() {
        for address in ["http://me:hunter2@proxy:99999", "http://me:hunter2@pro<xy", "http://me:hun/ter2@p"] {
            let error = #expect(throws: HTTPURL.ParseError.self) { try ProxyServer(address) }
            #expect(error?.description.contains("ter2") == false)
        }
    }

    @Test("A factory accepts its own scheme or no scheme")
    func factories() throws {
        #expect(try ProxySettings.http("proxy:1").description == "the proxy http://proxy:1")
        #expect(try ProxySettings.https("proxy").description == "the proxy https://proxy:443")
        #expect(try ProxySettings.https("https://proxy").description == "the proxy https://proxy:443")
        #expect(throws: HTTPURL.ParseError.self) { try ProxySettings.http("https://proxy") }
        #expect(throws: HTTPURL.ParseError.self) { try ProxySettings.https("http://proxy") }
        #expect(throws: HTTPURL.ParseError.self) { try ProxySettings.http("socks5://proxy") }
        #expect(
            try ProxySettings.socks5("::1", names: .resolvedLocally).description
                == "the proxy socks5://[::1]:1080")
        #expect(try ProxySettings.socks5("[::1]", port: 9).description == "the proxy socks5h://[::1]:9")
        #expect(throws: HTTPURL.ParseError.self) { try ProxySettings.socks5("a b") }
        #expect(throws: HTTPURL.ParseError.self) { try ProxySettings.socks5("a", port: 0) }
        for (text, wanted) in [
            ("a:1", "a:1"), ("127.0.0.1:9050", "127.0.0.1:9050"), ("[::1]:9", "[::1]:9"), ("a", "a:1080"),
        ] {
            #expect(try ProxySettings.socks5(text).description == "the proxy socks5h://\(wanted)")
        }
        for text in ["a:0", "a:65536", "a:b", "u:p@a:1", "[::1", "a/b"] {
            #expect(throws: HTTPURL.ParseError.self, "\(text)") { try ProxySettings.socks5(text) }
        }
        #expect(throws: HTTPURL.ParseError.self) { try ProxySettings.socks5("") }
    }

    @Test("The description of settings contains no password")
    func descriptions() throws {
        let settings = try ProxySettings.http("me:hunter2@proxy:1")
        var dumped = ""
        dump(settings, to: &dumped)
        #expect(!("\(settings)" + String(reflecting: settings) + dumped).contains("hunter2"))
    }

    @Test("Proxies with any different property are not equal")
    func equality() throws {
        let one = try ProxyServer("http://u:p@proxy:1")
        #expect(try one == ProxyServer("http://u:p@proxy:1"))
        var tls = TLSSettings()
        tls.verifiesHostName = false
        let others = [
            try ProxyServer("http://u:q@proxy:1"), try ProxyServer("http://v:p@proxy:1"),
            try ProxyServer("http://u:p@proxy:2"), try ProxyServer("https://u:p@proxy:1"),
            try ProxyServer("http://u:p@other:1"), try ProxyServer("http://proxy:1"),
            try ProxyServer("socks5://u:p@proxy:1"), one.alwaysTunneling(),
            try ProxyServer("http://u:p@proxy:1", tls: tls),
        ]
        for other in others { #expect(one != other) }
        #expect(Set(others).count == others.count)
    }
}
