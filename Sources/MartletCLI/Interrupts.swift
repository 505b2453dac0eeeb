import Glibc
import MartletTransport
import Synchronization

/// SIGINT, SIGTERM and SIGPIPE, without handlers: a thread waits for them.
enum Interrupts {
    private struct State {
        var waiter: CheckedContinuation<Int32, Never>?
        var barIsDrawn = false
    }

    private static let thread = BlockingWorkers(threadLimit: 1)
    /// Guards the above: the thread that waits for signals, the task that waits for one, the task that draws.
    private static let state = Mutex(State())

    /// Blocks the signals before any other thread is there, and has SIGINT and SIGTERM end the program, with 130 and 143,
    /// unless a task waits for them. A pipe nobody reads is an error of the write, not a signal.
    static func prepare() {
        signal(SIGPIPE, SIG_IGN)
        var signals = endings()
        unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
        thread.submit {
            while true { take(wait()) }
        }
    }

    /// Waits for SIGINT or SIGTERM; the one after it ends the program at once.
    static func next() async -> Int32 {
        await withCheckedContinuation { continuation in
            state.withLock { $0.waiter = continuation }
        }
    }

    /// Whether a progress bar stands on the terminal's last line.
    static var barIsDrawn: Bool {
        get { state.withLock { $0.barIsDrawn } }
        set { state.withLock { $0.barIsDrawn = newValue } }
    }

    private static func endings() -> sigset_t {
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe sigaddset(&signals, SIGINT)
        unsafe sigaddset(&signals, SIGTERM)
        return signals
    }

    private static func wait() -> Int32 {
        var signals = endings()
        var number: Int32 = 0
        while unsafe sigwait(&signals, &number) != 0 {}
        return number
    }

    private static func take(_ number: Int32) {
        let waiter = state.withLock { $0.waiter.take() }
        if let waiter {
            waiter.resume(returning: number)
            return
        }
        // What was received is in its file already: nothing is buffered here.
        if barIsDrawn { _ = unsafe write(STDERR_FILENO, "\n", 1) }
        _exit(128 + number)
    }
}
