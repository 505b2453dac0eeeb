import Glibc
import Martlet
import MartletClientChild
import MartletStorage
import MartletTesting
import MartletTestSupport
import Synchronization
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletHosts
@testable import MartletStreams

@Suite("Processes that share a directory and are killed")
struct CacheKillTests {
    private static let limit = 2 << 20
    private static let pages: UInt64 = 60

    /// Runs a test with an origin whose pages change with each request.
    private func withPages(_ body: (TestOrigin) async throws -> Void) async throws {
        let version = Mutex<UInt64>(0)
        try await TestOrigin.withOrigin { request in
            let next = version.withLock { version in
                version += 1
                return version
            }
            return SamplePage.answer(request, version: next, maximum: 150_000)
        } run: { origin async throws in
            try await body(origin)
        }
    }

    /// Reads all pages that are stored, checks them, and returns their number.
    private func read(
        _ pages: UInt64, _ session: HTTPSession, _ origin: TestOrigin
    ) async throws -> Int {
        var hits = 0
        for page in 0..<pages {
            let path = CacheWork.path(page)
            let exchange = try await session.get(
                origin.url(path), options: CacheScene.mode(.onlyIfCached))
            guard exchange.statusCode != 504 else { continue }
            #expect(SamplePage.isRight(exchange, path), "\(path)")
            hits += 1
        }
        return hits
    }

    /// Returns the allocated bytes of the directory, as `du` does. A file that is renamed in between counts once. The sum
    /// is repeated if files came or went meanwhile: one that was evicted after it was counted, and one that was written
    /// afterwards, were never there together.
    private func allocated(_ scene: CacheFaultScene) throws -> UInt64 {
        let files = LinuxFileSystem()
        while true {
            let names = scene.names
            var sum = try files.status(at: scene.path).allocatedByteCount
            var seen: Set<UInt64> = []
            for name in names {
                guard let status = try? files.status(at: "\(scene.path)/\(name)") else { continue }
                if seen.insert(status.identity).inserted { sum += status.allocatedByteCount }
            }
            if Set(scene.names) == Set(names) { return sum }
        }
    }

    /// Whether each body file belongs to an existing entry.
    private func hasNoOrphans(_ scene: CacheFaultScene) -> Bool {
        let names = Set(scene.names)
        return scene.bodyFiles.allSatisfy {
            names.contains($0.split(separator: ".").prefix(2).joined(separator: "."))
        }
    }

    /// Opens the directory as the next process does, checks all hits and that no incomplete files are left.
    private func check(_ scene: CacheFaultScene, _ origin: TestOrigin, pages: UInt64, limit: Int) async throws
        -> Int
    {
        #expect(try allocated(scene) <= UInt64(limit))
        let session = scene.session(try await scene.openedCache(disk: .bytes(limit)))
        #expect(await scene.isTidy())
        #expect(await eventually { hasNoOrphans(scene) })
        let hits = try await read(pages, session, origin)
        #expect(!scene.events.contains { $0.isDamage })
        #expect(try allocated(scene) <= UInt64(limit))
        await session.invalidateAndCancel()
        return hits
    }

    @Test(
        "After a kill at any moment of two hundred stores, every hit is a response that was sent"
    )
    func kills() async throws {
        let scene = try CacheFaultScene()
        try await withPages { origin in
            var random = SplitMix64(state: 0x6D61_7274)
            var (stores, hits, round) = (0, 0, 0)
            while stores < 200 {
                round += 1
                let work = CacheWork(
                    directory: scene.path, limit: CacheKillTests.limit, base: origin.base, seed: UInt64(round),
                    count: 1_000_000, pages: CacheKillTests.pages)
                let count = Int.random(in: 1...60, using: &random)
                let delay = UInt32.random(in: 0...3000, using: &random)
                let ended = Reached()
                async let life = { () async throws -> (output: String, status: Int32) in
                    defer { ended.note() }
                    return try await ClientChild.run(work, killAfter: count, delay: delay)
                }()
                if round % 2 == 0 {
                    let reader = CacheWork.session(
                        try CacheWork.cache(
                            scene.path, limit: CacheKillTests.limit, memory: .kibibytes(64)))
                    repeat {
                        _ = try await read(CacheKillTests.pages, reader, origin)
                    } while !ended.isReached
                    await reader.invalidateAndCancel()
                }
                let (output, status) = try await life
                #expect(status == SIGKILL && !output.contains("!") && !output.contains("e"), "\(output)")
                stores += output.count { $0 == "s" }
                hits += try await check(
                    scene, origin, pages: CacheKillTests.pages, limit: CacheKillTests.limit)
                try #require(round < 400, "nothing is stored")
            }
            #expect(hits > 0)
        }
    }

    @Test("Killing one of three processes that share a directory does not affect the others")
    func processes() async throws {
        let scene = try CacheFaultScene()
        let limit = 8 << 20
        try await withPages { origin in
            let works = [(1, 150), (2, 150), (3, 1_000_000)].map { (seed: UInt64, count: Int) in
                CacheWork(
                    directory: scene.path, limit: limit, base: origin.base, seed: seed, count: count, pages: 1000
                )
            }
            async let first = ClientChild.run(works[0])
            async let second = ClientChild.run(works[1])
            async let victim = ClientChild.run(works[2], killAfter: 40)
            for (output, status) in try await [first, second] {
                #expect(status == 0)
                #expect(output.contains("s") && !output.contains("!") && !output.contains("e"), "\(output)")
            }
            let (output, status) = try await victim
            #expect(status == SIGKILL && !output.contains("!") && !output.contains("e"), "\(output)")
            #expect(try await check(scene, origin, pages: 1000, limit: limit) > 0)
        }
    }
}
