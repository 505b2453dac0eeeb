import MartletTransport
import CLinux
import Glibc
import Synchronization

/// A pressure file of the kernel's, or anything that reads like one.
package struct PressureFile: Hashable, Sendable {
    /// Its name.
    package let path: String

    /// A file, which need not exist.
    package init(path: String) { self.path = path }

    /// The machine's own, and that of the process's control group (version 2) where the kernel keeps one.
    package static var ofSystem: [PressureFile] {
        var files = [PressureFile(path: "/proc/pressure/memory")]
        let membership = bytes(of: "/proc/self/cgroup") ?? []
        if let group = group(in: membership) {
            // Mounted alone, or beside the groups of version 1.
            for root in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] {
                let file = PressureFile(path: "\(root)\(group == "/" ? "" : group)/memory.pressure")
                if file.read() != nil {
                    files.append(file)
                    break
                }
            }
        }
        return files
    }

    /// The process's control group of version 2 by the contents of `/proc/self/cgroup`: its line is `0::/path`.
    ///
    /// `nil` where there is none, or where it lies outside of what the process sees (`/../other`).
    package static func group(in membership: [UInt8]) -> String? {
        for line in membership.split(separator: UInt8(ascii: "\n")) where line.starts(with: "0::/".utf8) {
            let path = String(decoding: line.dropFirst(3), as: UTF8.self)
            return path.utf8.contains(0) || path.split(separator: "/").contains("..") ? nil : path
        }
        return nil
    }

    /// What it says now; `nil` where it cannot be read, or is no such file.
    package func read() -> MemoryStall? {
        guard let bytes = PressureFile.bytes(of: path) else { return nil }
        return try? MemoryStall(parsing: bytes)
    }

    /// The first 4 KiB of a file: such files have some hundred bytes, and others are none of ours.
    private static func bytes(of path: String) -> [UInt8]? {
        let descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        while bytes.count < 4096 {
            let (count, code) = Socket.retrying {
                let room = 4096 - bytes.count
                return unsafe withUnsafeTemporaryAllocation(byteCount: room, alignment: 1) { buffer in
                    let count = unsafe Glibc.read(descriptor, buffer.baseAddress, room)
                    if count > 0 { unsafe bytes.append(contentsOf: buffer.prefix(count)) }
                    return count
                }
            }
            guard code == 0 else { return nil }
            if count <= 0 { break }
        }
        return bytes
    }
}

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

    deinit { close() }

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
