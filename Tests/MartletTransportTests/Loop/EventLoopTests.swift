import Synchronization
import Testing

@testable import MartletTransport

@Suite("The event loop")
struct EventLoopTests {
    /// A timer target that records when it fired and returns the next time that the test wants.
    private final class Target: TimerTarget {
        let fired = OneShot<MonotonicTime>()
        let count = Atomic(0)
        let again: Duration?

        init(again: Duration? = nil) {
            self.again = again
        }

        func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
            let count = count.wrappingAdd(1, ordering: .relaxed).newValue
            if let again, count < 3 { return now.advanced(by: again) }
            fired.fulfill(now)
            return nil
        }
    }

    @Test("A timer does not fire before its time")
    func timer() async throws {
        let loop = try EventLoop.shared.get()
        let target = Target()
        let deadline = MonotonicTime.now().advanced(by: .milliseconds(10))
        loop.schedule(target, token: 1, at: deadline)
        guard case .value(let fired) = await target.fired.wait(until: .distantFuture, on: loop) else {
            return
        }
        #expect(fired >= deadline)
    }

    @Test("A timer that returns a later time is called again")
    func lazyTimer() async throws {
        let loop = try EventLoop.shared.get()
        let target = Target(again: .milliseconds(1))
        loop.schedule(target, token: 1, at: MonotonicTime.now())
        _ = await target.fired.wait(until: .distantFuture, on: loop)
        #expect(target.count.load(ordering: .relaxed) == 3)
    }

    @Test("A timer does not retain its target")
    func weakTimer() async throws {
        // The test has its own loop: in a shared one a sweep for other tests can hold the target during the check.
        let loop = try EventLoop.start()
        defer { loop.stop() }
        weak var reference: Target?
        do {
            let target = Target()
            reference = target
            loop.schedule(target, token: 1, at: MonotonicTime.now().advanced(by: .seconds(3600)))
        }
        #expect(reference == nil)
    }

    @Test("Timers whose targets are released are removed early, and the other timers still fire")
    func sweeps() async throws {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let hour = MonotonicTime.now().advanced(by: .seconds(3600))
        let kept = (0..<300).map { _ in Target() }
        for target in kept { loop.schedule(target, token: 1, at: hour) }
        let soon = Target()
        loop.schedule(soon, token: 1, at: MonotonicTime.now().advanced(by: .milliseconds(50)))
        for _ in 0..<20_000 { loop.schedule(Target(), token: 1, at: hour) }
        #expect(loop.timerCount >= 300)
        #expect(loop.timerCount <= 1024)
        _ = await soon.fired.wait(until: .distantFuture, on: loop)
        #expect(kept.allSatisfy { $0.count.load(ordering: .relaxed) == 0 })
    }

    @Test("A timer that is set earlier than the one the loop sleeps for fires in time")
    func overtakes() async throws {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let late = Target()
        loop.schedule(late, token: 1, at: MonotonicTime.now().advanced(by: .seconds(3600)))
        let soon = Target()
        loop.schedule(soon, token: 1, at: MonotonicTime.now().advanced(by: .milliseconds(5)))
        let limit = StreamPair.soon
        guard case .value = await soon.fired.wait(until: limit, on: try EventLoop.shared.get()) else {
            Issue.record("the loop slept through it")
            return
        }
    }

    @Test("Tasks that prefer the loop run on its thread, also after a suspension")
    func executor() async throws {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let places = await withTaskGroup(of: [Bool].self) { group in
            for _ in 0..<20 {
                group.addTask(executorPreference: loop) {
                    let before = loop.isCurrent
                    let shot = OneShot<Void>()
                    Task { shot.fulfill(()) }
                    _ = await shot.wait(until: .distantFuture, on: loop)
                    return [before, loop.isCurrent]
                }
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
        #expect(places.count == 40)
        #expect(places.allSatisfy { $0 })
        #expect(!loop.isCurrent)
    }

    /// An observer that records whether it is called on the loop's thread.
    private final class Observer: IdleStreamObserver {
        let loop: EventLoop
        let isOnLoop = OneShot<Bool>()

        init(loop: EventLoop) { self.loop = loop }

        func idleStreamBecameReadable() { isOnLoop.fulfill(loop.isCurrent) }
    }

    @Test("A task that polls resumes waiting tasks itself, and leaves observers to the loop's thread")
    func pollingTask() async throws {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let watched = try await StreamPair.tcp(on: loop)
        let awaited = try await StreamPair.tcp(on: loop)
        let observer = Observer(loop: loop)
        watched.client.observeIdle(observer)
        // The loop's thread does nothing until the end of this job.
        let isBlocked = OneShot<Void>()
        let mayEnd = Semaphore()
        let job = Task(executorPreference: loop) {
            isBlocked.fulfill(())
            _ = mayEnd.wait(seconds: 600)
        }
        _ = await isBlocked.wait(until: .distantFuture, on: try EventLoop.shared.get())
        let reader = Task { try await awaited.client.receive() }
        try await watched.server.send([1])
        try await awaited.server.send([2])
        let hasRead = OneShot<[UInt8]?>()
        Task { hasRead.fulfill(try? await reader.value) }
        let polling = Task {
            while !Task.isCancelled {
                loop.poll()
                await Task.yield()
            }
        }
        let outcome = await hasRead.wait(until: StreamPair.soon, on: try EventLoop.shared.get())
        polling.cancel()
        await polling.value
        mayEnd.signal()
        await job.value
        guard case .value(let bytes) = outcome else {
            Issue.record("the waiting task was not resumed")
            return
        }
        #expect(bytes == [2])
        guard case .value(let isOnLoop) = await observer.isOnLoop.wait(until: .distantFuture, on: loop) else { return }
        #expect(isOnLoop)
    }

    @Test("Tasks of the pool and of the loop exchange bytes over many sockets, while others occupy the pool")
    func manySockets() async throws {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let occupying = (0..<2).map { _ in
            Task {
                while !Task.isCancelled {
                    let end = MonotonicTime.now().advanced(by: .milliseconds(3))
                    while MonotonicTime.now() < end {}
                    await Task.yield()
                }
            }
        }
        defer { for task in occupying { task.cancel() } }
        let total = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<40 {
                let pair = try await StreamPair.tcp(on: loop)
                group.addTask {
                    while let bytes = try await pair.server.receive() { try await pair.server.send(bytes) }
                    pair.server.close()
                    return 0
                }
                group.addTask(executorPreference: number % 4 == 0 ? loop : nil) {
                    var count = 0
                    for round in 0..<150 {
                        try await pair.client.send([UInt8(round)])
                        guard try await pair.client.receive() == [UInt8(round)] else { break }
                        count += 1
                    }
                    pair.client.close()
                    return count
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(total == 40 * 150)
    }
}
