import MartletConditions
import MartletCaching
import MartletCore
import MartletDiagnostics
import MartletTesting
import MartletTestSupport
import Testing

extension OneAtATime {
    @Suite("Bandwidth limits")
    struct BandwidthTests {
        private static let size = 900_000
        private static let perSecond = 1_000_000

        /// The shortest time for the bytes: the burst of 50 ms is free, with a tolerance of 5 %.
        private static func shortest(_ byteCount: Int, at rate: Int) -> Duration {
            .seconds(0.95 * (Double(byteCount) / Double(rate) - 0.05))
        }

        enum Way: String, CaseIterable, Sendable {
            case collected, downloaded, sentBytes, sentStream, perHost, perCall
        }

        @Test(
            "Uploads and downloads keep to the rate of a session, of a host and of a call",
            arguments: Way.allCases)
        func keepsRate(_ way: Way) async throws {
            let directory = try TemporaryDirectory()
            let (size, rate) = (BandwidthTests.size, BandwidthRate.bytesPerSecond(BandwidthTests.perSecond))
            try await TestOrigin.withOrigin { request in
                var count = 0
                for try await chunk in request.body { count += chunk.count }
                return count > 0 ? .text("\(count)") : .pattern(UInt64(size))
            } run: { origin async throws in
                let session = HTTPSession.own { configuration in
                    switch way {
                    case .collected, .downloaded: configuration.bandwidth.total.download = rate
                    case .sentBytes, .sentStream: configuration.bandwidth.total.upload = rate
                    case .perHost: configuration.bandwidth.perHost.download = rate
                    case .perCall: break
                    }
                }
                let begun = ContinuousClock.now
                switch way {
                case .downloaded:
                    try await session.download(
                        HTTPRequest(method: .get, url: origin.url()), to: directory.path("file"))
                case .sentBytes, .sentStream:
                    let bytes = TestPattern.bytes(from: 0, count: size)
                    let answer = try await session.send(
                        try HTTPRequest(.put, origin),
                        body: way == .sentBytes ? .bytes(bytes) : .pattern(UInt64(size)))
                    #expect(answer.text == "\(size)")
                case .perCall:
                    var options = RequestOptions()
                    options.bandwidth.download = rate
                    let answer = try await session.send(try HTTPRequest(.get, origin), options: options)
                    #expect(TestPattern.firstMismatch(in: answer.body, at: 0) == nil)
                case .collected, .perHost:
                    let answer = try await session.get(origin.url())
                    #expect(answer.body.count == size)
                    #expect(TestPattern.firstMismatch(in: answer.body, at: 0) == nil)
                }
                let taken = ContinuousClock.now - begun
                #expect(taken >= BandwidthTests.shortest(size, at: BandwidthTests.perSecond))
                #expect(taken < TestTimeouts.ending)
                #expect(session.core.bandwidth.waitingCount == 0)
            }
        }

        @Test("Concurrent transfers share the session's rate, over TLS too")
        func shared() async throws {
            try await TestOrigin.withOrigin(.tls()) { _ in
                .pattern(300_000)
            } run: { origin async throws in
                let session = HTTPSession.trusting(origin) {
                    $0.bandwidth.total.download = .bytesPerSecond(1_000_000)
                }
                let url = origin.url()
                let begun = ContinuousClock.now
                try await withThrowingTaskGroup(of: Int?.self) { group in
                    for _ in 1...4 {
                        group.addTask {
                            TestPattern.firstMismatch(in: try await session.get(url).body, at: 0)
                        }
                    }
                    for try await mismatch in group { #expect(mismatch == nil) }
                }
                #expect(ContinuousClock.now - begun >= BandwidthTests.shortest(1_200_000, at: 1_000_000))
            }
        }

        @Test("Changing the limits applies to running calls, whether the limits rise or fall")
        func change() async throws {
            try await TestOrigin.withOrigin { _ in
                .pattern(1 << 40)
            } run: { origin async throws in
                let session = HTTPSession.own { $0.bandwidth.total.download = .bytesPerSecond(2_000) }
                let task = await session.task(
                    for: try HTTPRequest(.get, origin),
                    options: RequestOptions(bodyLimit: .gibibytes(1 << 20)))
                _ = try await task.response
                let progress = task.downloadProgress
                session.setBandwidthLimits(.none)
                #expect(
                    await eventually { progress.current.completedByteCount > 4 << 20 })
                session.setBandwidthLimits(
                    BandwidthLimits(total: BandwidthLimit(download: .bytesPerSecond(1_000))))
                // The read that was running when the limit was set completes. The limit applies to the next one.
                #expect(await eventually { session.core.bandwidth.waitingCount == 1 })
                let start = ContinuousClock.now
                let before = progress.current.completedByteCount
                _ = await settledFor(.milliseconds(400))
                let moved = progress.current.completedByteCount - before
                // The rate is 1,000 bytes per second, with a burst of one second.
                #expect(Double(moved) < 1_100 + 1_000 * ((ContinuousClock.now - start) / .seconds(1)))
                await task.cancel()
                await #expect(throws: CancellationError.self) { try await task.value }
            }
        }

