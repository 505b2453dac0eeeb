import Testing

@testable import MartletTransport

@Suite("TLS server names")
struct TLSServerNameTests {
    private func nameSeen(_ name: String) async throws -> String? {
        let outcome = await (try TLSPair()).handshake(
            client: try Certificates.client(), server: try Certificates.server(), name: name)
        _ = try outcome.client.get()
        return try outcome.server.get().requestedServerName
    }

    @Test(
        "The host name is sent in lower case and without a trailing dot",
        arguments: ["localhost", "LocalHost."])
    func hostName(name: String) async throws {
        #expect(try await nameSeen(name) == "localhost")
    }

    @Test("An address is not sent as a server name", arguments: ["127.0.0.1", "::1", "[::1]"])
    func address(name: String) async throws {
        #expect(try await nameSeen(name) == nil)
    }

    @Test("A peer's name is a host, an address or absent")
    func peerNames() {
        #expect(PeerName("Example.COM.") == .host("example.com"))
        #expect(PeerName("[2001:db8::1]") == .address("2001:db8::1"))
        #expect(PeerName("192.0.2.1") == .address("192.0.2.1"))
        #expect(PeerName("a\0b") == nil)
        #expect(PeerName("bücher.example") == nil)
        #expect(PeerName(String(repeating: "a", count: 254)) == nil)
    }
}
