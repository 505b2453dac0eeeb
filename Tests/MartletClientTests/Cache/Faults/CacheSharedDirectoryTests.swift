@testable import MartletContent
import Martlet
import MartletStorage
import MartletTesting
import MartletTestSupport
import Synchronization
import Testing

@testable import MartletCaching
@testable import MartletCore

@Suite("Sessions that share a cache, and caches that share a directory")
struct CacheSharedDirectoryTests {
    /// Pages whose bodies contain their path and version. Each unsafe request increments the version.
    final class Pages: Sendable {
        private let versions = Mutex<[String: Int]>([:])

        func answer(_ request: OriginRequest) -> OriginResponse {
            let version = versions.withLock { versions in
                if request.method != .get { versions[request.path, default: 0] += 1 }
                return versions[request.path, default: 0]
            }
            if request.method != .get { return .text("\(version)") }
            return OriginResponse(
                200, headers: ["Cache-Control": "max-age=600", "X-Version": "\(version)"],
                body: .text(Pages.body(request.path, version)))
        }

        static func body(_ path: String, _ version: Int) -> String {
            // Some bodies are stored in memory, some in their entry, some in their own files.
            let count = (path.utf8.reduce(version) { $0 &* 31 &+ Int($1) } & 0xFFFF) + 1
            return "\(path) \(version) " + String(repeating: "\(version % 10)", count: count)
        }

        /// Returns the version of a page if it is exactly what the origin sent; otherwise `nil`.
        static func version(_ exchange: HTTPExchange, _ path: String) -> Int? {
            guard let name = HTTPField.Name("X-Version"),
                let version = exchange.response.headerFields[name].flatMap({ Int($0) }),
                exchange.text == body(path, version)
            else { return nil }
            return version
        }
    }

    /// Reads and changes pages in a pseudorandom order and returns the number of wrong bodies.
    private static func work(
        _ session: HTTPSession, _ origin: TestOrigin, seed: UInt64, turns: Int, pages: UInt64
    ) async throws -> Int {
        var state = seed
        var wrong = 0
        for _ in 0..<turns {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let path = "/page/\((state >> 33) % pages)"
            if (state >> 20) % 10 == 0 {
                _ = try await session.put(origin.url(path), body: .bytes([1]))
            } else if Pages.version(try await session.get(origin.url(path)), path) == nil {
                wrong += 1
            }
        }
        return wrong
    }

    /// Runs a test with an origin that serves pages, and a scene for the caches.
    private static func withPages(_ body: (CacheFaultScene, TestOrigin) async throws -> Void) async throws {
        let scene = try CacheFaultScene()
        let pages = Pages()
        try await TestOrigin.withOrigin {
            pages.answer($0)
        } run: { origin async throws in
            try await body(scene, origin)
        }
    }

    @Test("Two caches in one directory never serve a wrong body while both read and change pages")
    func twoCaches() async throws {
        try await CacheSharedDirectoryTests.withPages { scene, origin in
            let sessions = [
                scene.session(try scene.cache(memory: .kibibytes(256), disk: .mebibytes(4))),
                scene.session(try scene.cache(memory: .bytes(0), disk: .mebibytes(4))),
            ]
            let wrong = try await withThrowingTaskGroup(of: Int.self) { group in
                for worker in 0..<6 {
                    group.addTask {
                        try await CacheSharedDirectoryTests.work(
                            sessions[worker % 2], origin, seed: UInt64(worker) + 1, turns: 150, pages: 200)
                    }
                }
                return try await group.reduce(0, +)
            }
            #expect(wrong == 0)
            let later = scene.session(try await scene.openedCache(disk: .mebibytes(4)))
            var hits = 0
            for number in 0..<200 {
                let exchange = try await later.get(origin.url("/page/\(number)"))
                #expect(Pages.version(exchange, "/page/\(number)") != nil)
                if exchange.source == .cache { hits += 1 }
            }
            #expect(hits > 0)
            #expect(await scene.isTidy())
        }
    }

    @Test("A request after a change never gets an older page, also with two sessions on one cache")
    func ownWrites() async throws {
        try await CacheSharedDirectoryTests.withPages { scene, origin in
            let cache = try await scene.openedCache(memory: .mebibytes(1))
            let sessions = [scene.session(cache), scene.session(cache)]
            try await withThrowingTaskGroup(of: Void.self) { group in
                for worker in 0..<6 {
                    group.addTask {
                        for turn in 0..<60 {
                            let path = "/page/\((turn + worker) % 5)"
                            let session = sessions[worker % 2]
                            guard turn % 6 == 0 else {
                                let version = Pages.version(try await session.get(origin.url(path)), path)
                                #expect(version != nil)
                                continue
                            }
                            let put = try await session.put(origin.url(path), body: .bytes([1]))
                            let written = try #require(Int(put.text))
                            let seen = Pages.version(try await session.get(origin.url(path)), path)
                            #expect(seen.map { $0 >= written } == true)
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test("A request after an unsafe request does not join an earlier transfer")
    func olderTransfer() async throws {
        let scene = try CacheFaultScene()
        let signals = SignalBox()
        let turns = Mutex(0)
        try await TestOrigin.withOrigin { request in
            guard request.method == .get else { return OriginResponse(204) }
            let turn = turns.withLock { turns in
                turns += 1
                return turns
            }
            guard turn == 1 else { return ResponseCacheTests.fresh("new") }
            return OriginResponse(
                200, headers: ["Cache-Control": "max-age=600"],
                body: .stream(length: 6) { writer in
                    try await writer.write("old")
                    try await signals.wait(for: "go")
                    try await writer.write("old")
                })
        } run: { origin async throws in
            signals.use(origin)
            let session = scene.session(try await scene.openedCache(memory: .mebibytes(1)))
            try await session.stream(try HTTPRequest(.get, origin, "/x")) { _, body in
                var text = ""
                for try await piece in body {
                    if text.isEmpty {
                        _ = try await session.post(origin.url("/x"), body: .bytes([1]))
                        let later = Task { try await session.get(origin.url("/x")).text }
                        // A request that joined the first transfer would wait for bytes that are sent only after `go`.
                        #expect(
                            await eventually {
                                turns.withLock { $0 } == 2 || session.core.flights.memberCount > 1
                            })
                        signals.raise("go")
                        #expect(try await later.value == "new")
                    }
                    text += String(decoding: piece, as: UTF8.self)
                }
                #expect(text == "oldold")
            }
            #expect(try await session.get(origin.url("/x")).text == "new")
        }
    }
}