        @Test("The idle timeout does not count while a bandwidth limit delays a body", arguments: [false, true])
        func idleClock(isUpload: Bool) async throws {
            try await TestOrigin.withOrigin { request in
                var count = 0
                for try await chunk in request.body { count += chunk.count }
                return isUpload ? .text("\(count)") : .bytes(Array(repeating: 7, count: 8))
            } run: { origin async throws in
                let rate = BandwidthRate(bytesPerSecond: 10, burst: 1)
                let session = HTTPSession.own {
                    $0.bandwidth.total = BandwidthLimit(
                        upload: isUpload ? rate : nil, download: isUpload ? nil : rate)
                    $0.timeouts.idle = .milliseconds(40)
                }
                let answer = try await session.send(
                    try HTTPRequest(isUpload ? .put : .get, origin),
                    body: isUpload ? .bytes(Array(repeating: 7, count: 8)) : .none)
                #expect(isUpload ? answer.text == "8" : answer.body.count == 8)
            }
        }

        @Test(
            "A call that waits for bandwidth ends immediately on cancellation and at its total timeout",
            arguments: [false, true], [false, true])
        func ending(isUpload: Bool, isCancelled: Bool) async throws {
            try await TestOrigin.withOrigin { request in
                for try await _ in request.body {}
                return .pattern(100_000)
            } run: { origin async throws in
                let rate = BandwidthRate(bytesPerSecond: 1, burst: 1)
                let session = HTTPSession.own {
                    $0.bandwidth.total = BandwidthLimit(
                        upload: isUpload ? rate : nil, download: isUpload ? nil : rate)
                    if !isCancelled { $0.timeouts.total = .milliseconds(400) }
                }
                let task = await session.task(
                    for: try HTTPRequest(isUpload ? .put : .get, origin),
                    body: isUpload ? .pattern(1 << 20) : .none)
                if isCancelled {
                    #expect(await eventually { session.core.bandwidth.waitingCount == 1 })
                    let begun = ContinuousClock.now
                    await task.cancel()
                    await #expect(throws: CancellationError.self) { try await task.value }
                    #expect(ContinuousClock.now - begun < TestTimeouts.ending)
                } else {
                    let error = try #require(await #expect(throws: HTTPError.self) { try await task.value })
                    #expect(error.timeout == .total)
                }
                #expect(await eventually { session.core.bandwidth.waitingCount == 0 })
                #expect(session.poolStatus.leased == 0)
            }
        }

        @Test("A call's bandwidth limit ends with the call")
        func callsEnd() async throws {
            try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin async throws in
                let session = HTTPSession.own()
                var options = RequestOptions()
                options.bandwidth.download = .bytesPerSecond(1_000)
                _ = try await session.send(try HTTPRequest(.get, origin), options: options)
                #expect(!session.core.bandwidth.isActive(.down))
                #expect(!session.core.bandwidth.hasTransfers)
            }
        }

        @Test("A paused task uses no bandwidth of other calls")
        func paused() async throws {
            try await TestOrigin.withOrigin { request in
                request.path == "/big" ? .pattern(1 << 30) : .pattern(100_000)
            } run: { origin async throws in
                let session = HTTPSession.own { $0.bandwidth.total.download = .bytesPerSecond(1_000_000) }
                let task = await session.task(
                    for: try HTTPRequest(.get, origin, "/big"),
                    options: RequestOptions(bodyLimit: .gibibytes(2)))
                _ = try await task.response
                await task.pause()
                let progress = task.downloadProgress
                let paused = progress.current.completedByteCount
                #expect(try await session.get(origin.url()).body.count == 100_000)
                let still = await settled { progress.current.completedByteCount }
                // The progress may still include the piece that was being read when the task was paused.
                #expect(still - paused <= 256 << 10)
                await task.cancel()
            }
        }

        /// Waits for a duration without blocking a thread.
        private func settledFor(_ duration: Duration) async -> Bool {
            let end = ContinuousClock.now + duration
            return await eventually { ContinuousClock.now >= end }
        }
    }
}
