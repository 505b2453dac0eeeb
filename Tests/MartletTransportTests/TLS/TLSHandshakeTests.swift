import MartletTransport
import Testing

@Suite("TLS handshakes")
struct TLSHandshakeTests {
    private func outcome(
        _ version: TLSVersion, server: TLSContext? = nil, client: TLSContext? = nil
    ) async throws -> TLSPair.Outcome {
        let client =
            try client
            ?? Certificates.client { settings in
                settings.minimumVersion = version
                settings.maximumVersion = version
            }
        return await (try TLSPair()).handshake(client: client, server: try server ?? Certificates.server())
    }

    @Test("A handshake agrees on a version, a cipher and http/1.1", arguments: TLSVersion.allCases)
    func agrees(version: TLSVersion) async throws {
        let outcome = try await outcome(version)
        let stream = try outcome.client.get()
        let tls = try #require(stream.information.tls)
        #expect(tls.version == (version == .tls13 ? "TLSv1.3" : "TLSv1.2"))
        #expect(!tls.cipher.isEmpty)
        #expect(tls.applicationProtocol == "http/1.1")
        #expect(!tls.isResumed)
        #expect(tls.peerCertificate.first == 0x30)
        stream.close()
    }

    @Test("Bytes pass in both directions", arguments: TLSVersion.allCases)
    func bothWays(version: TLSVersion) async throws {
        let outcome = try await outcome(version)
        let (client, server) = (try outcome.client.get(), try outcome.server.get())
        try await client.send(Array("GET / HTTP/1.1\r\n\r\n".utf8))
        #expect(try await server.receive(exactly: 18) == Array("GET / HTTP/1.1\r\n\r\n".utf8))
        try await server.send(Array("HTTP/1.1 200 OK\r\n\r\n".utf8))
        #expect(try await client.receive(exactly: 19) == Array("HTTP/1.1 200 OK\r\n\r\n".utf8))
    }
}
