import Glibc
import Martlet
import MartletTesting

/// A scenario with a directory of a hundred thousand entries that measures the first hit after opening, with and
/// without the index.
struct CacheOpening: SoakScenario {
    let name = "cache-opening"

    private static let lanes = 8
    private static let limit = 4 << 30

    func run(_ options: SoakOptions, _ report: inout SoakReport) async throws {
        let count = options.count ?? 100_000
        let directory = try CacheDirectory()
        defer { directory.remove() }
        let origin = try await TestOrigin.start { request in
            OriginResponse(
                200, headers: ["Cache-Control": "max-age=86400"], body: .text("the page of \(request.path)"))
        }
        let base = origin.base
        let start = ContinuousClock.now
        try await fill(count, directory, base)
        let seconds = (ContinuousClock.now - start).seconds
        // From here on only stored responses are available.
        await origin.stop()
        report.note("stored", "\(count), in \(SoakReport.short(seconds)) s")
        for hasIndex in [true, false] {
            if !hasIndex { unsafe unlink("\(directory.path)/index") }
            let kind = hasIndex ? "with its index" : "without"
            let opened = ContinuousClock.now
            let cache = try CacheWork.cache(directory.path, limit: CacheOpening.limit, memory: .mebibytes(1))
            let events = cache.events
            let session = CacheWork.session(cache)
            let path = "/\(count / 2)"
            let exchange = try await session.get(base + path)
            let first = (ContinuousClock.now - opened).seconds * 1000
            let isRight = exchange.source == .cache && exchange.text == "the page of \(path)"
            report.add("responses from the cache, \(kind)", isRight ? 1 : 0, exactly: 1)
            report.add("time to the first response, \(kind)", first, atMost: 20, unit: "ms")
            let number = await indexed(events) ?? -1
            let seconds = (ContinuousClock.now - opened).seconds
            report.add("known entries then, \(kind)", number, exactly: count)
            report.add("time to the complete index, \(kind)", seconds, atMost: 10, unit: "s")
            let read = ContinuousClock.now
            var wrong = 0
            for number in stride(from: 0, to: count, by: max(1, count / 2000)) {
                let exchange = try await session.get("\(base)/\(number)")
                if exchange.source != .cache || exchange.text != "the page of /\(number)" { wrong += 1 }
            }
            report.add("other missing or wrong responses", wrong, exactly: 0)
            report.note(
                "microseconds for each of them",
                SoakReport.short((ContinuousClock.now - read).seconds * 1e6 / Double(min(count, 2000))))
            await cache.flush()
            await session.finishAndInvalidate()
        }
    }

    /// Stores `count` pages and writes the index.
    private func fill(_ count: Int, _ directory: CacheDirectory, _ base: String) async throws {
        let cache = try CacheWork.cache(directory.path, limit: CacheOpening.limit, memory: .mebibytes(1))
        let session = CacheWork.session(cache)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for lane in 0..<CacheOpening.lanes {
                group.addTask {
                    for number in stride(from: lane, to: count, by: CacheOpening.lanes) {
                        _ = try await session.get("\(base)/\(number)")
                    }
                }
            }
            try await group.waitForAll()
        }
        await cache.flush()
        await session.finishAndInvalidate()
    }

    /// Waits until the index is complete.
    /// - Returns: The number of its entries; `nil` if no event reports it.
    private func indexed(_ events: CacheEvents) async -> Int? {
        for await event in events {
            if case .indexed(let count, _) = event { return count }
        }
        return nil
    }
}
