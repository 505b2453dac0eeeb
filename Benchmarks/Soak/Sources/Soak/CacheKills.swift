import Martlet
import MartletTesting

/// A scenario with ten thousand stores in sessions whose processes are killed at random moments, with and without a
/// concurrent reader.
struct CacheKills: SoakScenario {
    let name = "cache-kills"

    private static let limit = 4 << 20
    private static let pages: UInt64 = 200

    private struct Tally {
        var (stores, kills, answers, found, wrong, errors, read, untidy) = (0, 0, 0, 0, 0, 0, 0, 0)
        /// The maximum size of the directory in bytes while no process used it.
        var highestAtRest = 0
    }

    func run(_ options: SoakOptions, _ report: inout SoakReport) async throws {
        let count = options.count ?? 10_000
        report.note("seed", "\(options.seed)")
        let directory = try CacheDirectory()
        defer { directory.remove() }
        let pages = try await CachePages()
        let sampler = CacheSampler(directory)
        var generator = SeededGenerator(seed: options.seed)
        var tally = Tally()
        while tally.stores < count, tally.kills < count {
            try await live(directory, pages, sampler, &generator, &tally)
            try await look(directory, pages, sampler, &tally)
        }
        await pages.origin.stop()
        report.add(
            "stored by killed processes", Double(tally.stores), atLeast: Double(count), unit: "")
        report.note("killed", "\(tally.kills) times")
        report.note("responses to them", "\(tally.answers)")
        report.note("found by concurrent readers", "\(tally.read)")
        report.add("found after the kills", Double(tally.found), atLeast: 1, unit: "")
        report.add("wrong bodies among all responses", tally.wrong, exactly: 0)
        report.add("failed requests", tally.errors, exactly: 0)
        report.add("kills that left files permanently", tally.untidy, exactly: 0)
        let limit = Double(CacheKills.limit) / 1_048_576
        // A scan takes time, and files can disappear before its end.
        report.add(
            "maximum disk usage", Double(sampler.highest) / 1_048_576, atMost: limit + 1, unit: "MiB")
        report.add(
            "maximum disk usage after a kill", Double(tally.highestAtRest) / 1_048_576, atMost: limit, unit: "MiB")
        report.note("samples of the directory", "\(sampler.looks)")
    }

    /// Runs one process from its start to its end.
    private func live(
        _ directory: CacheDirectory, _ pages: CachePages, _ sampler: CacheSampler,
        _ generator: inout SeededGenerator, _ tally: inout Tally
    ) async throws {
        let work = CacheWork(
            directory: directory.path, limit: CacheKills.limit, base: pages.origin.base,
            seed: generator.next() >> 1,
            count: 1_000_000, pages: CacheKills.pages)
        let (count, delay) = (Int(generator.next() % 80) + 1, UInt32(generator.next() % 5000))
        let end = Flag()
        async let life = { () async throws -> CacheWorker.Life in
            defer { end.raise() }
            return try await CacheWorker.run(work, killAfter: count, delay: delay)
        }()
        let hasReader = tally.kills % 2 == 0
        let read = try await sampler.run { () async throws -> (found: Int, wrong: Int) in
            var sum = (found: 0, wrong: 0)
            guard hasReader else {
                while !end.isRaised { try await Task.sleep(for: .milliseconds(1)) }
                return sum
            }
            let cache = try CacheWork.cache(directory.path, limit: CacheKills.limit, memory: .kibibytes(64))
            let session = CacheWork.session(cache)
            repeat {
                let seen = try await pages.look(CacheKills.pages, session)
                sum = (sum.found + seen.found, sum.wrong + seen.wrong)
            } while !end.isRaised
            await session.invalidateAndCancel()
            return sum
        }
        let ended = try await life
        guard ended.status == nil else {
            throw SoakFailure("a process ended with status \(ended.status ?? 0)")
        }
        tally.kills += 1
        tally.stores += ended["s"]
        tally.answers += ended["n"] + ended["h"]
        tally.wrong += ended["!"] + read.wrong
        tally.errors += ended["e"]
        tally.read += read.found
    }

    /// Inspects the directory as the next process finds it.
    private func look(
        _ directory: CacheDirectory, _ pages: CachePages, _ sampler: CacheSampler, _ tally: inout Tally
    ) async throws {
        tally.highestAtRest = max(tally.highestAtRest, sampler.look())
        let session = CacheWork.session(
            try CacheWork.cache(directory.path, limit: CacheKills.limit, memory: .bytes(0)))
        if try await !CachePages.leftovers(directory).isEmpty { tally.untidy += 1 }
        let seen = try await pages.look(CacheKills.pages, session)
        tally.found += seen.found
        tally.wrong += seen.wrong
        await session.invalidateAndCancel()
        tally.highestAtRest = max(tally.highestAtRest, sampler.look())
    }
}
