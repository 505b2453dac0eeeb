import CMartletLinux
import Glibc
import MartletTransport
import Synchronization

/// A file of the kernel with the pressure stall information (PSI) of memory, or any file with the same format.
struct PressureFile: Hashable, Sendable {
    /// The path of the file, which need not exist.
    let path: String

    /// The machine's file, and that of the process's control group (version 2) if the kernel has one.
    static var ofSystem: [PressureFile] {
        let machine = PressureFile(path: "/proc/pressure/memory")
        guard let group = group(in: KernelFile.bytes(of: "/proc/self/cgroup") ?? []) else { return [machine] }
        // The mount points of version 2: alone, and beside version 1.
        let own = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map {
            PressureFile(path: "\($0)\(group == "/" ? "" : group)/memory.pressure")
        }.first { $0.read() != nil }
        return [machine] + (own.map { [$0] } ?? [])
    }

    /// Returns the path of the process's control group (version 2), from the line `0::/path` of `/proc/self/cgroup`.
    /// `nil` without such a line, or if the group is outside of the process's view (`/../other`).
    static func group(in membership: [UInt8]) -> String? {
        guard let path = KernelFile.text(after: "0::/", in: membership), !path.utf8.contains(0),
            !path.split(separator: "/").contains("..")
        else { return nil }
        return "/\(path)"
    }

    /// Returns the current contents; `nil` if the file cannot be read, or is not a pressure file.
    func read() -> MemoryStall? { KernelFile.bytes(of: path).flatMap { try? MemoryStall(parsing: $0) } }
}

/// A request to the kernel for a notification when tasks have waited for memory for longer than a limit. It is an open
/// pressure file to which the limit was written, and lasts until the file is closed.
final class PressureTrigger: IdleStreamObserver {
    struct Threshold: Sendable {
        /// The level that a notification reports.
        var level: MemoryPressure
        var share: String
        /// The maximum waiting time within a second, in microseconds.
        var limit: UInt64

        /// The texts to try: the share, then limit and period in microseconds. The first has a period of one second,
        /// which needs `CAP_SYS_RESOURCE`. Without that capability the kernel only accepts multiples of two seconds.
        var texts: [String] { [1, 2 as UInt64].map { "\(share) \($0 * limit) \($0 * 1_000_000)" } }

        /// Returns the total waiting time of the share, from the contents of a file.
        func total(in stall: MemoryStall?) -> UInt64? { level == .critical ? stall?.fullTotal : stall?.someTotal }

        static let all = [
            Threshold(level: .warning, share: "some", limit: 150_000),
            Threshold(level: .critical, share: "full", limit: 100_000),
        ]
    }

    private let threshold: Threshold
    private let file: PressureFile
    /// Used only by the loop's thread.
    private let growth: Mutex<StallDetector>
    private let descriptor: Int32
    private let number: UInt32
    private let readiness: Readiness
    private let loop: EventLoop
    private let isClosed = Atomic(false)
    private let onTrigger: @Sendable (MemoryPressure) -> Void

    /// Creates a trigger; `nil` if the kernel does not accept it.
    /// - Parameter onTrigger: Called on the loop's thread, after ``watch()``.
    init?(
        _ file: PressureFile, _ threshold: Threshold, loop: EventLoop,
        onTrigger: @escaping @Sendable (MemoryPressure) -> Void
    ) {
        guard let descriptor = PressureTrigger.open(file, threshold) else { return nil }
        do throws(SystemError) { (readiness, number) = try loop.register(descriptor, interest: .priority) } catch {
            Glibc.close(descriptor)
            return nil
        }
        (self.descriptor, self.loop, self.onTrigger, self.threshold) = (descriptor, loop, onTrigger, threshold)
        self.file = file
        growth = Mutex(StallDetector(limit: threshold.limit, total: threshold.total(in: file.read())))
    }

    deinit { close() }

    private static func open(_ file: PressureFile, _ threshold: Threshold) -> Int32? {
        let descriptor = unsafe Glibc.open(file.path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        // A pressure file without a trigger polls as POLLPRI. Nothing must be written to any other file.
        var question = pollfd(fd: descriptor, events: Int16(POLLPRI), revents: 0)
        if unsafe poll(&question, 1, 0) == 1, question.revents & Int16(POLLPRI) != 0 {
            for text in threshold.texts {
                // With its terminating zero: the kernel overwrites the last byte.
                let count = unsafe text.withCString { unsafe Glibc.write(descriptor, $0, text.utf8.count + 1) }
                if count > 0 { return descriptor }
            }
        }
        Glibc.close(descriptor)
        return nil
    }

    func watch() {
        readiness.observeIdle(self)
        if isClosed.load(ordering: .acquiring) { _ = readiness.stopObservingIdle() }
    }

    /// Removes the trigger; later calls have no effect.
    func close() {
        guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
        loop.unregister(descriptor, number: number)
        readiness.close()
        Glibc.close(descriptor)
    }

    func idleStreamBecameReadable() {
        guard !isClosed.load(ordering: .acquiring) else { return }
        let total = threshold.total(in: file.read())
        if growth.withLock({ $0.counts(total) }) { onTrigger(threshold.level) }
    }
}
