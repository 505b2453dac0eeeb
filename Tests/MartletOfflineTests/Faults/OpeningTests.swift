import Martlet
import MartletOffline
import MartletStorage
import MartletTesting
import Synchronization
import SystemPackage
import Testing

@Suite("Offline queue: opening a directory")
struct OpeningTests {
    /// Stores requests in a directory without sending them.
    private static func fill(
        _ scene: OfflineScene, _ count: Int, body: HTTPBody = .text("x")
    ) async throws {
        let queue = try await scene.queue { $0.sendsRequests = false }
        for number in 0..<count { try await queue.submit(try scene.request(), body: body, tag: "\(number)") }
        await queue.close()
    }

    @Test("A second queue on one directory is rejected, in this process and in another")
    func oneOwner() async throws {
        try await OfflineScene.run { scene in
            let queue = try await scene.queue()
            let error = await #expect(throws: HTTPError.self) { try await scene.queue() }
            #expect(error?.code == .alreadyInProgress)
            let other = try await OfflineChild.run(["run", scene.directory.path])
            #expect(other.status == 1)
            #expect(other.line("failed")?.contains("uses this directory") == true)
            await queue.close()
            await (try scene.queue()).close()
        }
    }

    @Test(
        "Files and directory are private to their owner; a directory that others can write to is rejected"
    )
    func permissions() async throws {
        try await OfflineScene.run { scene in
            let path = scene.directory.path + "/new/one"
            let queue = try await OfflineQueue(
                session: OfflineScene.session, directory: FilePath(path),
                options: OfflineQueueOptions(sendsRequests: false))
            try await queue.submit(try scene.request(), body: .bytes(Array(repeating: 1, count: 100_000)))
            await queue.close()
            #expect(try scene.directory.permissions(of: "new/one") == 0o700)
            for name in ["1.request", "1.body", "lock"] {
                #expect(try scene.directory.permissions(of: "new/one/\(name)") == 0o600)
            }
            try scene.directory.setPermissions(0o770, of: "new/one")
            let error = await #expect(throws: HTTPError.self) {
                try await OfflineQueue(session: OfflineScene.session, directory: FilePath(path))
            }
            #expect(error?.message.contains("chmod 700") == true)
        }
    }

    @Test("A damaged record is moved aside with an event, and the others are sent")
    func damaged() async throws {
        try await OfflineScene.run { scene in
            try await OpeningTests.fill(scene, 5, body: .bytes(Array(repeating: 65, count: 20_000)))
            var bytes = try scene.directory.contents(of: "2.request")
            bytes[40] ^= 1
            try scene.directory.write(bytes, to: "2.request")
            try scene.directory.write(Array("something else entirely".utf8), to: "3.request")
            try scene.directory.write([], to: "4.request")
            let queue = try await scene.queue()
            let delivered = try await queue.delivered(2)
            #expect(delivered.keys.sorted() == ["0", "4"])
            try await queue.drained
            await queue.close()
            var aside: [String] = []
            for await event in queue.events {
                if case .recordQuarantined(let path, let reason) = event {
                    aside.append(path.string)
                    #expect(!reason.isEmpty)
                }
            }
            #expect(aside == [2, 3, 4].map { "\(scene.directory.path)/corrupt/\($0).request" })
            #expect(
                try scene.directory.names(in: "corrupt")
                    == ["2.body", "2.request", "3.body", "3.request", "4.body", "4.request"])
            #expect(try scene.directory.names() == ["corrupt"])
            #expect(try scene.directory.contents(of: "corrupt/2.request") == bytes)
        }
    }

    private static let laterFormat = RecordEnvelope(magic: "MRTo", version: 9, byteLimit: 1000)

    @Test("A directory with a record of a later version is not opened, and no record is moved or sent")
    func later() async throws {
        try await OfflineScene.run { scene in
            try await OpeningTests.fill(scene, 3)
            try scene.directory.write([], to: "1.request")
            let bytes = try OpeningTests.laterFormat.encode { $0.write(UInt64(2)) }
            try scene.directory.write(bytes, to: "2.request")
            let error = await #expect(throws: HTTPError.self) { try await scene.queue() }
            #expect(error?.code == .fileFailed)
            #expect(error?.message.contains("2.request") == true && error?.message.contains("version 9") == true)
            #expect(try scene.directory.names() == ["1.request", "2.request", "3.request"])
            #expect(try scene.directory.contents(of: "2.request") == bytes)
            #expect(scene.origin.requests.isEmpty)
            // The directory is free for the later version.
            try scene.directory.remove("2.request")
            let queue = try await scene.queue()
            #expect(try await queue.delivered().keys.first == "2")
            await queue.close()
        }
    }

    @Test("A record that a later version replaced in an open queue stays in place, and its lane waits")
    func replaced() async throws {
        try await OfflineScene.run { _ in
            .text("", status: 503)
        } _: { scene in
            let queue = try await scene.queue { $0.backoff = OfflineScene.never }
            try await queue.submit(try scene.request())
            let ticket = try await queue.postponed(.refused)
            let bytes = try OpeningTests.laterFormat.encode { $0.write(UInt64(1)) }
            try scene.directory.write(bytes, to: "1.request")
            try await queue.retry(ticket.id)
            _ = try await queue.postponed(.storage)
            #expect(try scene.directory.names() == ["1.request"])
            #expect(try scene.directory.contents(of: "1.request") == bytes)
            await queue.close()
        }
    }

    @Test("A record under another number than its own is moved aside, so no request has two files")
    func renamed() async throws {
        try await OfflineScene.run { scene in
            try await OpeningTests.fill(scene, 1)
            try scene.directory.write(try scene.directory.contents(of: "1.request"), to: "7.request")
            let queue = try await scene.queue()
            try await queue.drained
            #expect(scene.origin.requests.count == 1)
            #expect(try scene.directory.names(in: "corrupt") == ["7.request"])
            // Its number is not assigned again.
            let ticket = try await queue.submit(try scene.request())
            #expect(ticket.id > OfflineID(7))
            await queue.close()
        }
    }

    @Test("The rest of an interrupted write is removed, and files with other names stay")
    func leftovers() async throws {
        try await OfflineScene.run { scene in
            try await OpeningTests.fill(scene, 1)
            for name in ["9.request.new", "8.body", "notes.txt", "007.request", "x.request"] {
                try scene.directory.write([1, 2, 3], to: name)
            }
            let queue = try await scene.queue()
            try await queue.drained
            #expect(try scene.directory.names() == ["007.request", "notes.txt", "x.request"])
            await queue.close()
        }
    }

    @Test("Numbers are never reused, even after all their files are gone")
    func numbersGrow() async throws {
        try await OfflineScene.run { scene in
            var last = OfflineID(0)
            for _ in 0..<3 {
                let queue = try await scene.queue()
                let ticket = try await queue.submit(try scene.request())
                #expect(ticket.id > last)
                last = ticket.id
                try await queue.drained
                await queue.close()
            }
        }
    }

    @Test("A clock that jumps while a queue is open does not change any expiry")
    func clockJumps() async throws {
        try await OfflineScene.run { _ in
            .text("", status: 503)
        } _: { scene in
            let wall = Mutex(Int64(1_700_000_000_000))
            func open(boot: String) async throws -> OfflineQueue {
                try await OfflineQueue(
                    session: OfflineScene.session, directory: scene.directory.directory,
                    options: OfflineQueueOptions(backoff: OfflineScene.never), files: LinuxFileSystem(),
                    wallTime: { wall.withLock { $0 } }, boot: boot)
            }
            var queue = try await open(boot: "first")
            try await queue.submit(try scene.request(), as: OfflineSubmission(timeToLive: .seconds(1000)))
            _ = try await queue.postponed(.refused)
            wall.withLock { $0 += 365 * 86_400_000 }
            await queue.networkBecameAvailable()
            #expect(await queue.pendingCount == 1)
            await queue.close()
            // The clock is set to before the submission: the request has its intended lifetime and no more.
            wall.withLock { $0 = 1_000 }
            queue = try await open(boot: "second")
            #expect(await queue.pendingCount == 1)
            #expect(await queue.entries.first?.expiresAt == 1_700_001_000_000)
            await queue.close()
            // The clock is a year ahead without a reboot: the age of the request does not change.
            wall.withLock { $0 = 1_731_536_000_000 }
            queue = try await open(boot: "second")
            #expect(await queue.pendingCount == 1)
            let shown = try #require(await queue.entries.first?.expiresAt)
            #expect((1_731_536_000_000...1_731_537_000_000).contains(shown))
            await queue.close()
            // It expires by the time of day after a reboot, and is then a dead letter.
            wall.withLock { $0 = 1_700_001_000_000 }
            queue = try await open(boot: "third")
            _ = try await queue.first { event -> OfflineTicket? in
                if case .expired(let ticket) = event { ticket } else { nil }
            }
            try await queue.drained
            let entry = try #require(await queue.entries.first)
            guard case .dead(let letter) = entry.state else {
                Issue.record("\(entry.state)")
                return
            }
            #expect(letter.reason == .expired)
            // A retry gives it the full lifetime again, and a later process agrees.
            try await queue.retry(entry.ticket.id)
            await queue.close()
            queue = try await open(boot: "third")
            #expect(await queue.pendingCount == 1)
            await queue.close()
        }
    }

    @Test("Inspecting a queue expires no request, whatever the clock says")
    func listing() async throws {
        try await OfflineScene.run { scene in
            func open(_ wall: Int64, sendsRequests: Bool) async throws -> OfflineQueue {
                try await OfflineQueue(
                    session: OfflineScene.session, directory: scene.directory.directory,
                    options: OfflineQueueOptions(sendsRequests: sendsRequests), files: LinuxFileSystem(),
                    wallTime: { wall }, boot: nil)
            }
            var queue = try await open(1_700_000_000_000, sendsRequests: false)
            try await queue.submit(try scene.request(), as: OfflineSubmission(timeToLive: .seconds(10)))
            await queue.close()
            queue = try await open(1_800_000_000_000, sendsRequests: false)
            #expect(await queue.entries.count == 1)
            #expect(await queue.pendingCount == 1)
            await queue.close()
            // A request that was submitted with an unset clock is not decades old.
            try await OfflineScene.run { fresh in
                func open(_ wall: Int64) async throws -> OfflineQueue {
                    try await OfflineQueue(
                        session: OfflineScene.session, directory: fresh.directory.directory,
                        options: OfflineQueueOptions(sendsRequests: wall > 1_000_000),
                        files: LinuxFileSystem(),
                        wallTime: { wall }, boot: nil)
                }
                let early = try await open(1_000)
                try await early.submit(try fresh.request(), tag: "early")
                await early.close()
                let late = try await open(1_800_000_000_000)
                #expect(try await late.delivered().keys.first == "early")
                await late.close()
            }
        }
    }

    @Test("A lifetime of zero or less expires immediately, and one of centuries never overflows")
    func oddLifetimes() async throws {
        try await OfflineScene.run { scene in
            var queue = try await scene.queue()
            for lifetime in [Duration.zero, .seconds(-5)] {
                try await queue.submit(try scene.request(), as: OfflineSubmission(timeToLive: lifetime))
            }
            try await queue.drained
            #expect(await queue.restingCount == 2)
            #expect(scene.origin.requests.isEmpty)
            await queue.close()
            queue = try await scene.queue { $0.sendsRequests = false }
            try await queue.submit(
                try scene.request(), as: OfflineSubmission(timeToLive: .seconds(Int64.max)))
            await queue.close()
            let next = try await scene.queue()
            #expect(try await next.delivered().count == 1)
            await next.close()
        }
    }
}
