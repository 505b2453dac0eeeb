import Dispatch
import Glibc
import Martlet
import MartletStorage
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletStreams

@Suite("Requests through a cache whose disk fails")
struct CacheDiskFaultTests {
    @Test(
        "Requests succeed despite any file error, and the cache recovers",
        arguments: FaultyFileSystem.Call.allCases, [ENOSPC, EIO, EMFILE, EROFS, EACCES])
    func failing(_ call: FaultyFileSystem.Call, _ code: Int32) async throws {
        let scene = try CacheFaultScene()
        try await CacheFaultScene.withOrigin { origin in
            let session = scene.session(try await scene.openedCache())
            try await CacheFaultScene.get(1, 100, session, origin)
            try await CacheFaultScene.get(2, 100_000, session, origin)
            scene.files.fail(.init(call, code: code))
            for _ in 0..<2 {
                for (offset, count) in [(1, 100), (2, 100_000), (3, 200), (4, 200_000)] {
                    try await CacheFaultScene.get(offset, count, session, origin)
                }
            }
            #expect(try await session.delete(origin.url("/1/100")).statusCode == 204)
            #expect(try await CacheFaultScene.get(1, 100, session, origin) == .network)
            scene.files.mend()
            for (offset, count) in [(1, 100), (2, 100_000), (3, 200), (4, 200_000), (5, 300)] {
                try await CacheFaultScene.comesBack(offset, count, session, origin)
            }
            let isBack = await eventually {
                let last = scene.events.last { $0.isUnavailable || $0 == .recovered }
                return last == nil || last == .recovered
            }
            #expect(isBack)
        }
        // Temporary files that could not be removed are removed when the directory is opened again.
        #expect(
            await eventually {
                scene.names.allSatisfy { !$0.hasPrefix("new.") }
                    || (try? scene.cache(files: LinuxFileSystem())) == nil
            })
    }

    @Test("Requests succeed when the disk becomes full at any file operation of a store")
    func fullAtEachOperation() async throws {
        try await CacheFaultScene.withSession { scene, session, origin in
            try await CacheFaultScene.get(0, 150_000, session, origin)
            var operations = 0
            while operations < 300 {
                scene.files.fail(.init(nil, after: operations, code: ENOSPC))
                let before = scene.files.count()
                let offset = operations + 1
                try await CacheFaultScene.get(offset, 150_000, session, origin)
                let isDone = scene.files.count() - before <= operations
                scene.files.mend()
                try await CacheFaultScene.comesBack(offset, 150_000, session, origin)
                if isDone { break }
                operations += 1
            }
            #expect(operations > 5 && operations < 300)
            #expect(await scene.hears { $0.isUnavailable })
            #expect(await scene.hears { $0 == .recovered })
        }
    }

    @Test(
        "Requests succeed when the disk becomes full at any byte, and the cache recovers with free space"
    )
    func fillingUp() async throws {
        try await CacheFaultScene.withSession { scene, session, origin in
            for (number, room) in stride(from: 0, through: 221_000, by: 13_000).enumerated() {
                scene.files.fill(after: UInt64(room))
                try await CacheFaultScene.get(number, 200_000, session, origin)
                scene.files.mend()
                try await CacheFaultScene.comesBack(number, 200_000, session, origin)
            }
            #expect(
                await scene.hears {
                    if case .unavailable(let reason) = $0 { reason.contains("space") } else { false }
                })
            #expect(await scene.isTidy())
        }
    }

    @Test(
        "A call that waits for a hanging disk ends on cancellation and at its total timeout",
        arguments: [true, false])
    func hanging(isCancelled: Bool) async throws {
        try await CacheFaultScene.withSession { scene, session, origin in
            let (hanging, going) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            scene.files.interrupt(.open) {
                hanging.signal()
                going.wait()
            }
            defer { going.signal() }
            let url = origin.url("/0/100")
            let timeout: Duration? = isCancelled ? nil : .milliseconds(100)
            let call = Task { try await session.get(url, timeout: timeout) }
            #expect(await eventually { hanging.wait(timeout: .now()) == .success })
            if isCancelled { call.cancel() }
            await expectEnd(of: call, isCancelled: isCancelled)
            going.signal()
            #expect(await eventually { session.diagnostics.isIdle })
            // A known defect: after a total timeout the request may still be sent.
            #expect(!isCancelled || origin.requests.isEmpty)
        }
    }

    /// Expects that a call has ended without the disk: by its cancellation, or else at its total timeout.
    private func expectEnd(of call: Task<HTTPExchange, any Error>, isCancelled: Bool) async {
        switch await call.result {
        case .success: Issue.record("a response without a disk")
        case .failure(let error):
            #expect((error is CancellationError) == isCancelled)
            #expect(isCancelled || (error as? HTTPError)?.code == .timedOut)
        }
    }

    @Test(
        "A call that reads a stored body from a hanging disk ends on cancellation and at its total timeout",
        arguments: [true, false], [true, false])
    func hangingBody(isCancelled: Bool, isStarted: Bool) async throws {
        try await CacheFaultScene.withSession { scene, session, origin in
            try await CacheFaultScene.comesBack(0, 1_000_000, session, origin)
            let name = try #require(scene.bodyFiles.first)
            let path = "\(scene.path)/\(name)"
            let (hanging, going) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            let hang: @Sendable () -> Void = {
                hanging.signal()
                going.wait()
            }
            // The first piece is read before the response is returned, the others afterwards.
            scene.files.interrupt(.read, at: path) { [files = scene.files] in
                if isStarted { files.interrupt(.read, at: path, with: hang) } else { hang() }
            }
            defer { going.signal() }
            let (url, count) = (origin.url("/0/1000000"), origin.requests.count)
            let timeout: Duration? = isCancelled ? nil : .milliseconds(100)
            let call = Task { try await session.get(url, timeout: timeout) }
            if isCancelled {
                #expect(await eventually { hanging.wait(timeout: .now()) == .success })
                call.cancel()
            }
            await expectEnd(of: call, isCancelled: isCancelled)
            going.signal()
            #expect(await eventually { session.diagnostics.isIdle })
            #expect(!isCancelled || origin.requests.count == count)
        }
    }

    @Test("Short reads and writes do not change the result")
    func shortPieces() async throws {
        let scene = try CacheFaultScene()
        scene.files.limitPieces(to: 1000)
        try await CacheFaultScene.withOrigin { origin in
            let session = scene.session(try scene.cache())
            try await CacheFaultScene.comesBack(1, 3000, session, origin)
            try await CacheFaultScene.comesBack(2, 100_000, session, origin)
        }
    }

    @Test(
        "After a crash at any file operation, the next process serves only complete responses"
    )
    func deaths() async throws {
        let scene = try CacheFaultScene()
        try await CacheFaultScene.withOrigin { origin in
            for operations in stride(from: 0, to: 90, by: 2) {
                // The stopped file system stays stopped, so the released cache writes nothing either.
                let files = FaultyFileSystem()
                files.stop(after: operations)
                let dying = scene.session(try scene.cache(files: files))
                try await CacheFaultScene.get(1, 100, dying, origin)
                try await CacheFaultScene.get(operations, 70_000, dying, origin)
                #expect(try await dying.delete(origin.url("/1/100")).statusCode == 204)
                let next = scene.session(try await scene.openedCache())
                try await CacheFaultScene.comesBack(1, 100, next, origin)
                try await CacheFaultScene.comesBack(operations, 70_000, next, origin)
            }
        }
        #expect(
            await eventually {
                !scene.names.contains { $0.hasPrefix("new.") } || (try? scene.cache()) == nil
            })
    }
}
