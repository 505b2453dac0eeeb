@testable import MartletTransport
import Testing

@Suite("Byte streams over loopback and in memory")
struct ByteStreamTests {
    @Test("Bytes that are written on one end are read on the other, in both directions", arguments: StreamPair.allCases)
    func bothWays(kind: StreamPair) async throws {
        let (client, server) = try await kind.make()
        try await client.send([1, 2, 3])
        #expect(try await server.receive() == [1, 2, 3])
        try await server.send([4])
        #expect(try await client.receive() == [4])
    }

    @Test(
        "Ten megabytes arrive complete and in order under backpressure",
        arguments: StreamPair.allCases)
    func bulk(kind: StreamPair) async throws {
        let (client, server) = try await kind.make()
        let bytes = BytePattern.bytes(10_000_000, seed: 7)
        async let sending: Void = client.send(bytes)
        var received: [UInt8] = []
        received.reserveCapacity(bytes.count)
        while received.count < bytes.count, let piece = try await server.receive() { received += piece }
        try await sending
        #expect(received == bytes)
    }

    @Test("Bytes that arrive between a failed read and its wait wake the reader", arguments: StreamPair.allCases)
    func edges(kind: StreamPair) async throws {
        let (client, server) = try await kind.make()
        for round in 0..<2000 {
            let byte = UInt8(truncatingIfNeeded: round)
            async let sending: Void = client.send([byte])
            #expect(try await server.receive() == [byte])
            try await sending
        }
    }

    @Test(
        "Bytes that a read did not consume wake the next wait without a new edge",
        arguments: StreamPair.allCases)
    func unconsumed(kind: StreamPair) async throws {
        let (client, server) = try await kind.make()
        try await server.send([1, 2, 3])
        #expect(try await client.receive(atMost: 2) == [1, 2])
        #expect(client.stopObservingIdle())
        #expect(try await client.receive(atMost: 2) == [3])
        // The edge for the bytes may arrive only after the read that consumed them. An empty read clears it.
        var lateEdges = 0
        while client.stopObservingIdle(), lateEdges < 10 {
            #expect(try client.readsNothing())
            lateEdges += 1
        }
        #expect(lateEdges < 10)
    }

    @Test("The end follows the bytes and persists", arguments: StreamPair.allCases)
    func end(kind: StreamPair) async throws {
        let (client, server) = try await kind.make()
        try await client.send([9])
        client.shutdownWriting()
        #expect(try await server.receive() == [9])
        #expect(try await server.receive() == nil)
        #expect(try await server.receive() == nil)
        try await server.send([8])
        #expect(try await client.receive() == [8])
    }

