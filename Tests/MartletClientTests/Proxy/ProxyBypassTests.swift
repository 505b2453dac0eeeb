import Martlet
import Testing

@Suite("no_proxy matching")
struct ProxyBypassTests {
    private func matches(_ list: String, _ host: String, _ port: Int = 443) -> Bool {
        ProxyBypass(list).contains(host: host, port: port)
    }

    @Test("A name matches itself and its subdomains, on whole labels")
    func names() {
        for list in ["example.com", ".example.com", "EXAMPLE.com.", "*.example.com"] {
            #expect(matches(list, "example.com"))
            #expect(matches(list, "www.example.com"))
            #expect(matches(list, "a.b.Example.COM."))
            #expect(!matches(list, "notexample.com"))
            #expect(!matches(list, "example.com.evil"))
            #expect(!matches(list, "com"))
        }
        #expect(matches("localhost", "localhost"))
        #expect(!matches("ocalhost", "localhost"))
    }

    @Test("Any number of commas and white space separates entries")
    func separators() {
        for list in ["a.test,b.test", "a.test b.test", " ,, a.test ,\tb.test,", "a.test\nb.test"] {
            #expect(matches(list, "a.test") && matches(list, "b.test") && !matches(list, "c.test"))
        }
        for list in ["", ",", " \t , ", "."] { #expect(!matches(list, "a.test")) }
    }

    @Test("A star matches every server")
    func star() {
        #expect(matches("*", "example.com") && matches("*", "::1") && matches("x, *", "192.0.2.1"))
        #expect(!matches("**", "example.com") && !matches("ex*", "example.com"))
    }

    @Test("A port restricts an entry")
    func ports() {
        #expect(matches("example.com:443", "www.example.com", 443))
        #expect(!matches("example.com:443", "example.com", 80))
        #expect(matches("192.0.2.1:80", "192.0.2.1", 80) && !matches("192.0.2.1:80", "192.0.2.1", 81))
        #expect(matches("[::1]:80", "::1", 80) && !matches("[::1]:80", "::1", 81))
        #expect(matches("10.0.0.0/8:80", "10.1.1.1", 80) && !matches("10.0.0.0/8:80", "10.1.1.1", 81))
        for bad in ["example.com:", "example.com:x", "example.com:0", "example.com:65536", "example.com:-1"] {
            #expect(!matches(bad, "example.com"))
        }
    }

    @Test("An address matches itself in any spelling of IPv6")
    func addresses() {
        #expect(matches("192.0.2.1", "192.0.2.1") && !matches("192.0.2.1", "192.0.2.10"))
        for list in ["::1", "[::1]", "0:0:0:0:0:0:0:1", "0::1"] {
            #expect(matches(list, "::1") && matches(list, "[::1]") && !matches(list, "::2"))
        }
    }

    @Test("A dot within an address does not separate labels")
    func partsOfAddresses() {
        #expect(!matches("1", "192.0.2.1") && !matches("2.1", "192.0.2.1") && !matches(".0.2.1", "192.0.2.1"))
        #expect(!matches("192.0.2.1", "www.192.0.2.1.example"))
    }

    @Test("A network matches the addresses with its prefix")
    func networks() {
        #expect(matches("10.0.0.0/8", "10.255.255.255") && !matches("10.0.0.0/8", "11.0.0.0"))
        #expect(matches("192.168.4.0/22", "192.168.7.255") && !matches("192.168.4.0/22", "192.168.8.0"))
        #expect(matches("192.0.2.1/32", "192.0.2.1") && !matches("192.0.2.1/32", "192.0.2.0"))
        #expect(matches("192.0.2.128/31", "192.0.2.129") && !matches("192.0.2.128/31", "192.0.2.130"))
        #expect(matches("0.0.0.0/0", "203.0.113.1") && !matches("0.0.0.0/0", "::1"))
        #expect(matches("fe80::/10", "febf::1") && !matches("fe80::/10", "fec0::1"))
        #expect(matches("2001:db8::/33", "2001:db8:7fff::1") && !matches("2001:db8::/33", "2001:db8:8000::1"))
        #expect(matches("[2001:db8::]/32", "2001:db8::5") || !matches("[2001:db8::]/32", "::1"))
        #expect(!matches("10.0.0.0/8", "ten.example"))
        for bad in [
            "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/x", "10.0.0.0/-1", "fe80::/129", "example.com/8",
            "10.0.0/8", "10.0.0.0/99999999999999999999", "/8",
        ] {
            #expect(!matches(bad, "10.0.0.0") && !matches(bad, "example.com") && !matches(bad, "fe80::1"))
        }
    }

    @Test("An invalid entry matches nothing and never traps")
    func garbage() {
        for list in [
            ":", "[", "]", "[]", "[::1", "::1]", "[]:80", "...", "*:", "*:80", "%", "/", ":/:", "é,\u{0}",
        ] {
            #expect(!matches(list, "example.com"))
            #expect(!matches(list, ""))
        }
    }

    @Test(
        "A megabyte of separators or entries is parsed in linear time",
        arguments: [",", "a,", ".", "[", ":", "/", "1"])
    func large(_ unit: String) {
        let (isMatch, time) = ThreadTime.of {
            matches(String(repeating: unit, count: 1 << 20), "example.com")
        }
        #expect(!isMatch)
        #expect(time < .seconds(60))
    }
}
