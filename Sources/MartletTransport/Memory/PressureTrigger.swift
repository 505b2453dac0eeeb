import CLinux
import Glibc
import Synchronization

/// A word left with the kernel: to call when tasks have waited for memory for longer than a limit.
///
/// It is an open pressure file with the limit written to it, and lasts as long as that is open.
final class PressureTrigger: IdleWatcher {
    /// What the kernel is asked.
    struct Wish: Sendable {
        /// What its call means.
        var level: MemoryPressure
        /// Which share is meant.
        var share: String
        /// How long tasks may wait within a second, in microseconds.
        var limit: UInt64

        /// What is written to the file: the share, the limit and the time it is counted in, both in microseconds.
        ///
        /// Without the right `CAP_SYS_RESOURCE` the time has to be a multiple of two seconds.
        var texts: [String] { [1, 2 as UInt64].map { "\(share) \($0 * limit) \($0 * 1_000_000)" } }

        /// Its total in what a file says.
        func total(in stall: MemoryStall?) -> UInt64? {
            level == .critical ? stall?.fullTotal : stall?.someTotal
        }

        /// What is asked of each file.
        static let all = [
            Wish(level: .warning, share: "some", limit: 150_000),
            Wish(level: .critical, share: "full", limit: 100_000),
        ]
    }

    private let wish: Wish
    private let file: PressureFile
    /// Only the loop's thread reads and writes it.
    private let growth: Mutex<StallGrowth>
    private let descriptor: Int32
    private let number: UInt32
    private let readiness: Readiness
    private let loop: EventLoop
    private let isClosed = Atomic(false)
    private let called: @Sendable (MemoryPressure) -> Void

    /// Leaves word; `nil` where the kernel does not take it.
    /// - Parameter called: Called on the loop's thread, from ``watch()`` on.
    init?(
        _ file: PressureFile, _ wish: Wish, loop: EventLoop,
        called: @escaping @Sendable (MemoryPressure) -> Void
    ) {
        guard let descriptor = PressureTrigger.open(file, wish) else { return nil }
        do throws(SystemError) {
            (readiness, number) = try loop.register(descriptor, interest: .news)
        } catch {
            Glibc.close(descriptor)
            return nil
        }
        self.descriptor = descriptor
        self.loop = loop
        self.called = called
        self.wish = wish
        self.file = file
        growth = Mutex(StallGrowth(limit: wish.limit, total: wish.total(in: file.read())))
    }

    deinit {
        close()
    }

    private static func open(_ file: PressureFile, _ wish: Wish) -> Int32? {
        let descriptor = unsafe Glibc.open(file.path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        // A pressure file in which no word was left says so when polled, and no other file does: in one of those nothing
        // must be written.
        var question = pollfd(fd: descriptor, events: Int16(POLLPRI), revents: 0)
        guard unsafe poll(&question, 1, 0) == 1, question.revents & Int16(POLLPRI) != 0 else {
            Glibc.close(descriptor)
            return nil
        }
        for text in wish.texts {
            // The kernel takes the text with the zero behind it.
            let count = unsafe text.withCString { unsafe Glibc.write(descriptor, $0, text.utf8.count + 1) }
            if count > 0 { return descriptor }
        }
        Glibc.close(descriptor)
        return nil
    }

    /// Has calls told from now on.
    func watch() {
        readiness.watchWhileIdle(self)
        if isClosed.load(ordering: .acquiring) { _ = readiness.endIdleWatch() }
    }

    /// Takes the word back; the first call counts.
    func close() {
        guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
        loop.unregister(descriptor, number: number)
        readiness.close()
        Glibc.close(descriptor)
    }

    func idleStreamStirred() {
        guard !isClosed.load(ordering: .acquiring) else { return }
        let total = wish.total(in: file.read())
        if growth.withLock({ $0.counts(total) }) { called(wish.level) }
    }
}
