import Martlet
import MartletTesting

/// A scenario with four processes whose sessions share one directory and the same thousand URLs, and a fifth process
/// that is killed repeatedly.
struct CacheProcesses: SoakScenario {
    let name = "cache-processes"

    private static let limit = 24 << 20
    private static let pages: UInt64 = 1000
    private static let processes = 4

    func run(_ options: SoakOptions, _ report: inout SoakReport) async throws {
        let count = options.count ?? 2000
        report.note("seed", "\(options.seed)")
        let directory = try CacheDirectory()
        defer { directory.remove() }
        let pages = try await CachePages()
        let sampler = CacheSampler(directory)
        let base = pages.origin.base
        @Sendable func work(_ seed: UInt64, count: Int) -> CacheWork {
            CacheWork(
                directory: directory.path, limit: CacheProcesses.limit, base: base, seed: seed, count: count,
                pages: CacheProcesses.pages)
        }
        let start = options.seed >> 8
        let (lives, killed) = try await sampler.run {
            async let victims = { () async throws -> [CacheWorker.Life] in
                var lives: [CacheWorker.Life] = []
                for turn in 0..<10 as Range<UInt64> {
                    lives.append(
                        try await CacheWorker.run(work(start &+ 100 &+ turn, count: 1_000_000), killAfter: 50)
                    )
                }
                return lives
            }()
            let lives = try await withThrowingTaskGroup(of: CacheWorker.Life.self) { group in
                for number in 0..<CacheProcesses.processes {
                    group.addTask {
                        // The count is rounded up, so that it divides evenly among the lanes of a process.
                        try await CacheWorker.run(work(start &+ UInt64(number), count: (count + 2) / 3 * 3))
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            return (lives, try await victims)
        }
        let session = CacheWork.session(
            try CacheWork.cache(directory.path, limit: CacheProcesses.limit, memory: .bytes(0)))
        let leftovers = try await CachePages.leftovers(directory)
        let seen = try await pages.look(CacheProcesses.pages, session)
        await session.invalidateAndCancel()
        await pages.origin.stop()
        let all = lives + killed
        func sum(_ letter: Character) -> Int { all.reduce(0) { $0 + $1[letter] } }
        report.add(
            "completed processes", lives.count { $0.status == 0 },
            exactly: CacheProcesses.processes)
        report.add("killed concurrent processes", killed.count { $0.status == nil }, exactly: 10)
        report.add(
            "responses to the four", lives.reduce(0) { $0 + $1["n"] + $1["h"] },
            exactly: CacheProcesses.processes * ((count + 2) / 3 * 3))
        report.note("stored", "\(sum("s"))")
        report.note("responses from the cache", "\(sum("h"))")
        report.note("found at the end", "\(seen.found) of \(CacheProcesses.pages)")
        report.add("wrong responses", sum("!") + seen.wrong, exactly: 0)
        report.add("failed requests", sum("e"), exactly: 0)
        report.add("permanently left files", leftovers.count, exactly: 0)
        report.add(
            "maximum disk usage", Double(sampler.highest) / 1_048_576,
            atMost: Double(CacheProcesses.limit) / 1_048_576 + 1, unit: "MiB")
    }
}
