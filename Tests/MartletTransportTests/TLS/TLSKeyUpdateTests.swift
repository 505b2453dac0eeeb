import MartletTransport
import Testing

/// A peer of TLS 1.3 may renew its keys at any time and demand the same of this side (RFC 8446 §4.6.3): a read may leave
/// something to write.
@Suite("Renewed TLS keys")
struct TLSKeyUpdateTests {
    private func pair() async throws -> (client: TLSStream, server: TLSStream) {
        let outcome = await (try TLSPair()).handshake(
            client: try Certificates.client { $0.minimumVersion = .tls13 }, server: try Certificates.server())
        return (try outcome.client.get(), try outcome.server.get())
    }

    /// Writes until the socket takes no more; how many bytes it took.
    private func fill(_ stream: TLSStream) throws -> Int {
        let bytes = [UInt8](repeating: 0x78, count: 16_384)
        var total = 0
        while true {
            let count = try unsafe bytes.withUnsafeBytes { raw throws(TransportError) in
                unsafe try stream.write(raw)
            }
            if count == 0 { return total }
            total += count
        }
    }

    @Test("Bytes behind a renewal of keys arrive, and those of this side too")
    func renewal() async throws {
        let (client, server) = try await pair()
        for round in 0..<5 {
            try server.renewKeys()
            try await server.send([UInt8(round)])
            #expect(try await client.receive(exactly: 1) == [UInt8(round)])
            try await client.send([UInt8(round), 1])
            #expect(try await server.receive(exactly: 2) == [UInt8(round), 1])
        }
    }

    @Test("A renewal of keys that cannot be answered yet holds up neither reading nor writing")
    func unanswered() async throws {
        let (client, server) = try await pair()
        let written = try fill(client)
        try server.renewKeys()
        try await server.send([1, 2, 3])
        #expect(try await client.receive(exactly: 3) == [1, 2, 3])
        // The answer goes out in front of the next bytes, which go on where the last write stopped.
        async let rest: Void = client.send([UInt8](repeating: 0x78, count: 16_384))
        #expect(try await server.receive(exactly: written + 16_384).allSatisfy { $0 == 0x78 })
        try await rest
    }

    /// Fills a socket beside TLS, so that nothing of TLS's own is begun and not out; how many bytes it took.
    private func fillBesideTLS(_ socket: Socket) throws -> Int {
        let bytes = [UInt8](repeating: 0x78, count: 16_384)
        var total = 0
        while true {
            let count = try unsafe bytes.withUnsafeBytes { raw throws(TransportError) in
                unsafe try socket.send(raw)
            }
            if count == 0 { return total }
            total += count
        }
    }

    /// Takes so many bytes off a socket beside TLS.
    private func drainBesideTLS(_ socket: Socket, _ count: Int) async throws {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        var left = count
        while left > 0 {
            let limit = min(left, buffer.count)
            let outcome = try unsafe buffer.withUnsafeMutableBytes { raw in
                unsafe try socket.receive(into: UnsafeMutableRawBufferPointer(rebasing: raw[..<limit]))
            }
            switch outcome {
            case .bytes(let received): left -= received
            case .wouldBlock: try await socket.wait(for: .read, until: TLSPair.soon)
            case .endOfStream: return
            }
        }
    }

    @Test("A close_notify that found no room goes out when there is some, while a reader waits for the peer")
    func owedCloseNotify() async throws {
        let (client, server) = try await pair()
        let written = try fillBesideTLS(client.socket)
        client.shutdownWriting()
        async let received = client.receive(exactly: 3)
        try await drainBesideTLS(server.socket, written)
        let (outcome, _) = try await server.receive()
        #expect(outcome == .endOfStream(isClean: true))
        try await server.send([1, 2, 3])
        #expect(try await received == [1, 2, 3])
    }

    @Test("A reader with something left to write looks again when that may go out, and not before")
    func waitsWithoutLooking() async throws {
        let (client, server) = try await pair()
        _ = try fill(client)
        client.shutdownWriting()
        let deadline = MonotonicTime.now().advanced(by: .milliseconds(300))
        var looks = 0
        var buffer = [UInt8](repeating: 0, count: 16)
        await #expect {
            while looks < 1000 {
                let outcome = try unsafe buffer.withUnsafeMutableBytes { raw throws(TransportError) in
                    unsafe try client.read(into: raw)
                }
                #expect(outcome == .wouldBlock)
                looks += 1
                try await client.waitUntilReadable(until: deadline)
            }
        } throws: { error in
            if case .timedOut? = error as? TransportError { true } else { false }
        }
        #expect(MonotonicTime.now() >= deadline)
        #expect(looks < 5)
        server.close()
    }

    /// Has one side look for bytes; what it is told.
    private func look(_ stream: TLSStream) throws -> ReadOutcome {
        var buffer = [UInt8](repeating: 0, count: 16)
        return try unsafe buffer.withUnsafeMutableBytes { raw throws(TransportError) in
            unsafe try stream.read(into: raw)
        }
    }

    @Test("A peer that sends messages of TLS and nothing else is given up")
    func flood() async throws {
        let (client, server) = try await pair()
        var byteCount = 0
        await #expect {
            // A renewal is 27 bytes.
            while byteCount < 1 << 20 {
                for _ in 0..<100 { try server.renewKeys() }
                byteCount += 2700
                try await client.waitUntilReadable(until: TLSPair.soon)
                #expect(try look(client) == .wouldBlock)
                // The answers, so that there is room for more.
                _ = try look(server)
            }
        } throws: { error in
            if case .tls? = error as? TransportError { true } else { false }
        }
        #expect(byteCount < 400_000)
    }

    @Test("What comes of the application in between lets it go on")
    func interspersed() async throws {
        let (client, server) = try await pair()
        for round in 0..<200 {
            for _ in 0..<100 { try server.renewKeys() }
            try await server.send([UInt8(round)])
            #expect(try await client.receive(exactly: 1) == [UInt8(round)])
            try await client.send([UInt8(round)])
            #expect(try await server.receive(exactly: 1) == [UInt8(round)])
        }
    }

    @Test("An idle connection on which nothing but they come, and ever more, is of no use")
    func floodWhileIdle() async throws {
        let (client, server) = try await pair()
        var byteCount = 0
        while byteCount < 1 << 20 {
            for _ in 0..<100 { try server.renewKeys() }
            byteCount += 2700
            guard client.probe() == .quiet else { break }
            _ = try look(server)
        }
        #expect(byteCount > 200_000 && byteCount < 400_000)
    }
}
