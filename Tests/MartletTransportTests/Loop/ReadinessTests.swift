import Testing

@testable import MartletTransport

@Suite("Readiness: waking whoever waits")
struct ReadinessTests {
    private static let never = MonotonicTime(nanoseconds: 0)

    @Test(
        "Who is woken just before a wait does not wait, once",
        arguments: [Readiness.Direction.read, .write])
    func earlyWake(_ direction: Readiness.Direction) async throws {
        let loop = try EventLoop.shared.get()
        let readiness = Readiness(loop: loop)
        if direction == .read { readiness.wakeReader() } else { readiness.wakeWriter() }
        // Without a deadline: a wake that was lost would never be made up for.
        #expect(await readiness.wait(for: direction, until: .distantFuture) == .ready)
        #expect(await readiness.wait(for: direction, until: ReadinessTests.never) == .timedOut)
    }

    @Test("Waking one direction leaves the other as it is")
    func apart() async throws {
        let readiness = Readiness(loop: try EventLoop.shared.get())
        readiness.wakeReader()
        #expect(await readiness.wait(for: .write, until: ReadinessTests.never) == .timedOut)
        #expect(await readiness.wait(for: .read, until: ReadinessTests.never) == .ready)
    }

    private final class Watcher: IdleStreamObserver {
        func idleStreamBecameReadable() {}
    }

    @Test(
        "A watcher is released when the watch ends, whichever came first",
        arguments: ["end", "close", "close before"])
    func watcherReleased(_ how: String) throws {
        let readiness = Readiness(loop: try EventLoop.shared.get())
        weak var released: Watcher?
        do {
            let watcher = Watcher()
            released = watcher
            if how == "close before" { readiness.close() }
            readiness.observeIdle(watcher)
            if how == "close" { readiness.close() }
            if how == "end" { _ = readiness.stopObservingIdle() }
        }
        #expect(released == nil)
    }
}
