import Testing

@testable import MartletTransport

@Suite("Readiness: resuming waiters")
struct ReadinessTests {
    private static let never = MonotonicTime(nanoseconds: 0)

    @Test(
        "A wake-up just before a wait is consumed by that wait, once",
        arguments: [Readiness.Direction.read, .write])
    func earlyWake(_ direction: Readiness.Direction) async throws {
        let loop = try EventLoop.shared.get()
        let readiness = Readiness(loop: loop)
        if direction == .read { readiness.wakeReader() } else { readiness.wakeWriter() }
        // There is no deadline, because a lost wake-up must block the test.
        #expect(await readiness.wait(for: direction, until: .distantFuture) == .ready)
        #expect(await readiness.wait(for: direction, until: ReadinessTests.never) == .timedOut)
    }

    @Test("Waking one direction does not affect the other")
    func apart() async throws {
        let readiness = Readiness(loop: try EventLoop.shared.get())
        readiness.wakeReader()
        #expect(await readiness.wait(for: .write, until: ReadinessTests.never) == .timedOut)
        #expect(await readiness.wait(for: .read, until: ReadinessTests.never) == .ready)
    }

    private func signal(_ readiness: Readiness, isWritable: Bool = false, isHangup: Bool = false) {
        let event = Poller.Event(
            descriptor: -1, registration: 0, isReadable: isHangup, isWritable: isWritable, isHangup: isHangup)
        _ = readiness.signal(event, isFromLoop: false)
    }

    @Test("A reader that must write first is woken by the end of the stream once, and then by room to write")
    func hangup() async throws {
        let readiness = Readiness(loop: try EventLoop.shared.get())
        // Two layers of TLS wait for room to write, and one of them continues.
        for isOn in [true, true, false] { readiness.setWakesReaderOnWritable(isOn) }
        signal(readiness, isHangup: true)
        #expect(await readiness.wait(for: .read, until: ReadinessTests.never) == .ready)
        #expect(readiness.beginRead())
        #expect(await readiness.wait(for: .read, until: ReadinessTests.never) == .timedOut)
        signal(readiness, isWritable: true)
        #expect(await readiness.wait(for: .read, until: ReadinessTests.never) == .ready)
        readiness.setWakesReaderOnWritable(false)
        #expect(readiness.beginRead())
        #expect(await readiness.wait(for: .read, until: ReadinessTests.never) == .ready)
    }

    private final class Observer: IdleStreamObserver {
        func idleStreamBecameReadable() {}
    }

    @Test(
        "An observer is released when the observation ends, in any order of the calls",
        arguments: ["end", "close", "close before"])
    func observerReleased(_ how: String) throws {
        let readiness = Readiness(loop: try EventLoop.shared.get())
        weak var released: Observer?
        do {
            let observer = Observer()
            released = observer
            if how == "close before" { readiness.close() }
            readiness.observeIdle(observer)
            if how == "close" { readiness.close() }
            if how == "end" { _ = readiness.stopObservingIdle() }
        }
        #expect(released == nil)
    }
}
