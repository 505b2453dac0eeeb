import MartletTransport
import Testing

/// A TLS 1.3 peer can update its keys at any time and request the same of this side (RFC 8446 §4.6.3). A read can
/// therefore produce bytes to write.
@Suite("TLS key updates")
struct TLSKeyUpdateTests {
    private func pair() async throws -> (client: TLSStream, server: TLSStream) {
        let outcome = await (try TLSPair()).handshake(
            client: try Certificates.client { $0.minimumVersion = .tls13 }, server: try Certificates.server())
        return (try outcome.client.get(), try outcome.server.get())
    }

    /// Writes until the socket accepts no more and returns the number of written bytes.
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

    @Test("Bytes after a key update arrive in both directions")
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

    @Test("A key update that cannot be acknowledged yet blocks neither reading nor writing")
    func unanswered() async throws {
        let (client, server) = try await pair()
        let written = try fill(client)
        try server.renewKeys()
        try await server.send([1, 2, 3])
        #expect(try await client.receive(exactly: 3) == [1, 2, 3])
        // The key update is sent before the next bytes, which resume where the last write stopped.
        async let rest: Void = client.send([UInt8](repeating: 0x78, count: 16_384))
        #expect(try await server.receive(exactly: written + 16_384).allSatisfy { $0 == 0x78 })
        try await rest
    }

    /// Fills a socket below TLS, so that no TLS record is partly written, and returns the number of written bytes.
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

    /// Reads `count` bytes from a socket below TLS.
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

    @Test("A delayed close_notify is sent as soon as there is room, while a reader waits for the peer")
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

    @Test("A reader with pending output reads again only when the output can be sent")
    func waitsWithoutLooking() async throws {
        let (client, server) = try await pair()
        _ = try fill(client)
        client.shutdownWriting()
        try await expectFewLooks(client)
        server.close()
    }

    /// Expects that a stream that cannot be read yet is read a few times until a deadline, and not all the time.
    private func expectFewLooks(_ client: TLSStream) async throws {
        let deadline = MonotonicTime.now().advanced(by: .milliseconds(300))
        var looks = 0
        await #expect {
            while looks < 1000 {
                #expect(try look(client) == .wouldBlock)
                looks += 1
                try await client.waitUntilReadable(until: deadline)
            }
        } throws: { error in
            if case .timedOut? = error as? TransportError { true } else { false }
        }
        #expect(MonotonicTime.now() >= deadline)
        #expect(looks < 5)
    }

    // A reader of such a stream once ran without pause until there was room.
    @Test("After the end of the server's side, a reader with a pending reply waits until the reply can be sent")
    func hangupBeforeReply() async throws {
        let (client, server) = try await pair()
        let written = try fillBesideTLS(client.socket)
        try server.renewKeys()
        try await client.waitUntilReadable(until: TLSPair.soon)
        #expect(try look(client) == .wouldBlock)
        #expect(try client.write([1], from: 0) == 0)
        server.socket.shutdownWriting()
        try await expectFewLooks(client)
        // The socket has an end to read, but not before the reply is sent.
        #expect(!client.looksReadable())
        try await drainBesideTLS(server.socket, written)
        let (outcome, _) = try await client.receive()
        #expect(outcome == .endOfStream(isClean: false))
        server.close()
    }

    @Test("Bytes of the outer TLS layer do not wake a reader of the inner one that has a pending reply")
    func replyInsideTLS() async throws {
        let (carrier, serverCarrier) = try await pair()
        let serverContext = try Certificates.server()
        async let accepted = TLSStream.accept(
            socket: serverCarrier.socket, carrier: serverCarrier, context: serverContext, deadline: TLSPair.soon)
        let client = try await TLSStream.connect(
            socket: carrier.socket, carrier: carrier, context: try Certificates.client { $0.minimumVersion = .tls13 },
            serverName: "localhost", port: 443, deadline: TLSPair.soon)
        let server = try await accepted
        _ = try fillBesideTLS(client.socket)
        try server.renewKeys()
        // More than one read of the inner layer takes from the outer one.
        try await server.send([UInt8](repeating: 0x78, count: 60_000))
        #expect(try await client.receive(exactly: 16).count == 16)
        #expect(try client.write([1], from: 0) == 0)
        try await expectFewLooks(client)
        #expect(!client.looksReadable())
        server.close()
    }

    /// Reads once on one side and returns the outcome.
    private func look(_ stream: TLSStream) throws -> ReadOutcome {
        var buffer = [UInt8](repeating: 0, count: 16)
        return try unsafe buffer.withUnsafeMutableBytes { raw throws(TransportError) in
            unsafe try stream.read(into: raw)
        }
    }

    @Test("A peer that sends only key updates fails the connection")
    func flood() async throws {
        let (client, server) = try await pair()
        var byteCount = 0
        await #expect {
            // A key update has 27 bytes.
            while byteCount < 1 << 20 {
                for _ in 0..<100 { try server.renewKeys() }
                byteCount += 2700
                try await client.waitUntilReadable(until: TLSPair.soon)
                #expect(try look(client) == .wouldBlock)
                // Reads the replies to make room for more.
                _ = try look(server)
            }
        } throws: { error in
            if case .tls? = error as? TransportError { true } else { false }
        }
        #expect(byteCount < 400_000)
    }

    @Test("Application data between key updates keeps the connection usable")
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

    @Test("An idle connection becomes unusable after too many key updates")
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
