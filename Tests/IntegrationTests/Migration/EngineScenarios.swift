import Foundation
import Martlet
import MartletTestSupport
import MartletTesting
import Synchronization
import Testing

/// The features of MKNetworkKit 1 that its engine has: the queue, the cache and the memory.
enum EngineScenarios {
    static let all = [
        MigrationScenario(
            "K1", "Six requests run concurrently over Wi-Fi and two over a mobile network", concurrency),
        MigrationScenario("K2", "A thumbnail does not wait for uploads, nor an upload for ever", priorities),
        MigrationScenario("K3", "The number of running requests drives an activity indicator", activity),
        MigrationScenario("K4", "A stored response is delivered immediately, and then the new one", deliveries),
        MigrationScenario("K5", "A request without a network is stored, and sent after a restart", offline),
        MigrationScenario("K6", "Identical requests in flight run once", sharing),
        MigrationScenario("K7", "Thumbnails are decoded once and kept within a limit", decodedValues),
        MigrationScenario("K8", "A cache releases memory under memory pressure", memoryPressure),
    ]

    static func concurrency() async throws {
        let gate = Gate()
        try await TestOrigin.withOrigin { _ in
            await gate.pass()
            return .text("x")
        } run: { origin async throws in
            defer { gate.open() }
            let network = ManualNetworkPath(NetworkPath([NetworkInterface(name: "wlan0", kind: .wifi)]))
            let session = HTTPSession.plain {
                $0.pool.connectionsPerHost = 20
                $0.concurrency = ConcurrencyPolicy()
                $0.networkMonitor = network.monitor
            }
            #expect(await eventually { session.poolLimits.connectionsPerHost == 6 })
            let urls = (0..<10).map { origin.url("/\($0)") }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for url in urls { group.addTask { _ = try await session.get(url) } }
                try await origin.waitForRequests(count: 6)
                #expect(await eventually { session.poolStatus.waiting == 4 })
                #expect(origin.requests.count == 6)
                network.set(NetworkPath([NetworkInterface(name: "wwan0", kind: .mobile)]))
                #expect(await eventually { session.poolLimits.connectionsPerHost == 2 })
                gate.open()
                try await group.waitForAll()
            }
            #expect(origin.requests.count == 10)
            #expect(origin.connectionCount == 6)
        }
    }

    static func priorities() async throws {
        for (interval, first) in [(Duration.seconds(3600), "/thumbnail"), (.milliseconds(1), "/upload")] {
            let gate = Gate()
            try await TestOrigin.withOrigin { request in
                if request.path == "/held" { await gate.pass() }
                return .text("x")
            } run: { origin async throws in
                defer { gate.open() }
                let session = HTTPSession.plain {
                    $0.pool.connectionsPerHost = 1
                    $0.pool.agingInterval = interval
                }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    let (held, upload, thumbnail) = (
                        origin.url("/held"), origin.url("/upload"), origin.url("/thumbnail")
                    )
                    group.addTask { _ = try await session.get(held) }
                    try await origin.waitForRequests(count: 1)
                    for count in 1...10 {
                        group.addTask {
                            _ = try await session.post(
                                upload, body: .text("file"), options: RequestOptions(priority: .low))
                        }
                        #expect(await eventually { session.poolStatus.waiting == count })
                    }
                    let start = ContinuousClock.now
                    #expect(await eventually { ContinuousClock.now - start > .milliseconds(100) })
                    group.addTask {
                        _ = try await session.get(thumbnail, options: RequestOptions(priority: .high))
                    }
                    #expect(await eventually { session.poolStatus.waiting == 11 })
                    gate.open()
                    try await group.waitForAll()
                }
                #expect(origin.requests[1].target == first)
                #expect(origin.requests.count == 12)
            }
        }
    }

    static func activity() async throws {
        let gate = Gate()
        try await TestOrigin.withOrigin { _ in
            await gate.pass()
            return .text("x")
        } run: { origin async throws in
            defer { gate.open() }
            let session = HTTPSession.plain()
            var counts = session.activity.makeAsyncIterator()
            #expect(await counts.next() == 0)
            async let exchange = session.get(origin.url())
            #expect(await counts.next() == 1)
            gate.open()
            #expect(try await exchange.text == "x")
            #expect(await counts.next() == 0)
            await session.finishAndInvalidate()
            #expect(await counts.next() == nil)
        }
    }

    static func deliveries() async throws {
        let counter = OriginHandler.counter()
        try await TestOrigin.withOrigin { request in
            var response = try await counter.respond(to: request)
            response.headers["Cache-Control"] = "max-age=600"
            response.headers["Age"] = "900"
            return response
        } run: { origin async throws in
            let session = HTTPSession.plain { $0.cache = .memoryOnly() }
            for expected in [["1 false false"], ["1 true true", "2 false false"]] {
                var found: [String] = []
                for try await delivery in session.deliveries(for: origin.url()) {
                    found.append("\(delivery.exchange.text) \(delivery.isFromCache) \(delivery.isPreview)")
                }
                #expect(found == expected)
            }
            #expect(origin.requests.count == 2)
        }
    }

    static func offline() async throws {
        // No other test takes ports of this address.
        let address = "127.0.72.1"
        let gone = try await TestOrigin.start(
            OriginOptions(binding: .address(address, port: 0)), handler: .status(200))
        await gone.stop()
        try await withDirectory { directory async throws in
            let request = try HTTPRequest(method: .post, url: gone.url("/notes"))
            let session = HTTPSession.plain()
            let queue = try await OfflineQueue(session: session, directory: directory.file("queue"))
            let outcome = try await session.send(request, body: .text("note"), whenOffline: .enqueue)
            guard case .queued(let ticket) = outcome else {
                Issue.record("not stored: \(outcome)")
                return
            }
            await queue.close()

            let received = Mutex<[[String?]]>([])
            let origin = try await TestOrigin.start(
                OriginOptions(binding: .address(address, port: gone.port))
            ) { request in
                let text = try await request.collectText()
                received.withLock { $0.append([text, request.headers["Idempotency-Key"]]) }
                return .text("stored")
            }
            let other = HTTPSession.plain()
            let next = try await OfflineQueue(session: other, directory: directory.file("queue"))
            try await next.drained
            #expect(received.withLock { $0 } == [["note", ticket.idempotencyKey]])
            let sent = try await other.send(request, body: .text("another"), whenOffline: .enqueue)
            guard case .response(let exchange) = sent else {
                Issue.record("not sent: \(sent)")
                return
            }
            #expect(exchange.text == "stored")
            #expect(await next.entries.isEmpty)
            await next.close()
            await origin.stop()
        }
    }

    static func sharing() async throws {
        let gate = Gate()
        let versions = OriginHandler.versions("max-age=600")
        try await TestOrigin.withOrigin { request in
            await gate.pass()
            return try await versions.respond(to: request)
        } run: { origin async throws in
            defer { gate.open() }
            let session = HTTPSession.plain { $0.cache = .memoryOnly() }
            let url = origin.url()
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<20 { group.addTask { try await session.get(url).text } }
                #expect(await eventually { session.runningCallCount == 20 })
                gate.open()
                for try await text in group { #expect(text == "1") }
            }
            #expect(origin.requests.count == 1)
        }
    }

    static func decodedValues() async throws {
        try await TestOrigin.withOrigin { request in
            OriginResponse(
                headers: ["Cache-Control": "max-age=600"], body: .text(String(request.path.dropFirst())))
        } run: { origin async throws in
            let cache = ResponseCache.memoryOnly()
            let session = HTTPSession.plain { $0.cache = cache }
            let count = Mutex(0)
            let values = try DecodedCache<Int>(session: session, limit: 10, cost: { $0 }) { exchange in
                count.withLock { $0 += 1 }
                return try #require(Int(exchange.text))
            }
            let url = origin.url("/6")
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<20 { group.addTask { try await values.value(for: url) } }
                for try await value in group { #expect(value == 6) }
            }
            #expect(count.withLock { $0 } == 1)
            #expect(origin.requests.count == 1)
            #expect(try await values.value(for: origin.url("/7")) == 7)
            #expect(values.count == 1)
            #expect(values.cost == 7)
            await cache.remove(try HTTPURL(origin.url("/7")))
            #expect(await eventually { values.count == 0 })
        }
    }

    static func memoryPressure() async throws {
        try await withDirectory { directory async throws in
            try await TestOrigin.withOrigin { _ in
                OriginResponse(headers: ["Cache-Control": "max-age=600"], body: .pattern(2000))
            } run: { origin async throws in
                let pressure = ManualMemoryPressure()
                var options = ResponseCache.Options()
                options.memoryPressure = pressure.source
                let cache = try ResponseCache.at(directory.file("cache"), options: options)
                let session = HTTPSession.plain { $0.cache = cache }
                for number in 0..<20 { _ = try await session.get(origin.url("/\(number)")) }
                let full = cache.statistics.memoryBytes
                #expect(full >= 40_000)
                pressure.set(.warning)
                #expect(await eventually { cache.statistics.memoryBytes <= full / 2 })
                pressure.set(.critical)
                #expect(await eventually { cache.statistics.memoryBytes == 0 })
                for number in 0..<20 {
                    let exchange = try await session.get(origin.url("/\(number)"))
                    #expect(exchange.source == .cache)
                    #expect(exchange.bytes == TestPattern.bytes(from: 0, count: 2000))
                }
            }
        }
    }
}
