import Martlet
import MartletTesting
import MartletTestSupport
import MartletTransport
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletNetwork

/// A reference that keeps nothing.
private struct WeakReference<Object: AnyObject> {
    weak var object: Object?

    init(_ object: Object?) { self.object = object }
}

extension WeakReference: Sendable where Object: Sendable {}

/// Whether the current task reports the end of a stored body.
private enum BodyEndReport {
    @TaskLocal static var isRunning = false
}

@Suite("Values decoded from bodies")
struct DecodedCacheTests {
    private static let url = "http://a/picture"

    /// Begins so many requests for the URL.
    private func tasks(
        _ count: Int, _ cache: DecodedCache<DecodedText>
    ) -> [Task<DecodedText, any Error>] {
        (0..<count).map { _ in Task { try await cache.value(for: Self.url) } }
    }

    /// How many wait for what runs.
    private func isWaiting(_ count: Int, _ cache: DecodedCache<DecodedText>) async -> Bool {
        await eventually { cache.waiterCount == count }
    }

    /// A scene and its cache, where requests that begin wait at the gate.
    private func heldScene(
        _ representation: UInt64? = 7
    ) -> (scene: DecodedScene, cache: DecodedCache<DecodedText>, gate: Outcome<Void>) {
        let scene = DecodedScene(representation)
        let gate = Outcome<Void>()
        scene.holdFetches(gate)
        return (scene, scene.cache(), gate)
    }

    /// A scene and its cache, where one request has come to its decoding, which waits at the gate.
    private func decodingScene() async -> (
        scene: DecodedScene, cache: DecodedCache<DecodedText>, gate: Outcome<Void>,
        first: [Task<DecodedText, any Error>]
    ) {
        let scene = DecodedScene(7)
        let cache = scene.cache()
        let gate = Outcome<Void>()
        scene.holdDecodings(gate)
        let first = tasks(1, cache)
        #expect(await eventually { scene.decodings == 1 })
        return (scene, cache, gate, first)
    }

    @Test("A picture whose body is unchanged is decoded once, and asked for at the session each time")
    func reused() async throws {
        let scene = DecodedScene(7)
        let cache = scene.cache()
        let values = [
            try await cache.value(for: Self.url), try await cache.value(for: Self.url),
            try await cache.value(for: try HTTPRequest(method: .get, url: Self.url)),
        ]
        #expect(Set(values) == [DecodedText(text: "a", number: 1)])
        #expect(scene.fetches.count == 3 && scene.decodings == 1)
        #expect(cache.count == 1 && cache.cost == 1)
    }

