import MartletConditions
import MartletURL
import MartletCore
import MartletHosts
import MartletTesting
import Testing

@Suite("URL hosts")
struct HTTPURLHostTests {
    @Test(
        "Every spelling of an IPv4 address becomes dotted decimal",
        arguments: [
            ("127.0.0.1", "127.0.0.1"), ("127.1", "127.0.0.1"), ("127.0.1", "127.0.0.1"),
            ("0x7f.1", "127.0.0.1"), ("0x7F000001", "127.0.0.1"), ("017700000001", "127.0.0.1"),
            ("2130706433", "127.0.0.1"), ("0", "0.0.0.0"), ("0x", "0.0.0.0"), ("1.0x.010.0xff", "1.0.8.255"),
            ("192.168.257", "192.168.1.1"), ("4294967295", "255.255.255.255"), ("127.0.0.1.", "127.0.0.1"),
            ("%31%32%37.1", "127.0.0.1"), ("１２７．０。０．１", "127.0.0.1"), ("0X7f.0.0.1", "127.0.0.1"),
        ])
    func ipv4(input: String, output: String) throws {
        let url = try HTTPURL("http://\(input)/")
        #expect(url.host == output)
        #expect(url.isIPLiteral)
        #expect(!url.isIPv6Literal)
    }

    @Test(
        "A host that ends in a number but is not an IPv4 address is rejected",
        arguments: [
            "256.1.1.1", "1.2.3.256", "1.2.3.4.5", "4294967296", "0x100000000", "09", "1.2.3.08", "a.1",
            "a.0x1",
            "1..2", "a.b.0x", "18446744073709551617", "99999999999999999999999999",
        ])
    func invalidIPv4(input: String) {
        let error = #expect(throws: HTTPURL.ParseError.self) { try HTTPURL("http://\(input)/") }
        #expect(error?.code == .invalidIPv4Address)
        #expect(error?.offset == 7)
    }

    @Test(
        "An IPv6 address is serialized in its canonical form",
        arguments: [
            ("::", "::"), ("::1", "::1"), ("1::", "1::"), ("0:0:0:0:0:0:0:1", "::1"),
            ("2001:DB8::0001", "2001:db8::1"), ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
            ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"), ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
            ("::ffff:192.0.2.128", "::ffff:c000:280"), ("::127.0.0.1", "::7f00:1"),
            ("1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"), ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
            ("::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"), ("fe80:0:0:0::1", "fe80::1"), ("0::0", "::"),
        ])
    func ipv6(input: String, output: String) throws {
        let url = try HTTPURL("http://[\(input)]:8080/")
        #expect(url.host == output)
        #expect(url.isIPv6Literal)
        #expect(url.isIPLiteral)
        #expect(url.absoluteString == "http://[\(output)]:8080/")
    }

    @Test(
        "An invalid IPv6 address is rejected at its first invalid character",
        arguments: [
            ("", 8), ("1", 9), (":1", 8), ("1:", 10), (":::", 10), ("1::2::3", 13), ("1:2:3:4:5:6:7", 21),
            ("1:2:3:4:5:6:7:8:9", 24), ("1:2:3:4:5:6:7::8", 24), ("12345::", 12), ("g::", 8), ("::1.2.3", 15),
            ("::1.2.3.256", 18), ("::1.2.3.04", 17), ("::1.2.3.4.5", 17), ("::.1.2.3", 10),
            ("1:2:3:4:5:6:7:1.2.3.4", 22),
            ("v1.x", 8), ("::1 ", 11), ("::ffff:0x1.2.3.4", 16),
        ])
    func invalidIPv6(input: String, offset: Int) {
        let error = #expect(throws: HTTPURL.ParseError.self) { try HTTPURL("http://[\(input)]/") }
        #expect(error?.code == .invalidIPv6Address)
        #expect(error?.offset == offset)
    }

    @Test(
        "An IPv6 zone is rejected at its percent sign",
        arguments: ["fe80::1%25eth0", "fe80::1%eth0", "fe80::1%"])
    func zone(input: String) {
        let error = #expect(throws: HTTPURL.ParseError.self) { try HTTPURL("http://[\(input)]/") }
        #expect(error?.code == .zoneNotSupported)
        #expect(error?.offset == 15)
    }

