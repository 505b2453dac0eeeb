import Martlet
import MartletTesting
import MartletTestSupport
import MartletWire
import Synchronization
import SystemPackage
import Testing

@testable import MartletCache
@testable import MartletCaching
@testable import MartletCore
@testable import MartletHosts

@Suite("Bodies short enough to be held until they are stored")
struct ShortBodyTests {
    /// Makes a flight that stores into memory, and its first member.
    private func flight(length: Int, memory: Int = 16 << 20) throws -> (
        CacheFlight, FlightMember, ResponseStore
    ) {
        let store = ResponseStore(memoryLimit: memory, disk: nil)
        let head = StoredHead(
            key: CacheKey(url: "http://a/"), status: 200, reason: "", fields: FieldBlock(), requestTime: .now,
            responseTime: .now)
        let flight = CacheFlight(loop: .sharedOrStalled, tracer: nil, isUnattended: false) { true }
        let member = try #require(flight.join())
        let writer = try #require(
            store.begin(head, expectedByteCount: UInt64(length), epoch: store.epoch))
        flight.begin(writer, byteCount: UInt64(length))
        try flight.landTransfer(of: StoredVariant(head: head, bodyLength: UInt64(length)))
        return (flight, member, store)
    }

    private func end(_ flight: CacheFlight) {
        flight.noteWhole { flight.end(.complete(flight.state.withLock { $0.writer }?.commit(trailers: nil))) }
    }

    @Test("A collecting reader waits once and gets the whole body without a copy")
    func collected() throws {
        let body = TestPattern.bytes(from: 0, count: 900_000)
        let (flight, member, store) = try flight(length: body.count)
        flight.append(Array(body[..<1000]))
        member.collect()
        guard case .wait(let wait) = member.piece() else {
            Issue.record("it got a part")
            return
        }
        for start in stride(from: 1000, to: body.count, by: 100_000) {
            flight.append(Array(body[start..<min(body.count, start + 100_000)]))
        }
        let isAwaited = flight.state.withLock { $0.readers[member.number]?.waiter === wait }
        #expect(isAwaited)
        end(flight)
        guard case .bytes(let bytes) = member.piece() else {
            Issue.record("it got nothing")
            return
        }
        #expect(bytes == body)
        let stored = try #require(store.inMemory(CacheKey(url: "http://a/")).first)
        guard case .bytes(let held) = stored.body, case .end = member.piece() else {
            Issue.record("it is not stored, or not over")
            return
        }
        let isOne = unsafe bytes.withUnsafeBufferPointer { one in
            unsafe held.withUnsafeBufferPointer { unsafe $0.baseAddress == one.baseAddress }
        }
        #expect(isOne)
    }

    @Test("A reader of pieces gets each piece as it arrives, next to a collecting reader")
    func mixed() throws {
        let body = TestPattern.bytes(from: 0, count: 300_000)
        let (flight, collector, _) = try flight(length: body.count)
        let reader = try #require(flight.join())
        collector.collect()
        var read: [UInt8] = []
        for start in stride(from: 0, to: body.count, by: 60_000) {
            flight.append(Array(body[start..<(start + 60_000)]))
            while case .bytes(let bytes) = reader.piece() { read += bytes }
            #expect(read.count == start + 60_000)
        }
        end(flight)
        #expect(read == body)
        guard case .bytes(let bytes) = collector.piece(), case .end = reader.piece()
        else {
            Issue.record("it is not over")
            return
        }
        #expect(bytes == body)
    }

    @Test("A body is received at the speed of a reader of pieces, but without waiting for a collecting reader")
    func demand() async throws {
        let (flight, member, _) = try flight(length: 1_000_000)
        flight.append([UInt8](repeating: 1, count: 300_000))
        let waiting = Task { await flight.waitForDemand() }
        #expect(await eventually { flight.state.withLock { $0.pump != nil } })
        member.collect()
        #expect(await waiting.value)
        flight.append([UInt8](repeating: 1, count: 600_000))
        #expect(await flight.waitForDemand())
    }

    @Test("A collecting reader of a truncated body gets the received bytes and then the error")
    func cut() throws {
        let (flight, member, _) = try flight(length: 1000)
        member.collect()
        flight.append([1, 2, 3])
        guard case .wait = member.piece() else {
            Issue.record("it got a part")
            return
        }
        flight.end(.failed(CancellationError()))
        guard case .bytes([1, 2, 3]) = member.piece(), case .failed = member.piece()
        else {
            Issue.record("it got something else")
            return
        }
    }

    @Test(
        "Bodies of every length are stored and served again completely",
        arguments: [true, false])
    func lengths(hasDisk: Bool) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { request in
            CacheScene.answer("").with { $0.body = .pattern(UInt64(request.target.dropFirst()) ?? 0) }
        } run: { origin async throws in
            let cache =
                hasDisk
                ? try ResponseCache.at(FilePath(directory.path).appending("cache"), memory: .bytes(0))
                : .memoryOnly(.mebibytes(32))
            let session = HTTPSession.own { $0.cache = cache }
            let lengths = [1, 16_384, 40_000, 300_000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3_000_000]
            for (number, length) in lengths.enumerated() {
                for source in [HTTPExchange.Source.network, .cache] {
                    let answer = try await session.get(origin.url("/\(length)"))
                    #expect(answer.source == source && answer.body.count == length, "\(length) bytes")
                    #expect(TestPattern.firstMismatch(in: answer.body, at: 0) == nil)
                }
                #expect(cache.statistics.stores == number + 1)
            }
        }
    }

    @Test("A failed flight accepts no new members")
    func failed() throws {
        let (flight, member, _) = try flight(length: 10)
        flight.end(.failed(CancellationError()))
        #expect(flight.join() == nil)
        member.leave()
    }

    @Test("The error of a total timeout contains the bytes that were received before")
    func timedOut() async throws {
        let signals = SignalBox()
        try await TestOrigin.withOrigin { _ in
            CacheScene.answer("").with {
                $0.body = .stream(length: 200_000) { writer in
                    try await writer.write(TestPattern.bytes(from: 0, count: 50_000))
                    try await signals.wait(for: "go")
                }
            }
        } run: { origin async throws in
            signals.use(origin)
            let (session, _) = try CacheScene.session()
            let options = RequestOptions(timeouts: .patient(total: .seconds(2)))
            let error = await #expect(throws: HTTPError.self) {
                try await session.get(origin.url(), options: options)
            }
            #expect(error?.timeout == .total)
            let body = error?.exchange?.body ?? []
            #expect(body.isEmpty || body.count == 50_000 && TestPattern.firstMismatch(in: body, at: 0) == nil)
            signals.raise("go")
        }
    }

    @Test("A reload always gets a new response, even immediately after the last one")
    func reloads() async throws {
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            counter.add()
            return CacheScene.answer("\(counter.count)")
        } run: { origin async throws in
            let (session, _) = try CacheScene.session()
            for number in 1...50 {
                let answer = try await session.get(origin.url(), options: CacheScene.mode(.reload))
                #expect(answer.text == "\(number)")
            }
        }
    }
}

extension CacheFlight {
    /// Delivers a response with a shared body to the members. The network gave no length for the body.
    func landTransfer(of variant: StoredVariant) throws {
        let call = try Call(
            .get, HTTPFields(), url: try HTTPSession.url("http://a/"), body: .none, options: RequestOptions(),
            settings: SessionSettings(.ephemeral))
        let body = CachedBody(.bytes([]), in: .memoryOnly(), of: nil, loop: loop)
        let network = StreamedResponse(
            call: call, channel: .stored(body), head: ResponseHead(status: 200, fields: FieldBlock()),
            codings: [], expectedContentLength: nil, hasTrailers: false, interim: [], attempts: 1,
            waited: call.start)
        decide(.transfer(Transfer(variant: variant, network: network, status: .nothing), .coming))
    }
}
