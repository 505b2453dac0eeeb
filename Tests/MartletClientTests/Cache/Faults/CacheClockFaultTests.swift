import FoundationEssentials
import Martlet
import MartletCache
import MartletTesting
import MartletWire
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletDiagnostics
@testable import MartletHosts

/// Tests of clocks that are set between storing and serving. Entries carry the time of the clock when they were stored,
/// so after a clock is set back by a day, their times are a day in the future.
@Suite("Requests through a cache after a clock change")
struct CacheClockFaultTests {
    /// A change of the clock since a response was stored, and the response's Cache-Control.
    struct Shift: Sendable, CustomTestStringConvertible {
        let name: String
        /// The change in seconds.
        let seconds: Int64
        let control: String
        let isFresh: Bool

        init(_ name: String, _ seconds: Int64, _ control: String, isFresh: Bool = false) {
            self.name = name
            self.seconds = seconds
            self.control = control
            self.isFresh = isFresh
        }

        var testDescription: String { "\(name), \(control)" }

        static let year: Int64 = 365 * 86_400
        static let sinceEpoch = WallTime.now.seconds

        static let all = [
            Shift("not at all", 0, "max-age=600", isFresh: true),
            Shift("back by an hour", -3600, "max-age=600"),
            Shift("back by a day", -86_400, "max-age=600"),
            Shift("back by a day", -86_400, "max-age=31536000, immutable"),
            Shift("back by a day", -86_400, "max-age=99999999999"),
            Shift("back to 1970", -sinceEpoch, "max-age=600"),
            Shift("back to 1970", -sinceEpoch, "max-age=2147483648"),
            Shift("back from 2038", WallTime.now.seconds - (1 << 31), "max-age=600"),
            Shift("back from 2106", WallTime.now.seconds - (1 << 32), "max-age=600"),
            Shift("forward by a minute", 60, "max-age=600", isFresh: true),
            Shift("forward by a year", year, "max-age=600"),
            Shift("forward by a year", year, "max-age=63072000", isFresh: true),
            Shift("forward beyond 2038", 14 * year, "max-age=600"),
            Shift("forward by two centuries", 200 * year, "max-age=2147483648"),
            Shift("forward since before 1970", 2 * sinceEpoch, "max-age=600"),
        ]
    }

    /// Stores a response that was received a number of seconds ago by the current clock.
    private static func put(
        _ url: String, secondsAgo: Int64, _ fields: [(String, String)], _ body: [UInt8],
        in cache: ResponseCache
    ) throws {
        let time = WallTime(milliseconds: WallTime.now.milliseconds - secondsAgo * 1000)
        let head = StoredHead(
            key: CacheKey(url: url), status: 200, reason: "OK", fields: FieldBlock(fields), selections: [],
            requestTime: time, responseTime: time)
        let writer = try #require(
            cache.store.begin(head, expectedByteCount: UInt64(body.count), epoch: cache.store.epoch))
        #expect(writer.append(body))
        #expect(writer.commit(trailers: nil) != nil)
    }

    @Test(
        "After any change of the clock, no age is negative and no response stays fresh forever",
        arguments: Shift.all, [true, false])
    func shifted(_ shift: Shift, inMemory: Bool) async throws {
        let scene = try CacheFaultScene()
        try await TestOrigin.withOrigin { request in
            request.headers["If-None-Match"] == "\"1\""
                ? OriginResponse(304, headers: ["ETag": "\"1\"", "Cache-Control": "max-age=600"])
                : CacheScene.answer("from the network")
        } run: { origin async throws in
            let cache = try await scene.openedCache(memory: inMemory ? .mebibytes(1) : .bytes(0))
            let session = scene.session(cache)
            let url = origin.url()
            try CacheClockFaultTests.put(
                url, secondsAgo: shift.seconds, [("Cache-Control", shift.control), ("ETag", "\"1\"")],
                Array("stored".utf8), in: cache)
            let first = try await session.get(url)
            #expect(first.text == "stored" && first.statusCode == 200)
            #expect(first.source == (shift.isFresh ? .cache : .validatedCache))
            let age = try #require(first.field("Age").flatMap { Int64($0) })
            #expect(age >= 0 && age <= 1 << 31)
            if shift.isFresh { #expect(age >= shift.seconds) }
            // The validated response has the time of the current clock.
            let second = try await session.get(url)
            #expect(second.source == .cache && second.text == "stored")
            let later = try #require(second.field("Age").flatMap { Int64($0) })
            #expect(later >= (shift.isFresh ? age : 0) && later <= 1 << 31)
            #expect(origin.requests.count == (shift.isFresh ? 0 : 1))
        }
    }

    @Test("A wrong clock at the origin can make a response older but never younger")
    func originClock() async throws {
        let scene = try CacheFaultScene()
        try await TestOrigin.withOrigin { request in
            CacheScene.answer(
                "x", "max-age=600", ["Date": request.path == "/past" ? Self.past : Self.future])
        } run: { origin async throws in
            let session = scene.session(try await scene.openedCache())
            for _ in 0..<2 { #expect(try await session.get(origin.url("/past")).source == .network) }
            #expect(try await session.get(origin.url("/future")).source == .network)
            let second = try await session.get(origin.url("/future"))
            #expect(second.source == .cache)
            #expect(second.field("Age").flatMap { Int64($0) }.map { $0 >= 0 && $0 < 600 } == true)
        }
    }

    private static let past = "Thu, 01 Jan 1970 00:00:00 GMT"
    private static let future = "Sat, 01 Jan 2250 00:00:00 GMT"

    @Test(
        "Eviction follows the order of use, regardless of the clocks",
        arguments: [true, false])
    func order(isReopened: Bool) async throws {
        let scene = try CacheFaultScene()
        let shifts: [Int64] = [-86_400, 0, 40 * Shift.year, -Shift.year, 5, Shift.year, -5, 86_400]
        try await CacheFaultScene.withOrigin { origin in
            // The index is written before the cache is released.
            do {
                let cache = try await scene.openedCache(disk: .kibibytes(480))
                for (number, shift) in shifts.enumerated() {
                    try CacheClockFaultTests.put(
                        origin.url("/\(number)/30000"), secondsAgo: shift,
                        [("Cache-Control", "max-age=2147483648")],
                        TestPattern.bytes(from: UInt64(number), count: 30_000), in: cache)
                }
                let session = scene.session(cache)
                for number in [5, 1] {
                    #expect(try await CacheFaultScene.get(number, 30_000, session, origin) == .cache)
                }
                if !isReopened {
                    try await evict(session, origin)
                    return
                }
                await cache.flush()
                await session.invalidateAndCancel()
            }
            for (number, name) in scene.entryFiles.enumerated() {
                let date = Date(timeIntervalSince1970: number % 2 == 0 ? 86_400 : 4_000_000_000)
                try FileManager.default.setAttributes(
                    [.modificationDate: date], ofItemAtPath: "\(scene.path)/\(name)")
            }
            let session = scene.session(try await scene.openedCache(disk: .kibibytes(480)))
            try await evict(session, origin)
        }
    }

    /// Stores until some of the eight are evicted. These must be the least recently used.
    private func evict(_ session: HTTPSession, _ origin: TestOrigin) async throws {
        // About fourteen entries fit.
        for number in 20..<30 { try await CacheFaultScene.get(number, 30_000, session, origin) }
        for number in [5, 1] {
            #expect(try await CacheFaultScene.get(number, 30_000, session, origin) == .cache, "\(number)")
        }
        for number in [0, 3] {
            #expect(try await CacheFaultScene.get(number, 30_000, session, origin) == .network, "\(number)")
        }
    }
}
