import MartletTransport
import Testing

@Suite("Probing an idle TLS stream")
struct TLSProbeTests {
    private func connected() async throws -> (TLSStream, TLSStream) {
        let outcome = await (try TLSPair()).handshake(
            client: try Certificates.client(), server: try Certificates.server())
        return (try outcome.client.get(), try outcome.server.get())
    }

    /// Waits until the peer's bytes arrive: loopback is fast, but not instantaneous.
    private func noticed(_ client: TLSStream) async {
        let deadline = TLSPair.soon
        while client.probe() == .quiet, MonotonicTime.now() < deadline { await Task.yield() }
    }

    @Test("Session tickets that arrived leave the stream quiet")
    func tickets() async throws {
        let (client, server) = try await connected()
        #expect(client.probe() == .quiet)
        #expect(client.probe() == .quiet)
        try await server.send([7])
        #expect(try await client.receive().1 == [7])
    }

    @Test("Unexpected bytes make the stream unusable and are not lost")
    func bytes() async throws {
        let (client, server) = try await connected()
        try await server.send([7])
        await noticed(client)
        #expect(client.probe() == .unusable)
        try await client.waitUntilReadable(until: TLSPair.soon)
        #expect(try await client.receive().1 == [7])
    }

    @Test("The end of the stream makes it unusable, with or without close_notify", arguments: [true, false])
    func ends(isClean: Bool) async throws {
        let (client, server) = try await connected()
        if isClean { server.close() } else { server.closeWithoutNotifying() }
        await noticed(client)
        #expect(client.probe() == .unusable)
    }
}
