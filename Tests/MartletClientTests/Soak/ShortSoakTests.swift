import Martlet
import MartletTesting
import MartletTestSupport
import Testing

extension OneAtATime {
    /// The scenarios of `make soak` with small numbers. Counts are asserted; times are measured only in the long form.
    @Suite("Soak, short form", .serialized)
    struct ShortSoakTests {
        /// The seed of the random numbers. It is constant, so that failures are reproducible.
        private static let seed: UInt64 = 0x6D61_7274

        @Test(
            "Concurrent requests all get responses, and nothing stays open",
            arguments: [false, true])
        func inFlight(isSecure: Bool) async throws {
            let count = 150
            let signals = SignalBox()
            try await TestOrigin.withOrigin(isSecure ? .tls() : .plain) { _ in
                try await signals.wait(for: "all are there")
                return .text("held")
            } run: { origin in
                signals.use(origin)
                let session = HTTPSession.trusting(origin) { configuration in
                    configuration.pool.connectionsPerHost = count
                }
                let calls = (0..<count).map { _ in Task { try await session.get(origin.url()).text } }
                try await origin.waitForRequests(count: count, within: TestTimeouts.long)
                #expect(session.diagnostics.runningCalls == count)
                signals.raise("all are there")
                for call in calls {
                    let text = try await call.value
                    #expect(text == "held")
                }
                await session.finishAndInvalidate()
                #expect(session.diagnostics.isIdle)
                #expect(OpenSockets.count(toPort: origin.port) == 0)
            }
        }

        @Test("Requests cancelled at random moments leave nothing open", arguments: [false, true])
        func givenUp(byClock: Bool) async throws {
            try await TestOrigin.withOrigin(handler: StandardRoutes().handler) { origin in
                let session = HTTPSession.own { $0.pool.connectionsPerHost = 6 }
                let others = await withTaskGroup(of: [String].self) { group in
                    for worker in 0..<12 as Range<UInt64> {
                        group.addTask {
                            var generator = SeededGenerator(seed: Self.seed, stream: worker)
                            var others: [String] = []
                            for _ in 0..<30 {
                                do {
                                    try await Self.giveUp(origin, session, byClock, &generator)
                                } catch is CancellationError where !byClock {
                                } catch let error as HTTPError where byClock && error.isTimeout {
                                } catch {
                                    others.append("\(error)")
                                }
                            }
                            return others
                        }
                    }
                    return await group.reduce(into: []) { $0 += $1 }
                }
                #expect(others == [])
                let isIdle = await eventually { session.diagnostics.isIdle }
                #expect(isIdle, "\(session.diagnostics)")
                let answer = try await session.get(origin.url("/bytes/10"))
                #expect(answer.body.count == 10)
                await session.finishAndInvalidate()
                #expect(OpenSockets.count(toPort: origin.port) == 0)
            }
        }

        private static func giveUp(
            _ origin: TestOrigin, _ session: HTTPSession, _ byClock: Bool,
            _ generator: inout SeededGenerator
        ) async throws {
            let paths = [
                "/bytes/100", "/delay/0.002", "/bytes/300000", "/chunked/50000", "/stall", "/stall/2000",
                "/upload",
            ]
            let path = paths[Int(generator.next() % UInt64(paths.count))]
            let body: HTTPBody = path == "/upload" ? .bytes([UInt8](repeating: 7, count: 300_000)) : .none
            let moment = Duration.microseconds(Int64(generator.next() % 5000))
            let options = RequestOptions(timeouts: byClock ? .patient(total: moment) : Timeouts())
            let url = origin.url(path)
            let call = Task { try await session.post(url, body: body, options: options) }
            if !byClock {
                try await Task.sleep(for: moment)
                call.cancel()
            }
            _ = try await call.value
        }

        @Test("Connections that a server closes after fifty requests carry exactly fifty")
        func keepAlive() async throws {
            var options = OriginOptions.plain
            options.limits.requestsPerConnection = 50
            try await TestOrigin.withOrigin(options, handler: .fixed(.text("x"))) { origin in
                let session = HTTPSession.own { $0.pool.connectionsPerHost = 1 }
                for _ in 0..<1000 {
                    let exchange = try await session.get(origin.url())
                    #expect(exchange.metrics.attempts == 1)
                }
                #expect(origin.connectionCount == 20)
                #expect(session.poolStatus.opened == 20)
            }
        }

        @Test(
            "During a storm of faults every call ends in time with the right body or a typed error",
            arguments: [false, true])
        func storm(isSecure: Bool) async throws {
            try await withEnoughTime(from: .milliseconds(500), upTo: .seconds(30)) { span in
                try await survivesFaults(isSecure: isSecure, timeouts: span)
            }
        }