    @Test(
        "A host name is lowercased, percent-decoded and mapped by IDNA",
        arguments: [
            ("EXAMPLE.com", "example.com"), ("ex%61mple.com", "example.com"), ("a_b.example", "a_b.example"),
            ("example.com.", "example.com."), ("bücher.example", "xn--bcher-kva.example"),
            ("B%C3%9CCHER.example", "xn--bcher-kva.example"),
            ("bu\u{308}cher.example", "xn--bcher-kva.example"),
            ("faß.de", "xn--fa-hia.de"), ("FAẞ.de", "xn--fa-hia.de"), ("☃.net", "xn--n3h.net"),
            ("ＧＯ.com", "go.com"),
            ("a。com", "a.com"), ("a．com", "a.com"), ("a｡com", "a.com"), ("βόλος.com", "xn--nxasmm1c.com"),
            ("XN--BCHER-KVA.example", "xn--bcher-kva.example"), ("so\u{AD}ft.example", "soft.example"),
            ("日本語.jp", "xn--wgv71a119e.jp"), ("😀.example", "xn--e28h.example"),
            ("ab--cd.example", "ab--cd.example"),
            ("-a-.example", "-a-.example"), ("ⅳ.example", "iv.example"),
            ("a!$&'()*+,;=~.x", "a!$&'()*+,;=~.x"),
            ("\u{1E69}.example", "xn--1ig.example"), ("s\u{307}\u{323}.example", "xn--1ig.example"),
            ("\u{AC01}.example", "xn--p39a.example"),
            ("\u{1100}\u{1161}\u{11A8}.example", "xn--p39a.example"),
            ("א.example", "xn--4db.example"), ("نامه\u{200C}ای.com", "xn--mgba3gch31f060k.com"),
            ("क्\u{200D}ष.example", "xn--11b2ezcw70k.example"),
        ])
    func names(input: String, output: String) throws {
        let url = try HTTPURL("http://\(input)/")
        #expect(url.host == output)
        #expect(!url.isIPLiteral)
        #expect(try HTTPURL(url.absoluteString) == url)
    }

    @Test(
        "A label that IDNA does not allow is rejected at its first character",
        arguments: [
            // Invalid Punycode: empty, of ASCII only, of capitals, of characters that are not normalized, and of a
            // second prefix.
            ("a.xn--a", 9), ("xn--", 7), ("xn--abc-", 7), ("xn--\u{E9}", 7), ("xn--dca", 7), ("xn--iua", 7),
            ("xn--72g", 7),
            ("xn--x-gea", 7), ("xn--0", 7),
            ("xn--u-ccb", 7), ("xn--xn--bcher-kva-", 7), ("xn---", 7),
            // Punycode whose sums would overflow: the largest `Int`, and the largest label.
            ("xn--hz767205604493046e", 7), ("xn--" + String(repeating: "9", count: 59), 7),
            // A leading combining mark, which forms one character with the dot before it.
            ("a.\u{301}b", 8),
            // Joiners (U+200C, U+200D) without a context that allows them.
            ("a\u{200D}b", 7), ("a\u{200C}b", 7), ("xn--ab-m1t", 7), ("\u{200C}", 6),
            // Labels that mix directions (bidi).
            ("\u{5D0}a", 7), ("1\u{5D0}", 7), ("0a.\u{5D0}", 7), ("\u{5D0}1\u{661}", 7), ("b.a\u{5D0}", 9),
        ])
    func invalidNames(input: String, offset: Int) {
        let error = #expect(throws: HTTPURL.ParseError.self) { try HTTPURL("http://\(input)/") }
        #expect(error?.code == .invalidHostName)
        #expect(error?.offset == offset)
    }

