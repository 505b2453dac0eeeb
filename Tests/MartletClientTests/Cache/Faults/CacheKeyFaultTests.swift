import FoundationEssentials
import Martlet
import MartletTesting
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletHosts
@testable import MartletStreams

@Suite("Requests with URLs that are unsafe as file names")
struct CacheKeyFaultTests {
    /// The request targets.
    private static let targets = [
        "/", "/%00", "/a%00b", "/..%2f..%2fetc%2fpasswd", "/%2e%2e/%2e%2e/x", "/a/../../b", "/index", "/lock",
        "/new.0000000000000000", "/.", "/%2F", "/%5c..%5c", "/a?b=../../c", "/?%00", "/%0d%0aX:%20y", "/CON",
        "/%C3%A4", "/%c3%a4", "/" + String(repeating: "x", count: 255),
        "/" + String(repeating: "x", count: 256), "/" + String(repeating: "long/", count: 2000),
        "/?" + String(repeating: "q", count: 20_000), "/?" + String(repeating: "q", count: 20_001),
    ]

    /// Whether a name is one that the cache assigns: hexadecimal digits of a digest and a number.
    private static func isDigest(_ name: String) -> Bool {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2 || parts.count == 3, parts[0].count == 32, parts[1].count == 1 else {
            return false
        }
        return name.utf8.allSatisfy { "0123456789abcdef.".utf8.contains($0) }
    }

    @Test(
        "URLs with dots, NUL, slashes or 20,000 bytes are stored separately, in files named by digest",
        arguments: [0, 50_000])
    func odd(_ padding: Int) async throws {
        let scene = try CacheFaultScene()
        let pad = String(repeating: ".", count: padding)
        try await TestOrigin.withOrigin { request in
            CacheScene.answer(request.target + pad)
        } run: { origin async throws in
            let cache = try await scene.openedCache()
            let session = scene.session(cache)
            var bodies: [String: String] = [:]
            for target in CacheKeyFaultTests.targets {
                let exchange = try await session.get(origin.url(target))
                // Some URLs have the same normal form.
                let isNew = bodies[exchange.text] == nil
                #expect(exchange.source == (isNew ? .network : .cache), "\(target.prefix(40))")
                bodies[exchange.text] = target
            }
            #expect(bodies.count > 15 && origin.requests.count == bodies.count)
            for (body, target) in bodies {
                let exchange = try await session.get(origin.url(target))
                #expect(exchange.source == .cache && exchange.text == body, "\(target.prefix(40))")
            }
            #expect(origin.requests.count == bodies.count)
            #expect(scene.entryFiles.count == bodies.count * (padding == 0 ? 1 : 2))
            for name in scene.entryFiles { #expect(CacheKeyFaultTests.isDigest(name), "\(name)") }
            #expect(try scene.directory.contents() == ["cache"])
            await cache.removeAll()
            #expect(scene.entryFiles.isEmpty)
        }
    }

    @Test(
        "A digest collision with another URL is a miss and not reported as damage",
        arguments: [500, 50_000])
    func collision(_ count: Int) async throws {
        try await CacheFaultScene.withSession { scene, session, origin in
            try await CacheFaultScene.get(1, count, session, origin)
            let first = scene.entryFiles
            try await CacheFaultScene.get(2, count, session, origin)
            let second = scene.entryFiles.filter { !first.contains($0) }
            let (entry, other) = (try #require(first.first), try #require(second.first))
            // Stores the first entry under the second one's digest.
            for name in second { try scene.remove(name) }
            for name in first {
                try scene.write(try scene.contents(name), to: other + name.dropFirst(entry.count))
            }
            #expect(try await CacheFaultScene.get(2, count, session, origin) == .network)
            #expect(try await CacheFaultScene.get(1, count, session, origin) == .cache)
            try await CacheFaultScene.comesBack(2, count, session, origin)
            #expect(try await CacheFaultScene.get(1, count, session, origin) == .cache)
            #expect(!scene.events.contains { $0.isDamage })
        }
    }
}