    @Test("A wait ends at its deadline, and the next wait works", arguments: StreamPair.allCases)
    func deadlines(kind: StreamPair) async throws {
        let (client, server) = try await kind.make()
        _ = try? await client.waitUntilReadable(until: MonotonicTime.now())
        let deadline = MonotonicTime.now().advanced(by: .milliseconds(5))
        let error = await #expect(throws: TransportError.self) {
            try await client.waitUntilReadable(until: deadline)
        }
        guard case .timedOut = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(MonotonicTime.now() >= deadline)
        try await server.send([1])
        #expect(try await client.receive() == [1])
    }

    @Test(
        "A deadline that moves forward and back between waits is honored each time",
        arguments: StreamPair.allCases)
    func movingDeadlines(kind: StreamPair) async throws {
        let (client, server) = try await kind.make()
        for milliseconds in [3_600_000, 2, 3_600_000, 1] {
            if milliseconds > 1000 {
                async let waiting: Void = client.waitUntilReadable(
                    until: MonotonicTime.now().advanced(by: .milliseconds(milliseconds)))
                try await server.send([1])
                try await waiting
                #expect(try await client.receive() == [1])
            } else {
                await #expect(throws: TransportError.self) {
                    while true {
                        try await client.waitUntilReadable(
                            until: MonotonicTime.now().advanced(by: .milliseconds(milliseconds)))
                        // The last edge may still be latched. An empty read clears it.
                        #expect(try client.readsNothing())
                    }
                }
            }
        }
    }

    @Test("An interrupt ends a wait and every later one", arguments: StreamPair.allCases)
    func interruption(kind: StreamPair) async throws {
        let (client, server) = try await kind.make()
        async let waiting: Void = client.waitUntilReadable(until: StreamPair.soon)
        client.interrupt()
        var causes: [TransportError] = []
        do { try await waiting } catch let error as TransportError { causes.append(error) }
        do { try await client.waitUntilReadable(until: StreamPair.soon) } catch { causes.append(error) }
        #expect(causes.count == 2)
        for cause in causes {
            guard case .interrupted = cause else {
                Issue.record("\(cause)")
                continue
            }
        }
        withExtendedLifetime(server) {}
    }

    @Test(
        "A closed stream rejects reads and writes, and closing twice has no further effect",
        arguments: StreamPair.allCases)
    func closing(kind: StreamPair) async throws {
        let (client, server) = try await kind.make()
        client.close()
        client.close()
        await #expect(throws: TransportError.self) { try await client.receive() }
        await #expect(throws: TransportError.self) { try await client.send([1]) }
        #expect(client.probe() == .unusable)
        #expect(try await server.receive() == nil)
    }

    @Test(
        "Writing to a peer that has reset is an error and does not end the process", arguments: StreamPair.allCases)
    func brokenPipe(kind: StreamPair) async throws {
        let (client, server) = try await kind.make()
        server.reset()
        await #expect(throws: TransportError.self) {
            while true { try await client.send([UInt8](repeating: 0, count: 1024)) }
        }
    }

    @Test("Bytes written before a reset are read before its error", arguments: StreamPair.allCases)
    func bytesBeforeReset(kind: StreamPair) async throws {
        let (client, server) = try await kind.make()
        try await server.send([1, 2, 3])
        server.reset()
        #expect(try await client.receive() == [1, 2, 3])
        await #expect(throws: TransportError.self) { try await client.receive() }
    }

    @Test(
        "Probing an idle stream reports whether it is usable without consuming bytes",
        arguments: StreamPair.allCases)
    func probing(kind: StreamPair) async throws {
        let (client, server) = try await kind.make()
        #expect(client.probe() == .quiet)
        try await server.send([5])
        try await client.waitUntilReadable(until: StreamPair.soon)
        #expect(client.probe() == .unusable)
        #expect(try await client.receive() == [5])
        #expect(client.probe() == .quiet)
        server.close()
        try await client.waitUntilReadable(until: StreamPair.soon)
        // The edge for the byte may arrive twice and end the wait before the end of the stream arrives.
        let deadline = StreamPair.soon
        while client.probe() == .quiet, MonotonicTime.now() < deadline { await Task.yield() }
        #expect(client.probe() == .unusable)
    }

    @Test("The observer of an idle stream is notified when the peer ends it", arguments: StreamPair.allCases)
    func watching(kind: StreamPair) async throws {
        let (client, server) = try await kind.make()
        let noticed = OneShot<Void>()
        client.observeIdle(calling: { noticed.fulfill(()) })
        server.close()
        guard case .value = await noticed.wait(until: StreamPair.soon, on: try EventLoop.shared.get()) else {
            Issue.record("the observer was not notified")
            return
        }
    }

    @Test("A second reader resumes the first instead of displacing it")
    func displacement() async throws {
        let (client, server) = try await StreamPair.memory.make()
        let waits = (0..<2).map { _ in
            Task { try? await client.waitUntilReadable(until: StreamPair.soon) }
        }
        try await server.send([1])
        for wait in waits { await wait.value }
        #expect(client.probe() == .unusable)
    }

    @Test("A memory stream with a slow reader does not retain bytes that were read")
    func slowReader() async throws {
        let (client, server) = MemoryStream.pair(capacity: 1_000, loop: try EventLoop.shared.get())
        try await server.send([UInt8](repeating: 0, count: 1_000))
        for _ in 0..<1_000 {
            #expect(try await client.receive(atMost: 10)?.count == 10)
            try await server.send([UInt8](repeating: 1, count: 10))
            #expect(client.storedByteCount <= 2_000)
        }
    }
}
