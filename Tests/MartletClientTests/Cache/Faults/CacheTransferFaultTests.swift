@testable import MartletContent
@testable import MartletURL
import Martlet
import MartletStorage
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletHosts

@Suite("Incomplete bodies through a cache")
struct CacheTransferFaultTests {
    /// The way a body is truncated.
    enum Cut: CaseIterable, Sendable {
        case closedBeforeItsLength, resetBeforeItsLength, closedBeforeTheLastChunk, resetBeforeTheLastChunk

        func applied(to response: OriginResponse, after count: Int) -> OriginResponse {
            response.with { response in
                switch self {
                case .closedBeforeItsLength:
                    response.fault = OriginFault(.close, afterBodyBytes: UInt64(count))
                case .resetBeforeItsLength:
                    response.fault = OriginFault(.reset, afterBodyBytes: UInt64(count))
                case .closedBeforeTheLastChunk:
                    response.framing = .chunked(size: 1000)
                    response.fault = OriginFault(.close, afterBodyBytes: UInt64(count))
                case .resetBeforeTheLastChunk:
                    response.framing = .chunked(size: 1000)
                    response.fault = OriginFault(.reset, afterBodyBytes: UInt64(count))
                }
            }
        }
    }

    @Test(
        "A truncated body is an error, and neither an entry nor a temporary file is left", arguments: Cut.allCases,
        [100, 300_000])
    func cut(_ cut: Cut, _ count: Int) async throws {
        let scene = try CacheFaultScene()
        try await TestOrigin.withOrigin { request in
            let whole = CacheFaultScene.answer(request)
            return request.headers.contains("X-Cut") ? cut.applied(to: whole, after: count / 2) : whole
        } run: { origin async throws in
            let session = scene.session(try await scene.openedCache())
            let request = try HTTPRequest(.get, origin, "/1/\(count)", CacheTransferFaultTests.cutting)
            await #expect(throws: HTTPError.self) { try await session.send(request) }
            #expect(await scene.isTidy())
            #expect(scene.entryFiles.isEmpty)
            try await CacheFaultScene.comesBack(1, count, session, origin)
        }
    }

    @Test("The entry that a truncated body would replace stays valid", arguments: Cut.allCases)
    func previous(_ cut: Cut) async throws {
        let scene = try CacheFaultScene()
        try await TestOrigin.withOrigin { request in
            let whole = CacheFaultScene.answer(request)
            return request.headers.contains("X-Cut") ? cut.applied(to: whole, after: 40_000) : whole
        } run: { origin async throws in
            let session = scene.session(try await scene.openedCache())
            try await CacheFaultScene.get(1, 100_000, session, origin)
            let request = try HTTPRequest(.get, origin, "/1/100000", CacheTransferFaultTests.cutting)
            var options = RequestOptions()
            options.cacheMode = .reload
            await #expect(throws: HTTPError.self) { try await session.send(request, options: options) }
            #expect(try await CacheFaultScene.get(1, 100_000, session, origin) == .cache)
            #expect(await scene.isTidy())
        }
    }

    private static var cutting: HTTPFields {
        var fields = HTTPFields()
        if let name = HTTPField.Name("X-Cut") { fields[name] = "1" }
        return fields
    }

    @Test("Bytes after the announced length are not stored")
    func tooLong() async throws {
        let scene = try CacheFaultScene()
        let script = ServerScript(
            .expectRequestHead,
            .send("HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 5\r\n\r\nhello, world"),
            .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = scene.session(try await scene.openedCache())
            #expect(try await session.get(origin.url()).text == "hello")
            #expect(try await session.get(origin.url()).text == "hello")
        }
    }

