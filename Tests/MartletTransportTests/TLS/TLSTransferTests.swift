import Testing

@testable import MartletTransport

@Suite("Data transfer over TLS")
struct TLSTransferTests {
    @Test("Ten megabytes pass unchanged in both directions concurrently", arguments: TLSVersion.allCases)
    func bothWays(version: TLSVersion) async throws {
        let settings = try Certificates.client { $0.maximumVersion = version }
        let outcome = await (try TLSPair()).handshake(client: settings, server: try Certificates.server())
        let (client, server) = (try outcome.client.get(), try outcome.server.get())
        let count = 10_000_000
        let (up, down) = (BytePattern.bytes(count, seed: 1), BytePattern.bytes(count, seed: 2))
        async let sentUp: Void = client.send(up)
        async let sentDown: Void = server.send(down)
        async let receivedUp = server.receive(exactly: count)
        async let receivedDown = client.receive(exactly: count)
        _ = try await (sentUp, sentDown)
        #expect(try await receivedUp == up)
        #expect(try await receivedDown == down)
    }

    @Test("A reader that takes one byte at a time gets every byte")
    func singleBytes() async throws {
        let outcome = await (try TLSPair()).handshake(
            client: try Certificates.client(), server: try Certificates.server())
        let (client, server) = (try outcome.client.get(), try outcome.server.get())
        let bytes = BytePattern.bytes(40_000, seed: 3)
        async let sent: Void = server.send(bytes)
        var received: [UInt8] = []
        while received.count < bytes.count {
            // Waits before each read, because bytes in OpenSSL's buffer must not require a wait.
            try await client.waitUntilReadable(until: TLSPair.soon)
            let (outcome, part) = try await client.receive(upTo: 1)
            if case .endOfStream = outcome { break }
            received += part
        }
        try await sent
        #expect(received == bytes)
    }

    @Test("Bytes and a handshake pass over loopback TCP")
    func loopback() async throws {
        let loop = try EventLoop.shared.get()
        let address = try #require(SocketAddress(literal: "127.0.0.1", port: 0))
        let listener = try Listener(address: address, loop: loop)
        defer { listener.close() }
        let context = try Certificates.server()
        async let accepted = Self.accept(listener, context, loop)
        let descriptor = try Descriptor(listener.address.family)
        try descriptor.connect(to: listener.address)
        let socket = try descriptor.register(with: loop)
        try await socket.wait(for: .write, until: TLSPair.soon)
        let client = try await TLSStream.connect(
            socket: socket, remoteAddress: listener.address, context: try Certificates.client(),
            serverName: "127.0.0.1", port: 443, deadline: TLSPair.soon)
        let server = try await accepted
        let bytes = BytePattern.bytes(1_000_000, seed: 4)
        async let sent: Void = server.send(bytes)
        #expect(try await client.receive(exactly: bytes.count) == bytes)
        try await sent
        #expect(client.information.remoteAddress == listener.address.description)
        #expect(client.information.localAddress.hasPrefix("127.0.0.1:"))
    }

    private static func accept(
        _ listener: Listener, _ context: TLSContext, _ loop: EventLoop
    ) async throws(TransportError) -> TLSStream {
        let socket = try await listener.accept(loop: loop)
        return try await TLSStream.accept(socket: socket, context: context, deadline: TLSPair.soon)
    }
}
