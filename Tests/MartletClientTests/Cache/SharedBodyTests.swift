@testable import MartletContent
import Martlet
import MartletStorage
import MartletTesting
import MartletTestSupport
import SystemPackage
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletHosts

@Suite("Bodies with several readers")
struct SharedBodyTests {
    /// Reads a body of the test pattern and returns its length.
    private static func read(
        _ session: HTTPSession, _ request: HTTPRequest,
        _ each: @Sendable (UInt64) async throws -> Void = { _ in }
    ) async throws -> UInt64 {
        try await session.stream(request) { _, body in
            var offset: UInt64 = 0
            for try await piece in body {
                #expect(TestPattern.firstMismatch(in: piece, at: offset) == nil)
                offset += UInt64(piece.count)
                try await each(offset)
            }
            return offset
        }
    }

    @Test("A reader that joins 64 MiB in the middle gets all of it, with less than 4 MiB in memory")
    func joinsInTheMiddle() async throws {
        let directory = try TemporaryDirectory()
        let signals = SignalBox()
        let size: UInt64 = 64 << 20
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("").with {
                $0.body = .stream(length: size) { writer in
                    try await writer.write(TestPattern.bytes(from: 0, count: 16 << 20))
                    try await signals.wait(for: "joined")
                    for mebibyte in UInt64(16)..<64 {
                        try await writer.write(TestPattern.bytes(from: mebibyte << 20, count: 1 << 20))
                    }
                }
            }
        } run: { origin async throws in
            signals.use(origin)
            let cache = try ResponseCache.at(FilePath(directory.path).appending("cache"), disk: .gibibytes(1))
            let session = HTTPSession.own { $0.cache = cache }
            let request = try HTTPRequest(.get, origin)
            let most = Shared(0)
            let look: @Sendable (UInt64) async throws -> Void = { _ in
                let held = session.core.flights.heldByteCount
                most.withLock { $0 = max($0, held) }
            }
            let reached = Shared(UInt64(0))
            let first = Task {
                try await SharedBodyTests.read(session, request) { offset in
                    reached.withLock { $0 = offset }
                    try await look(offset)
                }
            }
            #expect(await eventually { reached.withLock { $0 } >= 15 << 20 })
            let second = Task { try await SharedBodyTests.read(session, request, look) }
            #expect(await eventually { session.core.flights.memberCount == 2 })
            signals.raise("joined")
            #expect(try await first.value == size)
            #expect(try await second.value == size)
            #expect(origin.requests.count == 1)
            #expect(most.withLock { $0 } < 4 << 20)
            #expect(cache.statistics.stores == 1 && cache.statistics.shared == 1)
            #expect(try await SharedBodyTests.read(session, request) == size)
            #expect(origin.requests.count == 1)
        }
    }

    @Test("A slow first reader and a fast second reader both get the whole body", arguments: [true, false])
    func slowAndFast(hasDisk: Bool) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("").with { $0.body = .pattern(3_000_000) }
        } run: { origin async throws in
            let (session, _) = try CacheScene.session(hasDisk ? directory : nil)
            let request = try HTTPRequest(.get, origin)
            let isOver = Shared(false)
            let hasBegun = Shared(false)
            let slow = Task {
                try await SharedBodyTests.read(session, request) { _ in
                    hasBegun.withLock { $0 = true }
                    // The slow reader takes its first piece and waits until the other reader is done.
                    _ = await eventually { isOver.withLock { $0 } }
                }
            }
            #expect(await eventually { hasBegun.withLock { $0 } })
            #expect(try await SharedBodyTests.read(session, request) == 3_000_000)
            isOver.withLock { $0 = true }
            #expect(try await slow.value == 3_000_000)
            #expect(origin.requests.count == 1)
        }
    }

    /// A reason for which a body cannot be stored.
    enum Obstacle: CaseIterable { case limit, fullDisk }

    @Test(
        "A stalled reader of a body that cannot be stored fails without stopping the other readers",
        arguments: Obstacle.allCases)
    func standsStill(_ obstacle: Obstacle) async throws {
        let size: UInt64 = 6 << 20
        try await CacheScene.withHeldOrigin { _ in
            CacheScene.answer("").with {
                $0.body = .pattern(size)
                $0.framing = .chunked()
            }
        } _: { origin, signals async throws in
            let scene = try CacheFaultScene()
            let session: HTTPSession
            switch obstacle {
            case .limit: session = try CacheScene.session(memory: .mebibytes(1)).0
            case .fullDisk:
                session = scene.session(try await scene.openedCache())
                scene.files.fill(after: 2 << 20)
            }
            let request = try HTTPRequest(.get, origin)
            let isOver = Shared(false)
            let slow = Task {
                try await SharedBodyTests.read(session, request) { _ in
                    _ = await eventually { isOver.withLock { $0 } }
                }
            }
            #expect(await eventually { session.core.flights.memberCount == 1 })
            let fast = Task { try await SharedBodyTests.read(session, request) }
            #expect(await eventually { session.core.flights.memberCount == 2 })
            signals.raise("go")
            #expect(try await fast.value == size)
            isOver.withLock { $0 = true }
            let error = await #expect(throws: HTTPError.self) { try await slow.value }
            #expect(error?.message.contains("too slowly") == true)
            #expect(origin.requests.count == 1)
        }
    }

    @Test("A body of known length above an eighth of the memory is not shared")
    func aboveTheEighth() async throws {
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("").with { $0.body = .pattern(400_000) }
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session(memory: .mebibytes(1))
            let request = try HTTPRequest(.get, origin)
            try await withThrowingTaskGroup(of: UInt64.self) { group in
                for _ in 0..<4 { group.addTask { try await SharedBodyTests.read(session, request) } }
                for try await count in group { #expect(count == 400_000) }
            }
            #expect(origin.requests.count == 4 && cache.statistics.memoryEntries == 0)
        }
    }

    @Test(
        "A body of unknown length above an eighth of the memory is shared but not stored"
    )
    func chunkedAboveTheEighth() async throws {
        try await CacheScene.withHeldOrigin { _ in
            CacheScene.answer("").with {
                $0.body = .pattern(3_000_000)
                $0.framing = .chunked()
            }
        } _: { origin, signals async throws in
            let (session, cache) = try CacheScene.session(memory: .mebibytes(1))
            let request = try HTTPRequest(.get, origin)
            let tasks = (0..<3).map { _ in Task { try await SharedBodyTests.read(session, request) } }
            #expect(await eventually { session.core.flights.memberCount == 3 })
            signals.raise("go")
            for task in tasks { #expect(try await task.value == 3_000_000) }
            #expect(origin.requests.count == 1 && cache.statistics.memoryEntries == 0)
        }
    }

    @Test(
        "A truncated body is an error for all its readers and is not stored", arguments: [true, false],
        [true, false])
    func cut(isChunked: Bool, hasDisk: Bool) async throws {
        let directory = try TemporaryDirectory()
        try await CacheScene.withHeldOrigin { _ in
            CacheScene.answer("").with {
                $0.body = .pattern(200_000)
                if isChunked { $0.framing = .chunked(size: 10_000) }
                $0.fault = OriginFault(.close, afterBodyBytes: 150_000)
            }
        } _: { origin, signals async throws in
            let (session, cache) = try CacheScene.session(hasDisk ? directory : nil)
            let url = origin.url()
            let tasks = (0..<4).map { _ in Task { try await session.get(url) } }
            #expect(await eventually { session.core.flights.memberCount == 4 })
            signals.raise("go")
            for task in tasks { await #expect(throws: HTTPError.self) { try await task.value } }
            #expect(origin.requests.count == 1)
            #expect(cache.statistics.stores == 0 && cache.statistics.memoryEntries == 0)
            await #expect(throws: HTTPError.self) { try await session.get(url) }
            #expect(origin.requests.count == 2)
        }
    }

    @Test("Trailers are stored with the body and served again", arguments: [true, false])
    func trailers(hasDisk: Bool) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("abc", "max-age=600", ["Trailer": "X-Sum"]).with {
                $0.framing = .chunked()
                $0.trailers = ["X-Sum": "900150983cd24fb0"]
            }
        } run: { origin async throws in
            let (session, _) = try CacheScene.session(
                hasDisk ? directory : nil, memory: hasDisk ? .bytes(0) : .mebibytes(1))
            for source in [HTTPExchange.Source.network, .cache] {
                let answer = try await session.get(origin.url())
                #expect(answer.source == source && answer.text == "abc")
                #expect(answer.trailers?[HTTPField.Name("X-Sum") ?? .age] == "900150983cd24fb0")
            }
        }
    }

    @Test(
        "A body is stored even if its reader stops after the last byte",
        arguments: [1000, 300_000])
    func stopsAtTheEnd(size: Int) async throws {
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("").with { $0.body = .pattern(UInt64(size)) }
        } run: { origin async throws in
            let (session, cache) = try CacheScene.session()
            try await session.stream(try HTTPRequest(.get, origin)) { _, body in
                var count = 0
                for try await piece in body {
                    count += piece.count
                    if count == size { break }
                }
            }
            #expect(await eventually { cache.statistics.stores == 1 })
            #expect(try await session.get(origin.url()).source == .cache)
        }
    }

    @Test("A body that arrives byte by byte is held in few pieces")
    func gathered() {
        var pieces: [[UInt8]] = []
        for number in 0..<100_000 { pieces.gather([UInt8(truncatingIfNeeded: number)]) }
        #expect(pieces.count < 10 && pieces.joined().count == 100_000)
        pieces.gather([UInt8](repeating: 1, count: 1 << 20))
        #expect(pieces.last?.count == 1 << 20)
    }

    @Test("A download and a stream share a transfer, and a later download is served from the cache")
    func downloads() async throws {
        let directory = try TemporaryDirectory()
        try await CacheScene.withHeldOrigin { _ in
            CacheScene.answer("").with { $0.body = .pattern(700_000) }
        } _: { origin, signals async throws in
            let (session, _) = try CacheScene.session(directory)
            let url = origin.url()
            let request = try HTTPRequest(.get, origin)
            let path = directory.path("first")
            let download = Task {
                try await session.save(HTTPRequest(method: .get, url: url), to: path, overwrites: false)
            }
            let stream = Task { try await SharedBodyTests.read(session, request) }
            #expect(await eventually { session.core.flights.memberCount == 2 })
            signals.raise("go")
            _ = try await download.value
            #expect(try await stream.value == 700_000)
            let again = try await session.save(
                HTTPRequest(method: .get, url: url), to: directory.path("second"), overwrites: false)
            #expect(again.source == .cache && origin.requests.count == 1)
            for name in ["first", "second"] {
                let bytes = try directory.bytes(of: name)
                #expect(bytes.count == 700_000 && TestPattern.firstMismatch(in: bytes, at: 0) == nil)
            }
        }
    }
}
