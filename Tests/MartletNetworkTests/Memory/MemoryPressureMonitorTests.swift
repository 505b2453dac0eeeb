import FoundationEssentials
import Glibc
import Synchronization
import Testing

@testable import MartletNetwork
@testable import MartletTransport

@Suite("Following memory pressure", .serialized)
struct MemoryPressureMonitorTests {
    /// A folder with a pressure file that a test writes.
    private final class Folder: Sendable {
        let path = FileManager.default.temporaryDirectory.path + "/martlet-pressure-\(UUID().uuidString)"

        init() throws {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        }

        deinit {
            try? FileManager.default.removeItem(atPath: path)
        }

        var file: PressureFile { PressureFile(path: path + "/memory") }

        /// Replaces the file whole, as a reader of the kernel's sees it whole.
        func write(_ text: String) throws {
            try Data(text.utf8).write(to: URL(filePath: file.path), options: .atomic)
        }
    }

    private func monitor(_ files: [PressureFile]) throws -> MemoryPressureMonitor {
        MemoryPressureMonitor(loop: try EventLoop.shared.get(), interval: .milliseconds(1)) { files }
    }

    /// A pressure file of the kernel's own, and not that of memory: other tests, which run at the same time in this
    /// process, may have that one open.
    private let kernelFile = PressureFile(path: "/proc/pressure/io")

    /// How many descriptors of this process lead to a file.
    private func openCount(_ path: String) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count { name in
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")) == path
        }
    }

    @Test("The first level is that of the file, and each change of it follows")
    func follows() async throws {
        let folder = try Folder()
        try folder.write("some avg10=50.00\nfull avg10=0.00\n")
        let monitor = try monitor([folder.file])
        #expect(monitor.isSupported)
        let subscription = monitor.subscription()
        #expect(monitor.level == .warning)
        #expect(!monitor.isCalled)
        var seen: UInt64 = 0
        for (text, level) in [
            ("some avg10=99.00\nfull avg10=80.00\n", MemoryPressure.critical), ("some avg10=0.00\n", .normal),
            ("some avg10=10.00\n", .warning), ("out of order", .normal),
        ] {
            let before = try #require(await subscription.next(after: seen))
            #expect(before.value != level)
            seen = before.version
            try folder.write(text)
            let next = try #require(await subscription.next(after: seen))
            #expect(next.value == level)
        }
    }

    @Test("Of several files the worst counts, and one that is missing does not")
    func worst() async throws {
        let mild = try Folder()
        let bad = try Folder()
        try mild.write("some avg10=20.00\n")
        try bad.write("some avg10=0.00\nfull avg10=11.00\n")
        let monitor = try monitor([mild.file, PressureFile(path: "/nonexistent/memory"), bad.file])
        let subscription = monitor.subscription()
        #expect(await subscription.next(after: 0)?.value == .critical)
    }

    @Test(
        "Without a file the level stays normal, and the source says so", arguments: ["", "rubbish", "some x"])
    func unsupported(text: String) async throws {
        let folder = try Folder()
        if !text.isEmpty { try folder.write(text) }
        let monitor = try monitor([folder.file])
        #expect(!monitor.isSupported)
        let subscription = monitor.subscription()
        #expect(await subscription.next(after: 0)?.value == .normal)
    }

    @Test("Nothing is written to a file that is none of the kernel's")
    func leavesFilesAlone() async throws {
        let folder = try Folder()
        let text = "some avg10=0.00\n"
        try folder.write(text)
        let monitor = try monitor([folder.file])
        let subscription = monitor.subscription()
        #expect(await subscription.next(after: 0)?.value == .normal)
        #expect(try String(contentsOf: URL(filePath: folder.file.path), encoding: .utf8) == text)
    }

    @Test(
        "The kernel's own file is followed by its calls where it may be, and closed with the last subscription"
    )
    func system() async throws {
        let file = kernelFile
        let monitor = try monitor([file])
        #expect(monitor.isSupported == (file.read() != nil))
        var first: WatchSubscription<MemoryPressure>? = monitor.subscription()
        var second: WatchSubscription<MemoryPressure>? = monitor.subscription()
        #expect(await first?.next(after: 0) != nil)
        #expect(await second?.next(after: 0) != nil)
        if monitor.isCalled { #expect(try openCount(file.path) >= 2) }
        first = nil
        if monitor.isCalled { #expect(try openCount(file.path) >= 2) }
        second = nil
        #expect(!monitor.isCalled)
        // The loop may be reading it in this moment.
        let deadline = Self.soon
        while try openCount(file.path) > 0, MonotonicTime.now() < deadline { await Task.yield() }
        #expect(try openCount(file.path) == 0)
        #expect(monitor.level == .normal)
    }

    @Test("Subscribing and leaving from many tasks at once leaves nothing open")
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
        #expect(!monitor.isCalled)
        let deadline = Self.soon
        while try openCount(file.path) > 0, MonotonicTime.now() < deadline { await Task.yield() }
        #expect(try openCount(file.path) == 0)
    }

    @Test("A monitor that is left is not kept, and its timer comes to nothing")
    func released() async throws {
        let folder = try Folder()
        try folder.write("some avg10=50.00\n")
        weak var gone: MemoryPressureMonitor?
        do {
            let monitor = try monitor([folder.file])
            gone = monitor
            let subscription = monitor.subscription()
            #expect(await subscription.next(after: 0)?.value == .warning)
        }
        let deadline = Self.soon
        while gone != nil, MonotonicTime.now() < deadline { await Task.yield() }
        #expect(gone == nil)
    }

    /// A deadline that is never met, not even where the machine stalls, or other tests have all threads.
    private static var soon: MonotonicTime { MonotonicTime.now().advanced(by: .seconds(600)) }

    /// Notes each time something stirs.
    private final class Watcher: IdleStreamObserver {
        let stirred = OneShot<Void>()
        let count = Atomic(0)

        func idleStreamBecameReadable() {
            count.wrappingAdd(1, ordering: .relaxed)
            stirred.fulfill(())
        }
    }

    @Test("A descriptor that is registered for news tells urgent news alone")
    func news() async throws {
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
        let (readiness, number) = try loop.register(descriptor, interest: .news)
        defer {
            loop.unregister(descriptor, number: number)
            readiness.close()
            close(descriptor)
        }
        let watcher = Watcher()
        readiness.observeIdle(watcher)
        try await client.send([1], until: Self.soon)
        #expect(try await server.receive(atMost: 16, until: Self.soon) == [1])
        #expect(watcher.count.load(ordering: .relaxed) == 0)
        _ = client.socket.withDescriptor { unsafe Glibc.send($0, "!", 1, Int32(MSG_OOB)) }
        guard case .value = await watcher.stirred.wait(until: Self.soon, on: loop) else {
            Issue.record("no news came")
            return
        }
        // Told when it came, and not as long as it is there; a segment may wake twice, for its mark and for its byte.
        #expect(watcher.count.load(ordering: .relaxed) <= 2)
        client.close()
        server.close()
    }
}
