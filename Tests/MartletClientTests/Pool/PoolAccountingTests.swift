import Martlet
import MartletTesting
import MartletTestSupport
import Synchronization
import Testing

extension OneAtATime {
    /// Thousands of concurrent requests. The tests run one at a time.
    @Suite("Thousands of requests over few connections", .serialized)
    struct PoolAccountingTests {
        /// The highest observed value.
        private final class Peak: Sendable {
            private let value = Mutex(0)
            func note(_ count: Int) { value.withLock { $0 = max($0, count) } }
            var most: Int { value.withLock { $0 } }
        }

        /// The tasks by request number, so that the server can cancel them.
        private final class Calls: Sendable {
            private let tasks = Mutex<[String: Task<Bool, any Error>]>([:])
            func keep(_ task: Task<Bool, any Error>, as name: String) { tasks.withLock { $0[name] = task } }
            func cancel(_ name: String) { tasks.withLock { $0[name] }?.cancel() }
        }

        private static func isAtRest(_ status: PoolStatus) -> Bool {
            status.leased == 0 && status.dialing == 0 && status.waiting == 0
        }

        @Test("Without cancellations the server never sees more connections than allowed, and each is reused")
        func limitHolds() async throws {
            let peak = Peak()
            let recorder = Mutex<OriginRecorder?>(nil)
            try await TestOrigin.withOrigin { request in
                peak.note(recorder.withLock { $0 }?.counts.openConnections ?? .max)
                return .text(request.path)
            } run: { origin in
                recorder.withLock { $0 = origin.recorder }
                let session = HTTPSession.own { configuration in
                    configuration.pool.connectionsPerHost = 64
                    configuration.pool.totalConnections = 64
                    configuration.pool.idleConnectionsPerHost = 64
                }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<2_000 {
                        group.addTask {
                            let exchange = try await session.get(origin.url("/\(number)"))
                            #expect(exchange.text == "/\(number)")
                        }
                    }
                    try await group.waitForAll()
                }
                #expect(peak.most <= 64)
                #expect(origin.connectionCount <= 64)
                #expect(origin.recorder.counts.requests == 2_000)
                #expect(PoolAccountingTests.isAtRest(session.poolStatus))
                #expect(session.poolStatus.idle == origin.connectionCount)
            }
        }

        @Test(
            "10,000 requests on 64 connections with random cancellations end with zero counters and no open descriptor")
        func randomCancels() async throws {
            let calls = Calls()
            let peak = Peak()
            let descriptors = Peak()
            let sessions = Mutex<HTTPSession?>(nil)
            let port = Mutex(0)
            try await TestOrigin.withOrigin { request in
                if let status = sessions.withLock({ $0 })?.poolStatus {
                    peak.note(status.leased + status.idle + status.dialing)
                }
                if request.path.hasPrefix("/look") {
                    descriptors.note(OpenSockets.simultaneousCount(toPort: port.withLock { $0 }))
                }
                if request.path.hasPrefix("/cancel") { calls.cancel(request.path) }
                if request.path.hasPrefix("/stall") {
                    calls.cancel(request.path)
                    throw OriginFault(.stall)
                }
                return .text(request.path)
            } run: { origin in
                let session = HTTPSession.own { configuration in
                    configuration.pool.connectionsPerHost = 64
                    configuration.pool.totalConnections = 64
                    configuration.pool.idleConnectionsPerHost = 64
                }
                sessions.withLock { $0 = session }
                port.withLock { $0 = origin.port }
                var random = SplitMix64(state: 0x6D61_7274_6C65_7400)
                var tasks: [Task<Bool, any Error>] = []
                for number in 0..<10_000 {
                    let kind = random.next() % 16
                    let yields = random.next() % 64
                    let path =
                        switch kind {
                        case 0: "/cancel/\(number)"
                        case 1: "/stall/\(number)"
                        case 2 where number % 8 == 0: "/look/\(number)"
                        default: "/\(number)"
                        }
                    let url = origin.url(path)
                    let task = Task {
                        let exchange = try await session.get(url)
                        return exchange.text == path
                    }
                    calls.keep(task, as: path)
                    tasks.append(task)
                    if kind == 3 { task.cancel() }
                    if kind == 4 {
                        Task {
                            for _ in 0..<yields { await Task.yield() }
                            task.cancel()
                        }
                    }
                }
                var answered = 0
                var cancelled = 0
                for task in tasks {
                    do {
                        #expect(try await task.value)
                        answered += 1
                    } catch is CancellationError {
                        cancelled += 1
                    }
                }
                #expect(answered + cancelled == 10_000)
                #expect(answered > 5_000)
                #expect(cancelled > 500)
                #expect(peak.most <= 64)
                // A slot in the pool is released just before its descriptor is closed, so the next connection may open
                // in between.
                #expect(descriptors.most <= 96)
                #expect(await eventually { PoolAccountingTests.isAtRest(session.poolStatus) })
                #expect(session.runningCallCount == 0)
                #expect(
                    await eventually { OpenSockets.count(toPort: origin.port) == session.poolStatus.idle })
                await session.finishAndInvalidate()
                sessions.withLock { $0 = nil }
                #expect(session.poolStatus.idle == 0)
                #expect(await eventually { OpenSockets.count(toPort: origin.port) == 0 })
                try await origin.recorder.waitForOpenConnections(atMost: 0)
            }
        }

        @Test("The total limit applies across hosts")
        func totalLimit() async throws {
            let peak = Peak()
            let recorder = Mutex<OriginRecorder?>(nil)
            try await TestOrigin.withOrigin { request in
                peak.note(recorder.withLock { $0 }?.counts.openConnections ?? .max)
                return .text("x")
            } run: { origin in
                recorder.withLock { $0 = origin.recorder }
                let session = HTTPSession.own { configuration in
                    configuration.resolver = ListResolver(("127.0.0.1", origin.port))
                    configuration.pool.connectionsPerHost = 4
                    configuration.pool.totalConnections = 8
                }
                let sampled = Peak()
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<600 {
                        group.addTask {
                            _ = try await session.get("http://host\(number % 6).example:\(origin.port)/")
                            let status = session.poolStatus
                            sampled.note(status.leased + status.idle + status.dialing)
                        }
                    }
                    try await group.waitForAll()
                }
                #expect(sampled.most <= 8)
                #expect(origin.recorder.counts.requests == 600)
                #expect(await eventually { PoolAccountingTests.isAtRest(session.poolStatus) })
            }
        }
    }
}
