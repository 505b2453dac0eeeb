import MartletContent
import Martlet
import MartletTesting
import MartletTransport
import Testing

@testable import MartletOffline

@Suite("Offline queue: bounds")
struct BoundsTests {
    @Test("Bodies inside records count once, so that a queue holds as much as its limit says")
    func inlineCountsOnce() async throws {
        try await OfflineScene.run { scene in
            let queue = try await scene.queue {
                $0.sendsRequests = false
                $0.limits.bytes = .kibibytes(100)
            }
            let body = HTTPBody.bytes(Array(repeating: 65, count: 10_000))
            for _ in 0..<9 { try await queue.submit(try scene.request(), body: body) }
            let error = await #expect(throws: HTTPError.self) {
                for _ in 0..<2 { try await queue.submit(try scene.request(), body: body) }
            }
            #expect(error?.code == .limitExceeded)
            await queue.close()
        }
    }

    @Test("Requests without bodies fill a queue by the size of their records")
    func recordsCount() async throws {
        try await OfflineScene.run { scene in
            let queue = try await scene.queue {
                $0.sendsRequests = false
                $0.limits.bytes = .kibibytes(100)
            }
            var request = try scene.request()
            request.headerFields[.userAgent] = String(repeating: "a", count: 30_000)
            for _ in 0..<3 { try await queue.submit(request) }
            let error = await #expect(throws: HTTPError.self) { try await queue.submit(request) }
            #expect(error?.code == .limitExceeded)
            #expect(try scene.directory.names().count == 3)
            await queue.close()
        }
    }

    @Test("The stored response of a dead letter counts until it is dropped")
    func lettersCount() async throws {
        try await OfflineScene.run { _ in
            .text(String(repeating: "no ", count: 20_000), status: 400)
        } _: { scene in
            let queue = try await scene.queue { $0.limits.bytes = .kibibytes(100) }
            for _ in 0..<2 {
                try await queue.submit(try scene.request())
                try await queue.drained
            }
            let error = await #expect(throws: HTTPError.self) { try await queue.submit(try scene.request()) }
            #expect(error?.code == .limitExceeded)
            for entry in await queue.entries { try await queue.drop(entry.ticket.id) }
            #expect(await queue.storedByteCount == 0)
            #expect(await queue.requestCount == 0)
            await queue.close()
        }
    }

    @Test("A request with a key, URL or name too long to be read again is rejected on submission")
    func longTexts() async throws {
        try await OfflineScene.run { scene in
            let queue = try await scene.queue { $0.sendsRequests = false }
            let long = String(repeating: "k", count: 2 << 20)
            await #expect(throws: HTTPError.self) {
                try await queue.submit(try scene.request(), as: OfflineSubmission(key: .value(long)))
            }
            await #expect(throws: HTTPError.self) {
                try await queue.submit(try scene.request(), body: .bytes([1], contentType: long))
            }
            var request = try scene.request()
            request.headerFields[try #require(HTTPField.Name(long))] = "x"
            await #expect(throws: HTTPError.self) { try await queue.submit(request) }
            await #expect(throws: HTTPError.self) {
                try await queue.submit(try scene.request(.post, "/" + long))
            }
            #expect(try scene.directory.names() == [])
            await queue.close()
        }
    }

    @Test("A hundred thousand requests in one lane are added, sent and dropped without scans of the lane")
    func manyInALane() {
        let clock = ContinuousClock()
        let count = UInt64(100_000)
        var bench = ReplayBench(sendsRequests: false)
        let adding = clock.measure { for number in 1...count { bench.add(number) } }
        let dropping = clock.measure {
            for number in (1...count).reversed() {
                _ = bench.machine.drop(OfflineID(number), now: bench.now)
                _ = bench.machine.settled(OfflineID(number), isResting: false, now: bench.now)
            }
        }
        var sending = ReplayBench()
        for number in 1...count { sending.add(number) }
        let delivering = clock.measure { for number in 1...count { sending.finish(number) } }
        // This takes seconds at most; a scan of the lane for each request would take minutes.
        #expect(max(adding, dropping, delivering) < .seconds(60))
        #expect(sending.begun.count == Int(count))
        #expect(bench.machine.isDrained)
    }
}