        private func survivesFaults(isSecure: Bool, timeouts span: Duration) async throws -> Bool {
            let options = FaultOptions(FaultRates(reset: 5, stall: 3, truncated: 5, slow: 8, garbage: 5))
            let origin = try await TestOrigin.start(
                isSecure ? .tls() : .plain, handler: StandardRoutes().handler)
            let proxy = try FaultProxy.start(before: origin, options)
            let survivesFaults = await survivesFaults(proxy, origin, timeouts: span)
            await proxy.stop()
            await origin.stop()
            return survivesFaults
        }

        /// Sends calls through a storm of faults.
        ///
        /// - Returns: Whether enough calls got responses. Otherwise, more calls timed out than the proxy delayed, and
        ///   the timeouts were too short for the machine.
        private func survivesFaults(
            _ proxy: FaultProxy, _ origin: TestOrigin, timeouts span: Duration
        ) async -> Bool {
            let session = HTTPSession.trusting(origin) { configuration in
                configuration.timeouts = Timeouts(
                    connect: span * 4, head: span, idle: span, total: TestTimeouts.long)
            }
            let endings = await withTaskGroup(of: [String].self) { group in
                for worker in 0..<10 as Range<UInt64> {
                    group.addTask { await Self.weather(proxy, session, worker) }
                }
                return await group.reduce(into: []) { $0 += $1 }
            }
            let wrong = endings.filter { !["good", "failed", "timed out"].contains($0) }
            let goodCount = endings.count { $0 == "good" }
            let timeoutCount = endings.count { $0 == "timed out" }
            #expect(wrong == [], "\(proxy)")
            #expect(proxy.counts.faultCount > 0, "\(proxy)")
            let isIdle = await eventually { session.diagnostics.isIdle }
            #expect(isIdle, "\(proxy), \(session.diagnostics)")
            await session.finishAndInvalidate()
            #expect(OpenSockets.count(toPort: proxy.port) == 0, "\(proxy)")
            if goodCount > 50 { return true }
            let counts = proxy.counts
            let heldUp = counts.faults[.stall, default: 0] + counts.faults[.slow, default: 0]
            #expect(timeoutCount > heldUp, "\(proxy), \(counts)")
            return false
        }

        /// Returns how twenty calls through a proxy ended: `good`, `failed` or `timed out` with an allowed error, or a
        /// description of the problem.
        private static func weather(
            _ proxy: FaultProxy, _ session: HTTPSession, _ worker: UInt64
        ) async -> [String] {
            var generator = SeededGenerator(seed: seed, stream: worker)
            var endings: [String] = []
            for _ in 0..<20 {
                let size = Int(generator.next() % 30_000)
                let path = (generator.next() % 2 == 0 ? "/bytes/" : "/chunked/") + "\(size)"
                do {
                    let answer = try await session.get(proxy.url(path))
                    let isRight = answer.body == TestPattern.bytes(from: 0, count: size)
                    endings.append(isRight ? "good" : "\(path): wrong body")
                } catch let error as HTTPError where error.timeout != .total {
                    endings.append(error.isTimeout ? "timed out" : "failed")
                } catch {
                    endings.append("\(path): \(error)")
                }
            }
            return endings
        }

        @Test("Calls to a dead host do not delay calls to another host")
        func deadHost() async throws {
            let hole = try await BlackHole()
            defer { hole.close() }
            try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
                let session = HTTPSession.own()
                let dead = (0..<40).map { _ in
                    Task { try await session.get("http://127.0.0.1:\(hole.port)/") }
                }
                #expect(await eventually { session.diagnostics.runningCalls == 40 })
                for _ in 0..<50 {
                    let text = try await session.get(origin.url()).text
                    #expect(text == "x")
                }
                // All of these calls still hang, so no fast call waited for one of them to time out.
                #expect(session.diagnostics.runningCalls == 40)
                for call in dead { call.cancel() }
                #expect(await eventually { session.diagnostics.isIdle })
            }
        }

        @Test("A reader that stops repeatedly stops its sender each time")
        func slowConsumer() async throws {
            let buffered = try KernelBuffers.most()
            let total = 96 << 20 + 2 * buffered
            try await TestOrigin.withOrigin(handler: .bytes(UInt64(total))) { origin in
                let session = HTTPSession.own()
                var mostUnderWay = 0
                let request = try HTTPRequest(.get, origin)
                let count = try await session.stream(request) { _, body in
                    var count = 0
                    var stop = 8 << 20
                    for try await chunk in body {
                        count += chunk.count
                        guard count >= stop else { continue }
                        stop += 16 << 20
                        let sent = await settled { origin.recorder.counts.bytesSent }
                        mostUnderWay = max(mostUnderWay, Int(sent) - count)
                    }
                    return count
                }
                #expect(count == total)
                #expect(mostUnderWay < buffered + 4 << 20)
            }
        }
    }
}