    @Test(
        "A reader that stops in the middle ends the transfer, and nothing is stored",
        arguments: [false, true])
    func stopped(isCancelled: Bool) async throws {
        let scene = try CacheFaultScene()
        try await TestOrigin.withOrigin { request in
            let whole = CacheFaultScene.answer(request)
            guard request.path == "/7/16000000" else { return whole }
            return whole.with { $0.fault = OriginFault(.stall, afterBodyBytes: 200_000) }
        } run: { origin async throws in
            let session = scene.session(try await scene.openedCache())
            let request = try HTTPRequest(.get, origin, "/7/16000000")
            let reached = Reached()
            let task = Task {
                try await session.stream(request) { _, body in
                    for try await _ in body {
                        reached.note()
                        if !isCancelled { break }
                    }
                }
            }
            #expect(await eventually { reached.isReached })
            if isCancelled {
                task.cancel()
                await #expect(throws: CancellationError.self) { try await task.value }
            } else {
                try await task.value
            }
            #expect(await eventually { origin.openConnectionCount == 0 })
            #expect(await scene.isTidy())
            #expect(scene.entryFiles.isEmpty)
            try await CacheFaultScene.comesBack(1, 3_000_000, session, origin)
        }
    }

    @Test(
        "A body above an eighth of the disk capacity is delivered, not stored, and reported",
        arguments: [false, true])
    func tooLarge(isChunked: Bool) async throws {
        let scene = try CacheFaultScene()
        try await TestOrigin.withOrigin { request in
            CacheFaultScene.answer(request).with { if isChunked { $0.framing = .chunked(size: 10_000) } }
        } run: { origin async throws in
            let session = scene.session(try await scene.openedCache(disk: .mebibytes(1)))
            #expect(try await CacheFaultScene.get(1, 200_000, session, origin) == .network)
            #expect(try await CacheFaultScene.get(1, 200_000, session, origin) == .network)
            let isReported = await scene.hears {
                guard case .tooLarge(let url, let count, let limit) = $0 else { return false }
                return url == origin.url("/1/200000") && limit == 1 << 17
                    && (isChunked ? count > limit && count <= 200_000 : count == 200_000)
            }
            #expect(isReported)
            #expect(await scene.isTidy())
            #expect(scene.entryFiles.isEmpty)
            try await CacheFaultScene.comesBack(2, 100_000, session, origin)
        }
    }

    @Test(
        "A body that is removed, replaced or evicted while it is read is read to its end", arguments: 0..<4)
    func removedWhileRead(_ way: Int) async throws {
        let scene = try CacheFaultScene()
        let size = 1_000_000
        try await CacheFaultScene.withOrigin { origin in
            let cache = try await scene.openedCache(disk: .mebibytes(9))
            let session = scene.session(cache)
            try await CacheFaultScene.comesBack(1, size, session, origin)
            let url = try HTTPURL(origin.url("/1/\(size)"))
            try await session.stream(try HTTPRequest(.get, origin, "/1/\(size)")) { _, body in
                var received: [UInt8] = []
                for try await piece in body {
                    if received.isEmpty {
                        switch way {
                        case 0: await cache.remove(url)
                        case 1: await cache.removeAll()
                        case 2: _ = try await session.post(origin.url("/1/\(size)"), body: .bytes([1]))
                        default:
                            for number in 10..<20 {
                                try await CacheFaultScene.get(number, size, session, origin)
                            }
                        }
                    }
                    received += piece
                }
                #expect(received.count == size && TestPattern.firstMismatch(in: received, at: 1) == nil)
            }
            #expect(try await CacheFaultScene.get(1, size, session, origin) == .network)
            #expect(await scene.isTidy())
        }
    }

    @Test("Entries that are removed while others read them are hits or misses, but never wrong")
    func removedAmongReaders() async throws {
        let scene = try CacheFaultScene()
        try await CacheFaultScene.withOrigin { origin in
            let cache = try await scene.openedCache(memory: .mebibytes(1))
            let session = scene.session(cache)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for reader in 0..<6 {
                    group.addTask {
                        for turn in 0..<40 {
                            let number = (turn * 7 + reader * 3) % 10
                            let count = number % 2 == 0 ? 500 : 70_000
                            try await CacheFaultScene.get(number, count, session, origin)
                        }
                    }
                }
                group.addTask {
                    for turn in 0..<60 {
                        if turn % 5 == 0 {
                            await cache.removeAll()
                        } else {
                            let number = turn % 10
                            let count = number % 2 == 0 ? 500 : 70_000
                            await cache.remove(try HTTPURL(origin.url("/\(number)/\(count)")))
                        }
                    }
                }
                try await group.waitForAll()
            }
            try await CacheFaultScene.comesBack(1, 70_000, session, origin)
        }
    }
}
