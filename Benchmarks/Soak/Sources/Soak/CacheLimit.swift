import Glibc
import Martlet
import MartletTesting

/// A scenario with fifty thousand stores under a limit that must hold throughout. The sizes are random: from a byte to
/// ten megabytes, or so small that the file names use much of the space.
struct CacheLimit: SoakScenario {
    let name: String
    /// The maximum body length in bytes.
    let maximum: Double

    /// The limit in bytes: an eighth of it exceeds the longest body.
    private static let limit = 96 << 20
    private static let lanes = 4

    func run(_ options: SoakOptions, _ report: inout SoakReport) async throws {
        let count = options.count ?? 50_000
        report.note("seed", "\(options.seed)")
        let directory = try CacheDirectory()
        defer { directory.remove() }
        let origin = try await TestOrigin.start { request in
            let numbers = request.path.split(separator: "/").compactMap { UInt64($0) }
            guard numbers.count == 2 else { return OriginResponse(404) }
            return OriginResponse(
                200, headers: ["Cache-Control": "max-age=600"], body: .pattern(numbers[1], from: numbers[0]))
        }
        let cache = try CacheWork.cache(directory.path, limit: CacheLimit.limit, memory: .mebibytes(1))
        let session = CacheWork.session(cache)
        let sampler = CacheSampler(directory)
        let start = ContinuousClock.now
        let (wrong, hits) = try await sampler.run {
            try await withThrowingTaskGroup(of: (wrong: Int, hits: Int).self) { group in
                for lane in 0..<CacheLimit.lanes {
                    group.addTask {
                        var generator = SeededGenerator(seed: options.seed, stream: UInt64(lane))
                        return try await store(count, cache, session, origin, &generator)
                    }
                }
                return try await group.reduce((wrong: 0, hits: 0)) {
                    ($0.wrong + $1.wrong, $0.hits + $1.hits)
                }
            }
        }
        let seconds = (ContinuousClock.now - start).seconds
        await cache.flush()
        let statistics = cache.statistics
        let limit = Double(CacheLimit.limit) / 1_048_576
        report.add("stored", Double(statistics.stores), atLeast: Double(count), unit: "")
        report.note("bytes stored", "\(SoakReport.short(Double(statistics.bytesStored) / 1e9)) GB")
        report.note("evicted entries", "\(statistics.evictions)")
        report.add("wrong bodies", wrong, exactly: 0)
        report.add("responses from the cache", Double(hits), atLeast: 1, unit: "")
        report.note("limit of the cache", "\(SoakReport.short(limit)) MiB")
        report.add(
            "maximum disk usage", Double(sampler.highest) / 1_048_576, atMost: limit + 1, unit: "MiB")
        report.add("disk usage at the end", Double(sampler.look()) / 1_048_576, atMost: limit, unit: "MiB")
        report.note("samples of the directory", "\(sampler.looks)")
        report.note("stores per second", SoakReport.short(Double(statistics.stores) / seconds))
        await session.finishAndInvalidate()
        await origin.stop()
    }

    /// Stores until the count is reached, and reads some entries back.
    private func store(
        _ count: Int, _ cache: ResponseCache, _ session: HTTPSession, _ origin: TestOrigin,
        _ generator: inout SeededGenerator
    ) async throws -> (wrong: Int, hits: Int) {
        var result = (wrong: 0, hits: 0)
        while cache.statistics.stores < UInt64(count) {
            // The sizes are logarithmic: as many between one and ten bytes as between ten and a hundred.
            let fraction = Double(generator.next() >> 11) / Double(1 << 53)
            let size = max(1, Int(exp(fraction * log(maximum))))
            let offset = generator.next() % 100_000
            let url = origin.url("/\(offset)/\(size)")
            if try await !isRight(url, offset, size, session).isRight { result.wrong += 1 }
            guard generator.next() % 8 == 0 else { continue }
            let again = try await isRight(url, offset, size, session)
            if !again.isRight { result.wrong += 1 }
            if again.isHit { result.hits += 1 }
        }
        return result
    }

    private func isRight(
        _ url: String, _ offset: UInt64, _ size: Int, _ session: HTTPSession
    ) async throws -> (isRight: Bool, isHit: Bool) {
        let exchange = try await session.get(url)
        let isRight =
            exchange.statusCode == 200 && exchange.body.count == size
            && TestPattern.firstMismatch(in: exchange.body, at: offset) == nil
        return (isRight, exchange.source == .cache)
    }
}
