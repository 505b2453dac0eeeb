import MartletTransport
import Testing

@Suite("The end of a TLS stream")
struct TLSEndTests {
    private func connected(_ version: TLSVersion = .tls13) async throws -> (TLSStream, TLSStream) {
        let client = try Certificates.client { $0.maximumVersion = version }
        let outcome = await (try TLSPair()).handshake(client: client, server: try Certificates.server())
        return (try outcome.client.get(), try outcome.server.get())
    }

    @Test("An end with close_notify is clean", arguments: TLSVersion.allCases)
    func clean(version: TLSVersion) async throws {
        let (client, server) = try await connected(version)
        try await server.send([1, 2, 3])
        server.close()
        #expect(try await client.receive(exactly: 3) == [1, 2, 3])
        #expect(try await client.receive().0 == .endOfStream(isClean: true))
        #expect(try await client.receive().0 == .endOfStream(isClean: true))
    }

    @Test("An end without close_notify is not clean", arguments: TLSVersion.allCases)
    func truncated(version: TLSVersion) async throws {
        let (client, server) = try await connected(version)
        try await server.send([1, 2, 3])
        server.closeWithoutNotifying()
        #expect(try await client.receive(exactly: 3) == [1, 2, 3])
        #expect(try await client.receive().0 == .endOfStream(isClean: false))
        #expect(try await client.receive().0 == .endOfStream(isClean: false))
    }

    @Test("After the write direction has ended, the read direction still works")
    func halfClosed() async throws {
        let (client, server) = try await connected()
        try await client.send([1])
        client.shutdownWriting()
        #expect(try await server.receive(exactly: 1) == [1])
        #expect(try await server.receive().0 == .endOfStream(isClean: true))
        await #expect {
            try await client.send([1])
        } throws: { error in
            if case TransportError.closed = error { true } else { false }
        }
        try await server.send([2, 3])
        #expect(try await client.receive(exactly: 2) == [2, 3])
    }

    @Test("Writing to a closed peer is an error and raises no signal")
    func brokenPipe() async throws {
        let (client, server) = try await connected()
        server.reset()
        await #expect(throws: TransportError.self) {
            for _ in 0..<100 { try await client.send([UInt8](repeating: 0, count: 65_536)) }
        }
    }

    @Test("A closed stream throws the error for a closed stream")
    func closed() async throws {
        let (client, _) = try await connected()
        client.close()
        client.close()
        await #expect {
            _ = try await client.receive()
        } throws: { error in
            if case TransportError.closed = error { true } else { false }
        }
        await #expect {
            try await client.send([1])
        } throws: { error in
            if case TransportError.closed = error { true } else { false }
        }
        #expect(client.probe() == .unusable)
    }

    @Test("An interrupt ends a wait for the peer")
    func interrupted() async throws {
        let (client, server) = try await connected()
        async let isInterrupted = Self.isInterrupted(client)
        client.interrupt()
        #expect(await isInterrupted)
        server.close()
    }

    private static func isInterrupted(_ stream: TLSStream) async -> Bool {
        do {
            _ = try await stream.receive()
            return false
        } catch TransportError.interrupted {
            return true
        } catch {
            return false
        }
    }
}
