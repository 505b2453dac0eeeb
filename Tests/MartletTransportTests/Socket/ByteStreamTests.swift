@testable import MartletTransport
import Testing

@Suite("Streams of bytes, over loopback and in memory")
struct ByteStreamTests {
    @Test("What is written on one end is read on the other, both ways", arguments: StreamPair.allCases)
    func bothWays(kind: StreamPair) async throws {
        let (client, server) = try await kind.make()
        try await client.send([1, 2, 3])
        #expect(try await server.receive() == [1, 2, 3])
        try await server.send([4])
        #expect(try await client.receive() == [4])
    }

    @Test(
        "Ten megabytes arrive whole and in order while the writer is held back",
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

    @Test("An edge between the failed call and the wait is not lost", arguments: StreamPair.allCases)
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
        "Bytes that a read left behind are told of, though no edge comes for them",
        arguments: StreamPair.allCases)
    func leftBehind(kind: StreamPair) async throws {
        let (client, server) = try await kind.make()
        try await server.send([1, 2, 3])
        #expect(try await client.receive(atMost: 2) == [1, 2])
        #expect(client.stopObservingIdle())
        #expect(try await client.receive(atMost: 2) == [3])
        // The edge of the bytes may come only now, behind the read that took them: one read of nothing answers it.
        var lateEdges = 0
        while client.stopObservingIdle(), lateEdges < 10 {
            #expect(try client.readsNothing())
            lateEdges += 1
        }
        #expect(lateEdges < 10)
    }

    @Test("The end comes after the bytes, and stays", arguments: StreamPair.allCases)
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

    @Test("A wait ends at its deadline, and the next one works", arguments: StreamPair.allCases)
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
        "A deadline that moves forward and back between waits is kept each time",
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
                        // The last edge may still stand in the latch; a read that finds nothing clears it.
                        #expect(try client.readsNothing())
                    }
                }
            }
        }
    }

    @Test("Interrupting ends a wait, and every later one", arguments: StreamPair.allCases)
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
        "A closed stream refuses to read and to write, and closing twice is closing once",
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
        "Writing to a peer that has reset is an error, and the process lives", arguments: StreamPair.allCases)
    func brokenPipe(kind: StreamPair) async throws {
        let (client, server) = try await kind.make()
        server.reset()
        await #expect(throws: TransportError.self) {
            while true { try await client.send([UInt8](repeating: 0, count: 1024)) }
        }
    }

    @Test(
        "A look at an idle stream tells whether it is fit, without taking anything",
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
        // The edge of the byte may have come twice, and the wait ended before the end of the stream is there.
        let deadline = StreamPair.soon
        while client.probe() == .quiet, MonotonicTime.now() < deadline { await Task.yield() }
        #expect(client.probe() == .unusable)
    }

    @Test("Whoever watches an idle stream is told when its peer ends it", arguments: StreamPair.allCases)
    func watching(kind: StreamPair) async throws {
        let (client, server) = try await kind.make()
        let noticed = OneShot<Void>()
        client.observeIdle(calling: { noticed.fulfill(()) })
        server.close()
        guard case .value = await noticed.wait(until: StreamPair.soon, on: try EventLoop.shared.get()) else {
            Issue.record("nobody was told")
            return
        }
    }

    @Test("A second reader makes the first look again instead of being forgotten")
    func displacement() async throws {
        let (client, server) = try await StreamPair.memory.make()
        let waits = (0..<2).map { _ in
            Task { try? await client.waitUntilReadable(until: StreamPair.soon) }
        }
        try await server.send([1])
        for wait in waits { await wait.value }
        #expect(client.probe() == .unusable)
    }

    @Test("A reader that never catches up does not make a stream in memory keep what was read")
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
