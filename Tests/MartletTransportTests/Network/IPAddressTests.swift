import MartletTransport
import Testing

@Suite("Addresses without ports")
struct IPAddressTests {
    @Test("The address of a socket is read without its port")
    func sockets() {
        #expect(IPAddress(socket: "192.0.2.1:80") == IPAddress("192.0.2.1"))
        #expect(IPAddress(socket: "[2001:db8::1]:443") == IPAddress("2001:db8::1"))
        #expect(IPAddress("2001:db8::1")?.description == "2001:db8::1")
        for text in ["", ":", "/run/socket", "@abstract", "example.org:80", "[]:1", "[::1:80"] {
            #expect(IPAddress(socket: text) == nil, "\(text)")
        }
    }

    @Test("Loopback and link-local addresses are recognized")
    func reach() throws {
        for text in ["127.0.0.1", "127.255.0.1", "::1"] { #expect(try #require(IPAddress(text)).isLoopback) }
        for text in ["169.254.0.1", "fe80::1", "febf::1"] {
            #expect(try #require(IPAddress(text)).isLinkLocal)
        }
        for text in ["128.0.0.1", "169.253.0.1", "fec0::1", "fd00::1", "::2", "1::1", "::"] {
            let address = try #require(IPAddress(text))
            #expect(!address.isLoopback && !address.isLinkLocal)
        }
        #expect(IPAddress(bytes: [1, 2, 3]) == nil)
    }
}
