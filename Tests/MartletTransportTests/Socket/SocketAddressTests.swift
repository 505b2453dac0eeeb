import MartletTransport
import Testing

@Suite("Socket addresses")
struct SocketAddressTests {
    @Test(
        "Literals are parsed and formatted",
        arguments: [
            ("127.0.0.1", "127.0.0.1:80"), ("0.0.0.0", "0.0.0.0:80"), ("::1", "[::1]:80"),
            ("2001:db8::8:800:200c:417a", "[2001:db8::8:800:200c:417a]:80"),
        ])
    func literals(text: String, description: String) throws {
        let address = try #require(SocketAddress(literal: text, port: 80))
        #expect(address.description == description)
        #expect(address.host == text)
        #expect(address.port == 80)
        #expect(address.family == (text.contains(":") ? .ipv6 : .ipv4))
        #expect(address == SocketAddress(literal: text, port: 80))
        #expect(address != SocketAddress(literal: text, port: 81))
    }

    @Test(
        "Text that is not a literal is rejected",
        arguments: ["", "localhost", "127.1", "1.2.3.4.5", "[::1]", "::1%lo", "1.2.3.4\0"])
    func rejected(text: String) {
        #expect(SocketAddress(literal: text, port: 80) == nil)
    }

    @Test("A port out of range is rejected", arguments: [-1, 65_536])
    func ports(port: Int) {
        #expect(SocketAddress(literal: "127.0.0.1", port: port) == nil)
    }

    @Test(
        "Paths of Unix domain sockets, including abstract ones, are parsed and formatted",
        arguments: ["/tmp/a.sock", "@name"])
    func unixPaths(path: String) throws {
        let address = try #require(SocketAddress(unixPath: path))
        #expect(address.description == path)
        #expect(address.family == .unix)
        #expect(address.port == nil)
    }

    @Test("A path that is too long is rejected")
    func longPaths() {
        #expect(SocketAddress(unixPath: String(repeating: "a", count: 107)) != nil)
        #expect(SocketAddress(unixPath: String(repeating: "a", count: 108)) == nil)
        #expect(SocketAddress(unixPath: "") == nil)
        #expect(SocketAddress(unixPath: "a\0b") == nil)
    }
}
