import FoundationEssentials
import Glibc
import Synchronization
import Testing

@testable import MartletConditions
@testable import MartletTransport

@Suite("Memory pressure monitor", .serialized)
struct MemoryPressureMonitorTests {
    /// A directory with a pressure file that the test writes.
    private final class Directory: Sendable {
        let path = FileManager.default.temporaryDirectory.path + "/martlet-pressure-\(UUID().uuidString)"

        init() throws {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        }

        deinit {
            try? FileManager.default.removeItem(atPath: path)
        }

        var file: PressureFile { PressureFile(path: path + "/memory") }

        /// Replaces the file atomically, so that a reader sees a complete file as in `/proc`.
        func write(_ text: String) throws {
            try Data(text.utf8).write(to: URL(filePath: file.path), options: .atomic)
        }
    }

    private func monitor(_ files: [PressureFile]) throws -> MemoryPressureMonitor {
        MemoryPressureMonitor(loop: try EventLoop.shared.get(), interval: .milliseconds(1)) { files }
    }

    /// A pressure file of the kernel other than that of memory, which concurrent tests in this process can have open.
    private let kernelFile = PressureFile(path: "/proc/pressure/io")

    /// Returns the number of this process's descriptors for a file.
    private func openCount(_ path: String) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count { name in
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")) == path
        }
    }

    @Test("The heap is trimmed under pressure, and not without", arguments: ["10.00", "0.00"])
    func trims(share: String) throws {
        let directory = try Directory()
        try directory.write("some avg10=\(share)\n")
        let loop = try EventLoop.shared.get()
        let trimmer = MemoryTrimmer(loop: loop) {}
        let monitor = MemoryPressureMonitor(loop: loop, trimmer: trimmer) { [directory.file] }
        let subscription = monitor.subscription()
        #expect(monitor.level == (share == "10.00" ? .warning : .normal))
        #expect((trimmer.scheduledCount > 0) == (share == "10.00"))
        withExtendedLifetime(subscription) {}
    }

    @Test("The first level is that of the file, and each change of it is delivered")
    func follows() async throws {
        let directory = try Directory()
        try directory.write("some avg10=50.00\nfull avg10=0.00\n")
        let monitor = try monitor([directory.file])
        #expect(monitor.isSupported)
        let subscription = monitor.subscription()
        #expect(monitor.level == .warning)
        #expect(!monitor.hasTriggers)
        var seen: UInt64 = 0
        for (text, level) in [
            ("some avg10=99.00\nfull avg10=80.00\n", MemoryPressure.critical), ("some avg10=0.00\n", .normal),
            ("some avg10=10.00\n", .warning), ("out of order", .normal),
        ] {
            let before = try #require(await subscription.next(after: seen))
            #expect(before.value != level)
            seen = before.version
            try directory.write(text)
            let next = try #require(await subscription.next(after: seen))
            #expect(next.value == level)
        }
    }

    @Test("The worst of several files determines the level, and a missing file is ignored")
    func worst() async throws {
        let mild = try Directory()
        let bad = try Directory()
        try mild.write("some avg10=20.00\n")
        try bad.write("some avg10=0.00\nfull avg10=11.00\n")
        let monitor = try monitor([mild.file, PressureFile(path: "/nonexistent/memory"), bad.file])
        let subscription = monitor.subscription()
        #expect(await subscription.next(after: 0)?.value == .critical)
    }

    @Test(
        "Without a file the level stays normal, and the monitor is not supported", arguments: ["", "rubbish", "some x"])
    func unsupported(text: String) async throws {
        let directory = try Directory()
        if !text.isEmpty { try directory.write(text) }
        let monitor = try monitor([directory.file])
        #expect(!monitor.isSupported)
        let subscription = monitor.subscription()
        #expect(await subscription.next(after: 0)?.value == .normal)
    }

    @Test("A file that is not the kernel's is not written to")
    func leavesFilesAlone() async throws {
        let directory = try Directory()
        let text = "some avg10=0.00\n"
        try directory.write(text)
        let monitor = try monitor([directory.file])
        let subscription = monitor.subscription()
        #expect(await subscription.next(after: 0)?.value == .normal)
        #expect(try String(contentsOf: URL(filePath: directory.file.path), encoding: .utf8) == text)
    }

    @Test(
        "The kernel's file is observed by notifications if allowed, and closed with the last subscription"
    )
    func system() async throws {
        let file = kernelFile
        let monitor = try monitor([file])
        #expect(monitor.isSupported == (file.read() != nil))
        var first: WatchSubscription<MemoryPressure>? = monitor.subscription()
        var second: WatchSubscription<MemoryPressure>? = monitor.subscription()
        #expect(await first?.next(after: 0) != nil)
        #expect(await second?.next(after: 0) != nil)
        if monitor.hasTriggers { #expect(try openCount(file.path) >= 2) }
        first = nil
        if monitor.hasTriggers { #expect(try openCount(file.path) >= 2) }
        second = nil
        #expect(!monitor.hasTriggers)
        // The loop may be reading the file at this moment.
        let deadline = Self.soon
        while try openCount(file.path) > 0, MonotonicTime.now() < deadline { await Task.yield() }
        #expect(try openCount(file.path) == 0)
        #expect(monitor.level == .normal)
    }

    @Test("Concurrent subscriptions and cancellations leave no descriptor open")
    func concurrent() async throws {
        let file = kernelFile
        let monitor = try monitor([file])
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<100 {
                group.addTask {
                    let subscription = monitor.subscription()
                    #expect(await subscription.next(after: 0) != nil)
                }
            }
        }
        #expect(!monitor.hasTriggers)
        let deadline = Self.soon
        while try openCount(file.path) > 0, MonotonicTime.now() < deadline { await Task.yield() }
        #expect(try openCount(file.path) == 0)
    }

    @Test("An unused monitor is released, and its timer has no effect")
    func released() async throws {
        let directory = try Directory()
        try directory.write("some avg10=50.00\n")
        weak var gone: MemoryPressureMonitor?
        do {
            let monitor = try monitor([directory.file])
            gone = monitor
            let subscription = monitor.subscription()
            #expect(await subscription.next(after: 0)?.value == .warning)
        }
        let deadline = Self.soon
        while gone != nil, MonotonicTime.now() < deadline { await Task.yield() }
        #expect(gone == nil)
    }

    /// A deadline in 600 s, which is never reached even on a stalled machine.
    private static var soon: MonotonicTime { MonotonicTime.now().advanced(by: .seconds(600)) }

    /// An observer that counts its notifications.
    private final class EventCounter: IdleStreamObserver {
        let notified = OneShot<Void>()
        let count = Atomic(0)

        func idleStreamBecameReadable() {
            count.wrappingAdd(1, ordering: .relaxed)
            notified.fulfill(())
        }
    }

    @Test("A descriptor that is registered for priority events reports only urgent data")
    func priorityEvents() async throws {
        let loop = try EventLoop.shared.get()
        let address = try #require(SocketAddress(literal: "127.0.0.1", port: 0))
        let listener = try Listener(address: address, loop: loop)
        defer { listener.close() }
        let attempt = try ConnectAttempt(to: listener.address, options: SocketOptions(), loop: loop)
        let server = PlainStream(socket: try await listener.accept(loop: loop), remoteAddress: nil)
        try await attempt.finish(until: Self.soon)
        let client = PlainStream(socket: attempt.socket, remoteAddress: listener.address)
        let copy = server.socket.withDescriptor { fcntl($0, F_DUPFD_CLOEXEC, 0) }
        let descriptor = try #require(copy)
        let (readiness, number) = try loop.register(descriptor, interest: .priority)
        defer {
            loop.unregister(descriptor, number: number)
            readiness.close()
            close(descriptor)
        }
        let observer = EventCounter()
        readiness.observeIdle(observer)
        try await client.send([1], until: Self.soon)
        #expect(try await server.receive(atMost: 16, until: Self.soon) == [1])
        #expect(observer.count.load(ordering: .relaxed) == 0)
        _ = client.socket.withDescriptor { unsafe Glibc.send($0, "!", 1, Int32(MSG_OOB)) }
        guard case .value = await observer.notified.wait(until: Self.soon, on: loop) else {
            Issue.record("the observer was not notified")
            return
        }
        // The observer is notified on arrival and not while the byte is pending. A segment can cause two notifications,
        // for its mark and for its byte.
        #expect(observer.count.load(ordering: .relaxed) <= 2)
        client.close()
        server.close()
    }
}
