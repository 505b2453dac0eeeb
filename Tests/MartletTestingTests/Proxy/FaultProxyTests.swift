import MartletTesting
import MartletTransport
import Testing

@Suite("Fault proxy")
struct FaultProxyTests {
    private static let get = "GET / HTTP/1.1\r\nHost: t\r\n\r\n"

    @Test("Without faults, several requests and responses on a connection pass unchanged")
    func passes() async throws {
        try await TestOrigin.withOrigin { request in
            request.method == .put ? .bytes(try await request.collectBody()) : .pattern(300_000)
        } run: { origin in
            try await FaultProxy.withProxy(before: origin, FaultOptions(.none)) { proxy in
                let client = try await RawClient(proxy)
                for _ in 0..<3 {
                    let body = try await client.get("/").body
                    #expect(body == TestPattern.bytes(from: 0, count: 300_000))
                }
                client.stream.close()
                try await origin.recorder.waitForOpenConnections(atMost: 0)
                #expect(proxy.counts.connections == 1)
                #expect(proxy.counts.responses == 3)
                #expect(proxy.counts.faultCount == 0)
            }
        }
    }

    @Test("A proxy reaches an origin that does not listen on 127.0.0.1")
    func reachesOtherAddress() async throws {
        try await TestOrigin.withOrigin(.onOwnAddress(5), handler: .bytes(10)) { origin in
            try await FaultProxy.withProxy(before: origin, FaultOptions(.none)) { proxy in
                let client = try await RawClient(proxy)
                #expect(try await client.get("/").body == TestPattern.bytes(from: 0, count: 10))
                client.close()
            }
        }
    }

    @Test("A reset response ends with a reset")
    func resets() async throws {
        try await TestOrigin.withOrigin(handler: .bytes(1 << 20)) { origin in
            try await FaultProxy.withProxy(before: origin, .only(.reset)) { proxy in
                let client = try await RawClient(proxy)
                try await client.send(Self.get)
                await #expect(throws: TransportError.self) { try await client.receiveAll() }
                #expect(proxy.counts.faults == [.reset: 1])
            }
        }
    }

    @Test("A truncated response ends early with a normal close")
    func truncates() async throws {
        try await TestOrigin.withOrigin(handler: .bytes(50_000)) { origin in
            var options = FaultOptions.only(.truncated)
            options.offsets = 7_000..<7_001
            try await FaultProxy.withProxy(before: origin, options) { proxy in
                let client = try await RawClient(proxy)
                try await client.send(Self.get)
                #expect(try await client.receiveAll().count == 7_000)
                #expect(proxy.counts.faults == [.truncated: 1])
            }
        }
    }

