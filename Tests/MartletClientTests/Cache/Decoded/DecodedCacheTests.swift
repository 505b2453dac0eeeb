import Martlet
import MartletTesting
import MartletTestSupport
import MartletTransport
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletConditions

/// A weak reference to an object.
private struct WeakReference<Object: AnyObject> {
    weak var object: Object?

    init(_ object: Object?) { self.object = object }
}

extension WeakReference: Sendable where Object: Sendable {}

/// Whether the current task is reporting the end of a stored body.
private enum BodyEndReport {
    @TaskLocal static var isRunning = false
}

@Suite("Cache of decoded values")
struct DecodedCacheTests {
    private static let url = "http://a/picture"

    /// Starts a number of requests for the URL.
    private func tasks(
        _ count: Int, _ cache: DecodedCache<DecodedText>
    ) -> [Task<DecodedText, any Error>] {
        (0..<count).map { _ in Task { try await cache.value(for: Self.url) } }
    }

    /// Waits until the cache has a number of waiters.
    private func isWaiting(_ count: Int, _ cache: DecodedCache<DecodedText>) async -> Bool {
        await eventually { cache.waiterCount == count }
    }

    /// Makes a scene and its cache. New requests wait at the gate.
    private func heldScene(
        _ representation: UInt64? = 7
    ) -> (scene: DecodedScene, cache: DecodedCache<DecodedText>, gate: Promise<Void>) {
        let scene = DecodedScene(representation)
        let gate = Promise<Void>()
        scene.holdFetches(gate)
        return (scene, scene.cache(), gate)
    }

    /// Makes a scene and its cache with one request whose decoding waits at the gate.
    private func decodingScene() async -> (
        scene: DecodedScene, cache: DecodedCache<DecodedText>, gate: Promise<Void>,
        first: [Task<DecodedText, any Error>]
    ) {
        let scene = DecodedScene(7)
        let cache = scene.cache()
        let gate = Promise<Void>()
        scene.holdDecodings(gate)
        let first = tasks(1, cache)
        #expect(await eventually { scene.decodings == 1 })
        return (scene, cache, gate, first)
    }

    @Test("A value with an unchanged body is decoded once, and the session is called each time")
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
        "A replaced body is decoded again, and its old value is dropped if the end was reported",
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

