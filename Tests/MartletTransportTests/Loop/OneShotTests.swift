import MartletTransport
import Testing

@Suite("A value delivered once")
struct OneShotTests {
    private func loop() throws -> EventLoop {
        try EventLoop.shared.get()
    }

    @Test("A value that is delivered before the wait is returned immediately")
    func early() async throws {
        let shot = OneShot<Int>()
        #expect(shot.fulfill(7))
        guard case .value(7) = await shot.wait(until: .distantFuture, on: try loop()) else {
            Issue.record("no value")
            return
        }
    }

    @Test("The first of two values wins, and the second delivery returns that it lost")
    func twice() async throws {
        let shot = OneShot<Int>()
        #expect(shot.fulfill(1))
        #expect(!shot.fulfill(2))
        #expect(!shot.interrupt())
        guard case .value(1) = await shot.wait(until: .distantFuture, on: try loop()) else {
            Issue.record("not the first value")
            return
        }
    }

    @Test("A deadline ends the wait, and a later value is rejected")
    func timeout() async throws {
        let shot = OneShot<Int>()
        let deadline = MonotonicTime.now().advanced(by: .milliseconds(5))
        guard case .timedOut = await shot.wait(until: deadline, on: try loop()) else {
            Issue.record("did not time out")
            return
        }
        #expect(MonotonicTime.now() >= deadline)
        #expect(!shot.fulfill(1))
    }

    @Test("Each of a thousand deliveries that race an interruption ends exactly one way")
    func races() async throws {
        let loop = try loop()
        for round in 0..<1000 {
            let shot = OneShot<Int>()
            async let delivered = Task { shot.fulfill(round) }.value
            async let interrupted = Task { shot.interrupt() }.value
            let outcome = await shot.wait(until: .distantFuture, on: loop)
            let (value, interruption) = await (delivered, interrupted)
            #expect(value != interruption)
            switch outcome {
            case .value(let got): #expect(got == round && value)
            case .interrupted: #expect(interruption)
            case .timedOut: Issue.record("timed out without a deadline")
            }
        }
    }
}
