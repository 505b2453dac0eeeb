import FoundationEssentials
import MartletTesting
import MartletTransport
import Testing

@Suite("Lifetime and request counts")
struct LifetimeTests {
    @Test("Stopping ends connections in every state")
    func stopEndsEverything() async throws {
        let origin = try await TestOrigin.start { request in
            switch request.path {
            case "/delay": return OriginResponse().with { $0.delay = .seconds(3600) }
            case "/stall": throw OriginFault(.stall)
            case "/endless": return .pattern(1 << 40)
            case "/upload": return .text("\(try await request.collectBody().count)")
            default:
                try await Task.sleep(for: .seconds(3600))
                return .text("late")
            }
        }
        var clients: [RawClient] = []
        for path in ["/delay", "/stall", "/endless", "/sleep"] {
            let client = try await RawClient(origin)
            try await client.send("GET \(path) HTTP/1.1\r\nHost: t\r\n\r\n")
            clients.append(client)
        }
        let uploader = try await RawClient(origin)
        try await uploader.send("PUT /upload HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\n123")
        let idle = try await RawClient(origin)
        try await origin.waitForRequests(count: 5)
        try await origin.recorder.waitForConnections(count: 6)
        await origin.stop()
        #expect(origin.openConnectionCount == 0)
        for client in clients + [uploader, idle] {
            // Bytes in transit may be read first. Then the stream ends, or it is reset if bytes were unread.
            _ = try? await client.receiveAll()
            #expect(client.stream.probe() == .unusable)
        }
    }

    @Test("A stopped origin refuses connections and frees its port")
    func stopFreesThePort() async throws {
        let origin = try await TestOrigin.start(.onOwnAddress(1)) { _ in .text("x") }
        await origin.stop()
        await origin.stop()
        await #expect(throws: (any Error).self) { try await RawClient(origin) }
        let again = try await TestOrigin.start(.onOwnAddress(1, port: origin.port)) { _ in .text("y") }
        #expect(again.port == origin.port)
        await again.stop()
    }

    @Test("An origin stops when its scope throws")
    func scopeStops() async throws {
        struct Failure: Error {}
        var kept: TestOrigin?
        await #expect(throws: Failure.self) {
            try await TestOrigin.withOrigin(.onOwnAddress(2), handler: .fixed(.text("x"))) { origin in
                kept = origin
                throw Failure()
            }
        }
        let origin = try #require(kept)
        await #expect(throws: (any Error).self) { try await RawClient(origin) }
    }

    @Test("A client that disconnects cancels its handler")
    func departureCancels() async throws {
        try await TestOrigin.withOrigin { _ in
            try await Task.sleep(for: .seconds(3600))
            return .text("late")
        } run: { origin in
            let client = try await RawClient(origin)
            try await client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n")
            try await origin.waitForRequests(count: 1)
            client.close()
            try await origin.recorder.waitForOpenConnections(atMost: 0)
            #expect(origin.recorder.counts.responses == 0)
        }
    }

    @Test("A client that ended its sending direction still receives its response")
    func halfCloseIsAnswered() async throws {
        try await TestOrigin.withOrigin { request in
            .text(try await request.collectText())
        } run: { origin in
            let client = try await RawClient(origin)
            try await client.send("PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\n\r\nok")
            client.stream.shutdownWriting()
            #expect(String(decoding: try await client.receiveAll(), as: UTF8.self).hasSuffix("\r\n\r\nok"))
        }
    }

    @Test("The request count is updated and can be awaited without polling")
    func recorderCounts() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("12345")
        } run: { origin in
            async let requests = origin.waitForRequests(count: 2)
            let client = try await RawClient(origin)
            _ = try await client.get("/a", fields: "X-One: 1\r\n")
            _ = try await client.get("/b")
            let recorded = try await requests
            #expect(recorded.map(\.target) == ["/a", "/b"])
            #expect(recorded[0].headers["x-one"] == "1")
            client.close()
            try await origin.recorder.waitForOpenConnections(atMost: 0)
            let counts = origin.recorder.counts
            #expect(counts.connections == 1)
            #expect(counts.responses == 2)
            #expect(counts.bytesReceived == 72)
        }
    }

    @Test("Waiting for missing requests ends at the time limit and reports the received ones")
    func recorderTimesOut() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            await #expect(
                throws: OriginError.timedOut(
                    waitingFor: "1 requests; there were 0 connections (0 open), 0 requests, 0 bytes")
            ) {
                try await origin.waitForRequests(count: 1, within: .milliseconds(5))
            }
        }
    }

    @Test("A wait ends when its task is cancelled")
    func recorderWaitIsCancelled() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            let waiting = Task { try await origin.waitForRequests(count: 1, within: .seconds(3600)) }
            waiting.cancel()
            await #expect(throws: CancellationError.self) { try await waiting.value }
        }
    }

    @Test("A connection closes after the configured number of requests and announces it")
    func limitsRequests() async throws {
        var options = OriginOptions.plain
        options.limits.requestsPerConnection = 2
        try await TestOrigin.withOrigin(options, handler: .fixed(.text("x"))) { origin in
            let client = try await RawClient(origin)
            #expect(try await client.get("/").field("Connection") == nil)
            #expect(try await client.get("/").field("Connection") == "close")
            #expect(try await client.receive() == nil)
        }
    }

    @Test("Closing the connections leaves the origin listening")
    func endsConnections() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            let client = try await RawClient(origin)
            _ = try await client.get("/")
            origin.closeAllConnections()
            #expect(try await client.receive() == nil)
            let fresh = try await RawClient(origin)
            #expect(try await fresh.get("/").text == "x")
        }
    }

    @Test("An origin listens on IPv6 and has an IPv6 URL")
    func listensOnIPv6() async throws {
        try await TestOrigin.withOrigin(OriginOptions(binding: .ipv6(port: 0)), handler: .fixed(.text("six"))) {
            origin in
            #expect(origin.url("x") == "http://[::1]:\(origin.port)/x")
            let fresh = try await RawClient(origin)
            #expect(try await fresh.get("/").text == "six")
        }
    }

    @Test("An origin listens on a Unix domain socket and removes its file")
    func listensOnUnixSocket() async throws {
        let path =
            FileManager.default.temporaryDirectory.path + "/martlet-\(UInt64.random(in: 0 ... .max)).sock"
        try await TestOrigin.withOrigin(.unix(path: path), handler: .fixed(.text("unix"))) { origin in
            let fresh = try await RawClient(origin)
            #expect(try await fresh.get("/").text == "unix")
        }
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test("An address that is in use or invalid is a specific error")
    func reportsBadAddresses() async throws {
        await #expect(throws: OriginError.invalidAddress("nowhere port 1")) {
            try await TestOrigin.start(OriginOptions(binding: .address("nowhere", port: 1))) { _ in .text("x")
            }
        }
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            await #expect(throws: OriginError.self) {
                try await TestOrigin.start(OriginOptions(binding: .ipv4(port: origin.port))) { _ in .text("x")
                }
            }
        }
    }
}