    @Test(
        "A picture whose body was replaced is decoded anew; the old one is dropped where that is told, and never used",
        arguments: [true, false])
    func replaced(isReported: Bool) async throws {
        let scene = DecodedScene(7)
        let cache = scene.cache()
        _ = try await cache.value(for: Self.url)
        scene.answer { $0 = .init(body: "bc", representation: 8) }
        if isReported {
            cache.representationEnded(7)
            #expect(cache.count == 0 && cache.cost == 0)
        }
        #expect(try await cache.value(for: Self.url).text == "bc")
        if isReported { #expect(cache.count == 1 && cache.cost == 2) }
    }

    @Test("Fifty requests for one picture at once make one request and one decoding")
    func merged() async throws {
        let (scene, cache, gate) = heldScene()
        let tasks = tasks(50, cache)
        #expect(await isWaiting(50, cache))
        gate.settle(.success(()))
        for task in tasks { #expect(try await task.value.number == 1) }
        #expect(scene.fetches.count == 1 && scene.decodings == 1)
    }

    @Test("Requests that come while the picture is decoded wait for that decoding")
    func mergedLate() async throws {
        let (scene, cache, gate, first) = await decodingScene()
        let others = tasks(5, cache)
        #expect(await isWaiting(6, cache))
        gate.settle(.success(()))
        for task in first + others { #expect(try await task.value.number == 1) }
        #expect(scene.decodings == 1)
    }

    @Test("An answer that is not stored serves those who waited for it, and nobody after them")
    func notStored() async throws {
        let (scene, cache, gate) = heldScene(nil)
        let tasks = tasks(5, cache)
        #expect(await isWaiting(5, cache))
        gate.settle(.success(()))
        for task in tasks { #expect(try await task.value.number == 1) }
        #expect(cache.count == 0)
        #expect(try await cache.value(for: Self.url).number == 2)
        #expect(scene.fetches.count == 2)
    }

    @Test("Cancelling one that waits ends its wait, and the others get their picture")
    func cancelledOne() async throws {
        let (scene, cache, gate) = heldScene()
        let tasks = tasks(3, cache)
        #expect(await isWaiting(3, cache))
        tasks[0].cancel()
        await #expect(throws: CancellationError.self) { try await tasks[0].value }
        #expect(cache.waiterCount == 2)
        gate.settle(.success(()))
        for task in tasks.dropFirst() { #expect(try await task.value.number == 1) }
        #expect(scene.cancelledFetches == 0)
    }

    @Test("Cancelling all that wait cancels the request")
    func cancelledAll() async throws {
        let (scene, cache, _) = heldScene()
        let tasks = tasks(3, cache)
        #expect(await isWaiting(3, cache))
        #expect(await eventually { scene.fetches.count == 1 })
        for task in tasks { task.cancel() }
        for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
        #expect(await eventually { scene.cancelledFetches == 1 })
        #expect(cache.waiterCount == 0)
        scene.holdFetches(nil)
        #expect(try await cache.value(for: Self.url).number == 1)
    }

    @Test("Cancelling all that wait cancels the decoding, and the next decodes anew")
    func cancelledDecoding() async throws {
        let (scene, cache, _, tasks) = await decodingScene()
        tasks[0].cancel()
        await #expect(throws: CancellationError.self) { try await tasks[0].value }
        #expect(await eventually { scene.cancelledDecodings == 1 })
        scene.holdDecodings(nil)
        #expect(try await cache.value(for: Self.url).number == 2)
    }

    @Test("A task that is cancelled before it asks asks nobody")
    func cancelledBefore() async {
        let scene = DecodedScene(7)
        let cache = scene.cache()
        let gate = Outcome<Void>()
        let task = Task {
            _ = try? await gate.value
            return try await cache.value(for: Self.url)
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(scene.fetches.count == 0)
    }

    @Test("An error of the decoding goes to all who wait, and the next request decodes anew")
    func refused() async throws {
        let (scene, cache, gate) = heldScene()
        scene.refuse(1)
        let tasks = tasks(3, cache)
        #expect(await isWaiting(3, cache))
        gate.settle(.success(()))
        for task in tasks { await #expect(throws: DecodedScene.Refused.self) { try await task.value } }
        #expect(cache.count == 0)
        #expect(try await cache.value(for: Self.url).number == 2)
    }

    @Test("An answer whose status is not 2xx is an error that carries it, and is not decoded")
    func status() async throws {
        let scene = DecodedScene(7)
        scene.answer { $0.status = 404 }
        let cache = scene.cache()
        let error = await #expect(throws: HTTPError.self) { try await cache.value(for: Self.url) }
        #expect(error?.code == .unacceptableStatus && error?.exchange?.statusCode == 404)
        #expect(scene.decodings == 0)
    }

    @Test("Requests with other fields, or another priority, have a request and a value of their own")
    func different() async throws {
        let (scene, cache, gate) = heldScene()
        let plain = Task { try await cache.value(for: Self.url) }
        let known = Task { try await cache.value(for: Self.url, headers: [.authorization: "Bearer t"]) }
        let urgent = Task { try await cache.value(for: Self.url, options: RequestOptions(priority: .high)) }
        let named = Task { try await cache.value(for: "http://alice:secret@a/picture") }
        #expect(await eventually { scene.fetches.count == 4 })
        gate.settle(.success(()))
        let values = [
            try await plain.value, try await known.value, try await urgent.value, try await named.value,
        ]
        // The priority makes no difference to the value.
        #expect(values[2] == values[0] && Set(values).count == 3)
        #expect(cache.count == 3)
    }

    @Test("Values are bounded by their cost; one above the limit is delivered and not kept")
    func bounded() async throws {
        let scene = DecodedScene(1)
        let cache = scene.cache(limit: .bytes(10))
        for number in 1...5 {
            scene.answer { $0 = .init(body: "1234", representation: UInt64(number)) }
            _ = try await cache.value(for: "http://a/\(number)")
        }
        #expect(cache.count == 2 && cache.cost == 8)
        scene.answer { $0 = .init(body: "12345678901", representation: 9) }
        #expect(try await cache.value(for: "http://a/9").text == "12345678901")
        #expect(cache.count == 2 && cache.cost == 8)
        #expect(cache.limit == .bytes(10) && cache.countLimit == 10_000)
    }

    @Test("Values are removed by URL, by request, and all at once")
    func removed() async throws {
        let scene = DecodedScene(1)
        let cache = scene.cache()
        let request = try HTTPRequest(method: .get, url: "http://a/1", headers: [.accept: "image/png"])
        _ = try await cache.value(for: "http://a/1")
        _ = try await cache.value(for: request)
        _ = try await cache.value(for: "http://a/2")
        _ = try await cache.value(for: "http://a/3")
        cache.remove(for: request)
        #expect(cache.count == 3)
        _ = try await cache.value(for: request)
        try cache.remove(for: "HTTP://A:80/1")
        #expect(cache.count == 2)
        #expect(throws: HTTPError.self) { try cache.remove(for: "nonsense") }
        cache.removeAll()
        #expect(cache.count == 0 && cache.cost == 0)
    }

    @Test("Pressure on memory halves what is kept, or empties it")
    func pressure() async throws {
        let scene = DecodedScene(1)
        let pressure = ManualMemoryPressure()
        let cache = scene.cache(limit: .bytes(8), memoryPressure: pressure.source)
        for number in 1...4 {
            scene.answer { $0 = .init(body: "12", representation: UInt64(number)) }
            _ = try await cache.value(for: "http://a/\(number)")
        }
        #expect(cache.cost == 8)
        pressure.set(.warning)
        #expect(await eventually { cache.cost == 4 })
        pressure.set(.critical)
        #expect(await eventually { cache.count == 0 })
    }

    @Test("A cache that nobody holds ends, though it follows the pressure on memory")
    func dropped() async throws {
        let scene = DecodedScene(1)
        let pressure = ManualMemoryPressure()
        var cache: DecodedCache<DecodedText>? = scene.cache(memoryPressure: pressure.source)
        _ = try await cache?.value(for: Self.url)
        let weakly = WeakReference(cache)
        cache = nil
        #expect(await eventually { weakly.object == nil })
        withExtendedLifetime(pressure) {}
    }

    @Test("Values that ask the cache when they end do not wait for themselves")
    func endingValues() async throws {
        final class Asking: Sendable {
            let cache: DecodedCache<Asking>
            init(_ cache: DecodedCache<Asking>) { self.cache = cache }
            deinit { _ = cache.count }
        }
        let scene = DecodedScene(1)
        // Weak, so that the decoder does not keep the cache that keeps it.
        let box = Outcome<WeakReference<DecodedCache<Asking>>>()
        let cache = DecodedCache<Asking>(
            fetch: { try await scene.exchange($0) }, limit: .bytes(1), cost: { _ in 1 },
            decode: { _ in Asking(try #require(try await box.value.object)) })
        box.settle(.success(WeakReference(cache)))
        for number in 1...3 {
            scene.answer { $0.representation = UInt64(number) }
            _ = try await cache.value(for: "http://a/\(number)")
        }
        cache.representationEnded(3)
        #expect(cache.count == 0)
    }

    @Test("A value whose stored body ends is not released by the response cache, which holds locks then")
    func endingBody() async throws {
        final class Recording: Sendable {
            let isEnding: Outcome<Bool>
            init(_ isEnding: Outcome<Bool>) { self.isEnding = isEnding }
            deinit { isEnding.settle(.success(BodyEndReport.isRunning)) }
        }
        let scene = DecodedScene(7)
        let isEnding = Outcome<Bool>()
        let cache = DecodedCache<Recording>(
            fetch: { try await scene.exchange($0) }, limit: .bytes(1), cost: { _ in 1 },
            decode: { _ in Recording(isEnding) })
        _ = try await cache.value(for: Self.url)
        BodyEndReport.$isRunning.withValue(true) { cache.representationEnded(7) }
        #expect(await eventually { isEnding.settled != nil })
        #expect(try isEnding.settled?.get() == false)
    }

    @Test("Printed, a cache says how much it holds and nothing of what was asked")
    func printed() async throws {
        let cache = DecodedScene(1).cache()
        _ = try await cache.value(for: "http://alice:secret@a/token")
        #expect("\(cache)" == "DecodedCache<DecodedText>: 1 values, cost 1 of 1000")
        var text = ""
        dump(cache, to: &text)
        #expect(!text.contains("secret") && !text.contains("token"))
    }

    @Test("A storm of requests, cancels and ends leaves nothing running, and the limit holds")
    func storm() async throws {
        let scene = DecodedScene(1)
        let cache = scene.cache(limit: .bytes(6))
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<400 {
                let task = Task { try await cache.value(for: "http://a/\(number % 5)") }
                if number % 3 == 0 { task.cancel() }
                if number % 7 == 0 { cache.representationEnded(UInt64(number % 4)) }
                if number % 50 == 0 { cache.removeAll() }
                scene.answer { $0.representation = UInt64(number % 4) }
                group.addTask { _ = try? await task.value }
            }
        }
        #expect(cache.waiterCount == 0)
        #expect(await eventually { cache.taskCount == 0 })
        #expect(cache.cost <= 6)
    }

    @Test(
        "Through a session, pictures asked for at once come in one request, whose decoding leaves the loop alone"
    )
    func session() async throws {
        let signals = SignalBox()
        try await TestOrigin.withOrigin { _ in
            try await signals.wait(for: "go")
            return .text("picture")
        } run: { origin in
            signals.use(origin)
            let decodings = Counter()
            let cache = try DecodedCache<String>(
                session: ResponseCacheTests.session(), memoryPressure: nil, cost: { $0.utf8.count }
            ) { exchange in
                decodings.add()
                #expect(!EventLoop.sharedOrStalled.isCurrent)
                return exchange.text
            }
            let url = origin.url("/a.png")
            let tasks = (0..<10).map { _ in
                Task(executorPreference: HTTPSession.loopExecutor) { try await cache.value(for: url) }
            }
            #expect(await eventually { cache.waiterCount == 10 })
            origin.signals.raise("go")
            for task in tasks {
                let value = try await task.value
                #expect(value == "picture")
            }
            #expect(origin.requests.count == 1 && decodings.count == 1)
        }
    }

    @Test("Models are decoded by a response decoder, of content types that it takes")
    func decoder() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/text" ? .text("[1]") : .json(text: "[1, 2]")
        } run: { origin in
            let cache = try DecodedCache(
                session: ResponseCacheTests.session(), using: .json([Int].self), memoryPressure: nil,
                cost: { $0.count })
            let numbers = try await cache.value(for: origin.url("/json"))
            #expect(numbers == [1, 2])
            let error = await #expect(throws: HTTPError.self) {
                try await cache.value(for: origin.url("/text"))
            }
            #expect(error?.code == .unacceptableContentType)
        }
    }

    @Test("A name and a password in the URL are sent to its origin")
    func credentials() async throws {
        try await TestOrigin.withOrigin { request in
            request.fields["Authorization"] == nil
                ? OriginResponse(401, fields: ["WWW-Authenticate": "Basic realm=\"r\""]) : .text("in")
        } run: { origin in
            let cache = try DecodedCache<String>(
                session: ResponseCacheTests.session(), memoryPressure: nil, cost: { $0.count }
            ) { $0.text }
            let url = origin.url("/").replacing("http://", with: "http://alice:secret@")
            let value = try await cache.value(for: url)
            #expect(value == "in")
            await #expect(throws: HTTPError.self) { try await cache.value(for: origin.url("/")) }
        }
    }

    @Test("A cache of values over a session without a response cache says that it would keep nothing")
    func withoutCache() throws {
        let error = #expect(throws: HTTPError.self) {
            try DecodedCache<String>(session: .own(), memoryPressure: nil, cost: { $0.count }) { $0.text }
        }
        #expect(error?.code == .invalidRequest)
        #expect(error?.message.contains("configuration.cache") == true)
    }
}
