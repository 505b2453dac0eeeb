import FoundationEssentials
import Martlet
import MartletStorage
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletHosts
@testable import MartletStreams

@Suite("Requests through a cache with damaged files")
struct CacheDamageTests {
    /// A kind of damage to a file.
    enum Damage: String, CaseIterable, Sendable {
        case emptied, cutByOne, halved, longer, foreign, future, removed

        func applied(to bytes: [UInt8]) -> [UInt8]? {
            switch self {
            case .emptied: []
            case .cutByOne: bytes.dropLast()
            case .halved: Array(bytes.prefix(bytes.count / 2))
            case .longer: bytes + [0]
            case .foreign: Array("This file is another program's.\n".utf8)
            case .future: Array(bytes.prefix(4)) + [0xFF, 0xFE] + Array(bytes.dropFirst(6))
            case .removed: nil
            }
        }
    }

    /// A small response, and a larger one that is stored in two pieces.
    private static let bodies = [(offset: 1, count: 100), (offset: 2, count: 300_000)]

    private func fill(_ session: HTTPSession, _ origin: TestOrigin) async throws {
        for body in CacheDamageTests.bodies {
            try await CacheFaultScene.comesBack(body.offset, body.count, session, origin)
        }
        // Otherwise the next step could list a file that is about to be renamed.
        await session.configuration.cache?.flush()
    }

    /// Runs a test with a cache whose files are all on disk: entries, body, index and lock.
    private func withFilled(
        _ body: (CacheFaultScene, HTTPSession, TestOrigin) async throws -> Void
    ) async throws {
        let scene = try CacheFaultScene()
        try await CacheFaultScene.withOrigin { origin in
            let cache = try await scene.openedCache()
            let session = scene.session(cache)
            try await fill(session, origin)
            await cache.flush()
            try await body(scene, session, origin)
        }
    }

    /// Requests all responses once, from the cache or the network.
    private func ask(_ session: HTTPSession, _ origin: TestOrigin) async throws {
        for body in CacheDamageTests.bodies {
            try await CacheFaultScene.get(body.offset, body.count, session, origin)
        }
    }

    @Test(
        "A flipped bit in any file is harmless: a damaged entry is a reported miss and is stored again"
    )
    func flipped() async throws {
        try await withFilled { scene, session, origin async throws in
            // The order of the files does not matter.
            let count = scene.names.count
            #expect(count == 5)
            for file in 0..<count {
                for place in [0, 4, 6, 9, 13, 17, 40, 150, -90, -1] {
                    let names = scene.names
                    guard file < names.count else { continue }
                    var bytes = try scene.contents(names[file])
                    let index = place < 0 ? bytes.count + place : place
                    guard bytes.indices.contains(index) else { continue }
                    bytes[index] ^= 0x10
                    try scene.write(bytes, to: names[file])
                    let before = scene.events.count { $0.isDamage }
                    let isEntry = names[file] != "lock" && names[file] != "index"
                    let requests = origin.requests.count
                    try await ask(session, origin)
                    #expect(origin.requests.count == requests + (isEntry ? 1 : 0), "\(names[file]), \(index)")
                    if isEntry { #expect(await eventually { scene.events.count { $0.isDamage } > before }) }
                    try await fill(session, origin)
                }
            }
            #expect(await scene.isTidy())
        }
    }

    @Test(
        "A truncated, extended, foreign, future or missing file is a miss",
        arguments: Damage.allCases)
    func damaged(_ damage: Damage) async throws {
        try await withFilled { scene, session, origin async throws in
            for file in scene.names.indices {
                let names = scene.names
                guard file < names.count else { continue }
                let bytes = try scene.contents(names[file])
                if let changed = damage.applied(to: bytes) {
                    try scene.write(changed, to: names[file])
                } else {
                    try scene.remove(names[file])
                }
                try await ask(session, origin)
                try await fill(session, origin)
                // The same holds for a cache that opens the directory now.
                let other = scene.session(try await scene.openedCache())
                try await fill(other, origin)
                #expect(await scene.isTidy())
            }
        }
    }

    @Test(
        "A lost, truncated or foreign index loses only the order of use",
        arguments: Damage.allCases)
    func index(_ damage: Damage) async throws {
        let scene = try CacheFaultScene()
        try await CacheFaultScene.withOrigin { origin in
            let cache = try await scene.openedCache()
            let session = scene.session(cache)
            for number in 0..<20 { try await CacheFaultScene.get(number, 100, session, origin) }
            await cache.flush()
            if let changed = damage.applied(to: try scene.contents("index")) {
                try scene.write(changed, to: "index")
            } else {
                try scene.remove("index")
            }
            let other = scene.session(try await scene.openedCache())
            // Each record is independent, so the intact ones are used.
            let isPart = [.cutByOne, .halved, .longer].contains(damage)
            #expect(await scene.hears { $0 == .indexed(count: 20, hadFile: isPart) })
            for number in 0..<20 {
                #expect(try await CacheFaultScene.get(number, 100, other, origin) == .cache)
            }
        }
    }

    @Test("Foreign files are not followed, not read and not removed")
    func foreignFiles() async throws {
        let scene = try CacheFaultScene()
        let canary = scene.directory.path + "/canary"
        try Data("alive".utf8).write(to: URL(fileURLWithPath: canary))
        try await CacheFaultScene.withOrigin { origin in
            let cache = try await scene.openedCache()
            let session = scene.session(cache)
            try await CacheFaultScene.get(1, 100, session, origin)
            let entry = try #require(scene.entryFiles.first)
            let manager = FileManager.default
            for name in ["link", "sub/link"] {
                try? manager.createDirectory(atPath: scene.path + "/sub", withIntermediateDirectories: true)
                try manager.createSymbolicLink(
                    atPath: "\(scene.path)/\(name)", withDestinationPath: canary)
            }
            try scene.write([1, 2, 3], to: "notes.txt")
            try scene.remove(entry)
            try manager.createSymbolicLink(atPath: "\(scene.path)/\(entry)", withDestinationPath: canary)
            try await CacheFaultScene.get(1, 100, session, origin)
            try await CacheFaultScene.get(2, 100_000, session, origin)
            await cache.removeAll()
            try await CacheFaultScene.comesBack(2, 100_000, session, origin)
            #expect(try Data(contentsOf: URL(fileURLWithPath: canary)) == Data("alive".utf8))
            #expect(try scene.contents("notes.txt") == [1, 2, 3])
            #expect(try manager.contentsOfDirectory(atPath: scene.path + "/sub") == ["link"])
        }
    }
}