    @Test("Random Punycode of any length is decoded or rejected, and never traps")
    func randomPunycode() {
        var random = SeededGenerator(seed: 3492)
        let alphabet = Array("abcdefghijklmnopqrstuvwxyz0123456789-")
        for _ in 0..<20_000 {
            let digits = alphabet.dropFirst(Int.random(in: 0...30, using: &random))
            let count = Int.random(in: 1...59, using: &random)
            let label = String((0..<count).map { _ in digits.randomElement(using: &random) ?? "9" })
            let url = try? HTTPURL("http://xn--\(label)/")
            if let url { #expect(!url.host.isEmpty) }
        }
    }

    @Test(
        "A character that a host must not contain is rejected at its position",
        arguments: [
            ("a%2fb", 8), ("a%2Fb.c", 8), ("a%00", 8), ("a%40b", 8), ("a%3ab", 8), ("a%5cb", 8), ("%", 7),
            ("a%zz", 8),
            ("a%4", 8), ("a b", 8), ("a%20b", 8), ("a<b", 8), ("a>b", 8), ("a^b", 8), ("a|b", 8), ("a[b]", 8),
            ("a]b", 8), ("a%25b", 8), ("a%7F", 8), ("é\u{FFFD}", 8), ("é\u{2028}", 8), ("é%2f", 8),
            ("a\u{E000}", 8), ("[::1]x", 12), ("[::1", 7), ("日\u{378}", 8), ("a%80", 7), ("a%ff.é", 7),
        ])
    func forbidden(input: String, offset: Int) {
        let error = #expect(throws: HTTPURL.ParseError.self) { try HTTPURL("http://\(input)/") }
        #expect(error?.offset == offset)
        let expected: HTTPURL.ParseError.Code =
            input == "[::1" ? .invalidIPv6Address : .forbiddenHostCharacter
        #expect(error?.code == expected)
    }

    @Test(
        "A character that maps to a forbidden one is rejected", arguments: ["a℀b", "a／b", "a％b", "a＠b", "a：b"])
    func mappedToForbidden(input: String) {
        // U+2100 maps to "a/c", so the host would end early.
        let error = #expect(throws: HTTPURL.ParseError.self) { try HTTPURL("http://\(input)/") }
        #expect(error?.code == .forbiddenHostCharacter)
    }

    @Test(
        "A URL with an empty host is rejected",
        arguments: [
            ("http://", 7), ("http:///a", 7), ("http://?q", 7), ("http://#f", 7), ("http://:80/", 7),
            ("http://u@/", 9),
            ("http://u:p@:80/", 11),
        ])
    func emptyHost(input: String, offset: Int) {
        let error = #expect(throws: HTTPURL.ParseError.self) { try HTTPURL(input) }
        #expect(error?.code == .emptyHost)
        #expect(error?.offset == offset)
    }

    @Test(
        "A host of only ignored characters or dots is rejected", arguments: ["\u{AD}", ".", "..", "。", "%2e"])
    func nothingLeft(input: String) {
        let error = #expect(throws: HTTPURL.ParseError.self) { try HTTPURL("http://\(input)/") }
        #expect(error?.code == .emptyHost)
    }

    @Test(
        "An empty label is rejected at its position", arguments: [("a..b", 9), (".a", 7), ("a..", 9), ("é..b", 7)])
    func emptyLabel(input: String, offset: Int) {
        let error = #expect(throws: HTTPURL.ParseError.self) { try HTTPURL("http://\(input)/") }
        #expect(error?.code == .invalidHostName)
        #expect(error?.offset == offset)
    }

    @Test("A label has at most 63 characters and a name at most 253, without a trailing dot")
    func lengths() throws {
        let label = String(repeating: "a", count: 63)
        #expect(try HTTPURL("http://\(label).b/").host == "\(label).b")
        let name =
            Array(repeating: label, count: 3).joined(separator: ".") + "." + String(repeating: "b", count: 61)
        #expect(try HTTPURL("http://\(name)/").host.utf8.count == 253)
        #expect(try HTTPURL("http://\(name)./").host.utf8.count == 254)
        for host in [label + "a", name + "b", name + "b.", String(repeating: "é", count: 60), "xn--" + label] {
            let error = #expect(throws: HTTPURL.ParseError.self) { try HTTPURL("http://\(host)/") }
            #expect(error?.code == .hostNameTooLong)
        }
    }

    @Test("User info is never parsed as the host")
    func userInfoIsNotHost() throws {
        #expect(try HTTPURL("http://good.example@evil.example/").host == "evil.example")
        #expect(try HTTPURL("http://a@b@c/").host == "c")
        #expect(try HTTPURL("http://a:b@c:d@e:1/").host == "e")
        #expect(try HTTPURL("http://a%40b@c/").user == "a@b")
        #expect(try HTTPURL("http://127.0.0.1:80@c/").host == "c")
    }
}