    @Test("Fifty concurrent requests for a value make one request and one decoding")
    func merged() async throws {
        let (scene, cache, gate) = heldScene()
        let tasks = tasks(50, cache)
        #expect(await isWaiting(50, cache))
        gate.settle(.success(()))
        for task in tasks { #expect(try await task.value.number == 1) }
        #expect(scene.fetches.count == 1 && scene.decodings == 1)
    }

    @Test("Requests that arrive during the decoding wait for it")
    func mergedLate() async throws {
        let (scene, cache, gate, first) = await decodingScene()
        let others = tasks(5, cache)
        #expect(await isWaiting(6, cache))
        gate.settle(.success(()))
        for task in first + others { #expect(try await task.value.number == 1) }
        #expect(scene.decodings == 1)
    }

    @Test("A response that is not stored serves only the requests that already wait for it")
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

    @Test("Cancelling one waiter ends its wait, and the others get the value")
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

    @Test("Cancelling all waiters cancels the request")
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

    @Test("Cancelling all waiters cancels the decoding, and the next request decodes again")
    func cancelledDecoding() async throws {
        let (scene, cache, _, tasks) = await decodingScene()
        tasks[0].cancel()
        await #expect(throws: CancellationError.self) { try await tasks[0].value }
        #expect(await eventually { scene.cancelledDecodings == 1 })
        scene.holdDecodings(nil)
        #expect(try await cache.value(for: Self.url).number == 2)
    }

    @Test("A task that is already cancelled sends no request")
    func cancelledBefore() async {
        let scene = DecodedScene(7)
        let cache = scene.cache()
        let gate = Promise<Void>()
        let task = Task {
            _ = try? await gate.value
            return try await cache.value(for: Self.url)
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(scene.fetches.count == 0)
    }

    @Test("A decoding error is thrown to all waiters, and the next request decodes again")
    func rejected() async throws {
        let (scene, cache, gate) = heldScene()
        scene.reject(1)
        let tasks = tasks(3, cache)
        #expect(await isWaiting(3, cache))
        gate.settle(.success(()))
        for task in tasks { await #expect(throws: DecodedScene.Rejected.self) { try await task.value } }
        #expect(cache.count == 0)
        #expect(try await cache.value(for: Self.url).number == 2)
    }

    @Test("A response whose status is not 2xx is an error with the response and is not decoded")
    func status() async throws {
        let scene = DecodedScene(7)
        scene.answer { $0.status = 404 }
        let cache = scene.cache()
        let error = await #expect(throws: HTTPError.self) { try await cache.value(for: Self.url) }
        #expect(error?.code == .unacceptableStatus && error?.exchange?.statusCode == 404)
        #expect(scene.decodings == 0)
    }

    @Test("Requests with other fields, priority or credentials are sent separately")
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
        // The priority does not affect the value.
        #expect(values[2] == values[0] && Set(values).count == 3)
        #expect(cache.count == 3)
    }

    @Test("Values are limited by cost, and a value above the limit is delivered but not cached")
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

    @Test("Values can be removed by URL, by request and all together")
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

    @Test("Memory pressure halves or empties the cache")
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

    @Test("A released cache ends although it follows memory pressure")
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

    @Test("Values that use the cache in their deinitializer do not deadlock")
    func endingValues() async throws {
        final class Asking: Sendable {
            let cache: DecodedCache<Asking>
            init(_ cache: DecodedCache<Asking>) { self.cache = cache }
            deinit { _ = cache.count }
        }
        let scene = DecodedScene(1)
        // Weak, because the cache retains the decoder.
        let box = Promise<WeakReference<DecodedCache<Asking>>>()
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

    @Test("A value is not released on the response cache's thread, which holds locks when a body ends")
    func endingBody() async throws {
        final class Recording: Sendable {
            let isEnding: Promise<Bool>
            init(_ isEnding: Promise<Bool>) { self.isEnding = isEnding }
            deinit { isEnding.settle(.success(BodyEndReport.isRunning)) }
        }
        let scene = DecodedScene(7)
        let isEnding = Promise<Bool>()
        let cache = DecodedCache<Recording>(
            fetch: { try await scene.exchange($0) }, limit: .bytes(1), cost: { _ in 1 },
            decode: { _ in Recording(isEnding) })
        _ = try await cache.value(for: Self.url)
        BodyEndReport.$isRunning.withValue(true) { cache.representationEnded(7) }
        #expect(await eventually { isEnding.settled != nil })
        #expect(try isEnding.settled?.get() == false)
    }

    @Test("A description contains the size of the cache but no URLs")
    func printed() async throws {
        let cache = DecodedScene(1).cache()
        _ = try await cache.value(for: "http://alice:secret@a/token")
        #expect("\(cache)" == "DecodedCache<DecodedText>: 1 values, cost 1 of 1000")
        var text = ""
        dump(cache, to: &text)
        #expect(!text.contains("secret") && !text.contains("token"))
    }

    @Test("Many requests, cancellations and ends leave no task running and keep the limit")
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
        "Concurrent calls through a session share one request and decode off the event loop"
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

    @Test("A response decoder decodes models and rejects other content types")
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

    @Test("Credentials in the URL are sent to its origin")
    func credentials() async throws {
        try await TestOrigin.withOrigin { request in
            request.headers["Authorization"] == nil
                ? OriginResponse(401, headers: ["WWW-Authenticate": "Basic realm=\"r\""]) : .text("in")
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

    @Test("Creating a cache over a session without a response cache is an error")
    func withoutCache() throws {
        let error = #expect(throws: HTTPError.self) {
            try DecodedCache<String>(session: .own(), memoryPressure: nil, cost: { $0.count }) { $0.text }
        }
        #expect(error?.code == .invalidRequest)
        #expect(error?.message.contains("configuration.cache") == true)
    }
}
