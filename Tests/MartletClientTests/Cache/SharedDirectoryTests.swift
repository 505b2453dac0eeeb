import Martlet
import MartletTesting
import SystemPackage
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletHosts

/// Caches that are opened separately share only the contents of their directory, as those of different processes do.
@Suite("Caches in a shared directory")
struct SharedDirectoryTests {
    /// Makes a session with its own cache in the directory.
    private func session(_ directory: TemporaryDirectory, memory: ByteCount) throws -> HTTPSession {
        let cache = try ResponseCache.at(FilePath(directory.path).appending("cache"), memory: memory)
        return HTTPSession.own { $0.cache = cache }
    }

    private func run(_ body: (TestOrigin, TemporaryDirectory) async throws -> Void) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { request in
            request.method == .get
                ? ResponseCacheTests.fresh("\(request.connection.number).\(request.number)")
                : OriginResponse(204)
        } run: { origin async throws in
            try await body(origin, directory)
        }
    }

    @Test("A response that one cache stores is served by the others")
    func stored() async throws {
        try await run { origin, directory in
            let first = try session(directory, memory: .bytes(0))
            let second = try session(directory, memory: .mebibytes(1))
            let a = try await first.get(origin.url("/a"))
            let b = try await second.get(origin.url("/b"))
            #expect(a.source == .network && b.source == .network)
            let otherA = try await second.get(origin.url("/a"))
            let otherB = try await first.get(origin.url("/b"))
            #expect(otherA.source == .cache && otherA.body == a.body)
            #expect(otherB.source == .cache && otherB.body == b.body)
            #expect(origin.requests.count == 2)
        }
    }

    @Test("A response that one cache invalidates is no longer served from disk by the others")
    func invalidated() async throws {
        try await run { origin, directory in
            let writer = try session(directory, memory: .mebibytes(1))
            let reader = try session(directory, memory: .bytes(0))
            let before = try await writer.get(origin.url("/a"))
            #expect(try await reader.get(origin.url("/a")).source == .cache)
            _ = try await writer.post(origin.url("/a"), body: .bytes([1]))
            let after = try await reader.get(origin.url("/a"))
            #expect(after.source == .network && after.body != before.body)
        }
    }

    @Test("A cache serves a response from its memory until it is stale or revalidated")
    func validated() async throws {
        try await run { origin, directory in
            let writer = try session(directory, memory: .bytes(0))
            let reader = try session(directory, memory: .mebibytes(1))
            let before = try await reader.get(origin.url("/a"))
            _ = try await writer.post(origin.url("/a"), body: .bytes([1]))
            let unaware = try await reader.get(origin.url("/a"))
            #expect(unaware.source == .cache && unaware.body == before.body)
            var options = RequestOptions()
            options.cacheMode = .revalidate
            let aware = try await reader.get(origin.url("/a"), options: options)
            #expect(aware.source == .network && aware.body != before.body)
        }
    }
}