    @Test("A stalled response stays open and silent until its client disconnects")
    func stalls() async throws {
        try await TestOrigin.withOrigin(handler: .bytes(50_000)) { origin in
            var options = FaultOptions.only(.stall)
            options.offsets = 5..<6
            try await FaultProxy.withProxy(before: origin, options) { proxy in
                let client = try await RawClient(proxy)
                try await client.send(Self.get)
                #expect(try await client.receive(through: "HTTP/") == "HTTP/")
                await #expect(throws: TransportError.self) {
                    try await client.stream.waitUntilReadable(
                        until: MonotonicTime.now().advanced(by: .milliseconds(50)))
                }
                #expect(client.stream.probe() == .quiet)
                #expect(proxy.counts.openConnections == 1)
                client.stream.close()
                try await origin.recorder.waitForOpenConnections(atMost: 0)
            }
        }
    }

    @Test("A slow response arrives complete and takes longer")
    func drips() async throws {
        try await TestOrigin.withOrigin(handler: .bytes(10_000)) { origin in
            var options = FaultOptions.only(.slow)
            options.dripSize = 1000
            options.dripInterval = .milliseconds(5)
            try await FaultProxy.withProxy(before: origin, options) { proxy in
                let client = try await RawClient(proxy)
                let start = ContinuousClock.now
                #expect(try await client.get("/").body == TestPattern.bytes(from: 0, count: 10_000))
                #expect(ContinuousClock.now - start >= .milliseconds(50))
                #expect(proxy.counts.faults == [.slow: 1])
            }
        }
    }

    @Test("Garbage is the same for the same seed and is not a response")
    func garbles() async throws {
        try await TestOrigin.withOrigin(handler: .bytes(10_000)) { origin in
            var seen: Set<[UInt8]> = []
            for _ in 0..<2 {
                try await FaultProxy.withProxy(before: origin, .only(.garbage), seed: 99) { proxy in
                    let client = try await RawClient(proxy)
                    try await client.send(Self.get)
                    let bytes = try await client.receiveAll()
                    #expect(!bytes.isEmpty && !bytes.starts(with: Array("HTTP/".utf8)))
                    #expect(proxy.seed == 99)
                    seen.insert(bytes)
                }
            }
            #expect(seen.count == 1)
        }
    }

    @Test("An early response reaches a client that is still sending")
    func earlyAnswer() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("enough", status: 413).with { $0.closesConnection = true }
        } run: { origin in
            try await FaultProxy.withProxy(before: origin, FaultOptions(.none)) { proxy in
                let client = try await RawClient(proxy)
                try await client.send("PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n")
                try await client.send([UInt8](repeating: 7, count: 100_000))
                let answer = String(decoding: try await client.receiveAll(), as: UTF8.self)
                #expect(answer.hasPrefix("HTTP/1.1 413 "))
                #expect(answer.hasSuffix("enough"))
            }
        }
    }

    @Test("A client that ends its sending direction still receives its response")
    func halfClose() async throws {
        try await TestOrigin.withOrigin(handler: .mirror) { origin in
            try await FaultProxy.withProxy(before: origin, FaultOptions(.none)) { proxy in
                let client = try await RawClient(proxy)
                try await client.send("PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\n\r\nok")
                client.stream.shutdownWriting()
                #expect(
                    String(decoding: try await client.receiveAll(), as: UTF8.self).hasSuffix("\r\n\r\nok"))
            }
        }
    }

    @Test("Without an origin, connections are reset and counted")
    func unreachable() async throws {
        let origin = try await TestOrigin.start(.onOwnAddress(3), handler: .bytes(1))
        await origin.stop()
        let proxy = try FaultProxy.start(
            beforeHost: OriginOptions.ownAddress(3), port: origin.port, FaultOptions(.none))
        // The reset may arrive before or after the connection is established.
        await #expect(throws: TransportError.self) { try await RawClient(proxy).receiveAll() }
        #expect(proxy.counts.unreachable == 1)
        await proxy.stop()
    }

    @Test("Stopping ends connections in every state, and closes every descriptor")
    func stops() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/stall" ? OriginResponse().with { $0.delay = .seconds(3600) } : .pattern(1 << 40)
        } run: { origin in
            let proxy = try FaultProxy.start(before: origin, FaultOptions(FaultRates(stall: 50)), seed: 3)
            var clients: [RawClient] = []
            for path in ["/stall", "/endless", "/endless", "/endless", "/endless"] {
                let client = try await RawClient(proxy)
                try await client.send("GET \(path) HTTP/1.1\r\nHost: t\r\n\r\n")
                clients.append(client)
            }
            clients.append(try await RawClient(proxy))
            try await origin.waitForRequests(count: 5)
            try await origin.recorder.waitForConnections(count: 6)
            await proxy.stop()
            await proxy.stop()
            #expect(proxy.counts.openConnections == 0)
            try await origin.recorder.waitForOpenConnections(atMost: 0)
            await #expect(throws: (any Error).self) { try await RawClient(proxy) }
            for client in clients { client.stream.close() }
        }
    }

    @Test("Releasing a proxy closes its connections")
    func deinitEnds() async throws {
        try await TestOrigin.withOrigin(handler: .delay(.seconds(3600))) { origin in
            var proxy: FaultProxy? = try FaultProxy.start(before: origin, FaultOptions(.none))
            let client = try await RawClient(try #require(proxy))
            try await client.send(Self.get)
            try await origin.waitForRequests(count: 1)
            proxy = nil
            try await origin.recorder.waitForOpenConnections(atMost: 0)
            client.stream.close()
        }
    }

    @Test("The description contains the address, the origin and the seed")
    func describesItself() async throws {
        try await TestOrigin.withOrigin(.tls(), handler: .bytes(1)) { origin in
            try await FaultProxy.withProxy(before: origin, FaultOptions(.stormy), seed: 42) { proxy in
                #expect(
                    "\(proxy)"
                        == "fault proxy 127.0.0.1:\(proxy.port) before 127.0.0.1 port \(origin.port), seed 42"
                )
                #expect(proxy.url("x") == "https://127.0.0.1:\(proxy.port)/x")
            }
        }
    }
}
