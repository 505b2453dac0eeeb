import Martlet
import MartletTesting
import MartletTransport
import Synchronization
import SystemPackage
import Testing

@testable import MartletOffline

@Suite("Offline queue: edge cases")
struct DecisionTests {
    @Test("A POST without a key whose redirect target is unreachable is not sent again")
    func redirectToNobody() async throws {
        let gone = try await TestOrigin.start(handler: .status(200))
        let place = gone.url("/result")
        await gone.stop()
        try await OfflineScene.run { _ in
            var answer = OriginResponse.text("", status: 303)
            answer.headers = ["Location": place]
            return answer
        } _: { scene in
            let error = await #expect(throws: HTTPError.self) {
                try await OfflineScene.session.send(try scene.request(), body: .text("x"))
            }
            #expect(error?.wasSent == true)
            let queue = try await scene.queue()
            try await queue.submit(try scene.request(), as: OfflineSubmission(key: .none))
            _ = try await queue.uncertain()
            try await queue.drained
            #expect(scene.origin.requests.count == 2, "the plain one, and one of the queue's")
            await queue.close()
        }
    }

    @Test("An expired dead letter that is retried gets its full lifetime again")
    func retriedLate() async throws {
        let isBad = Mutex(true)
        let wall = Mutex(Int64(1_700_000_000_000))
        try await OfflineScene.run { _ in
            .text("", status: isBad.withLock { $0 } ? 400 : 200)
        } _: { scene in
            func open() async throws -> OfflineQueue {
                try await OfflineQueue(
                    session: OfflineScene.session, directory: scene.directory.directory,
                    options: OfflineQueueOptions(backoff: OfflineScene.soon), files: LinuxFileSystem(),
                    wallTime: { wall.withLock { $0 } })
            }
            var queue = try await open()
            let ticket = try await queue.submit(
                try scene.request(), as: OfflineSubmission(tag: "late", timeToLive: .seconds(3000)))
            _ = try await queue.dead()
            try await queue.drained
            await queue.close()
            wall.withLock { $0 += 4_000_000 }
            isBad.withLock { $0 = false }
            queue = try await open()
            try await queue.retry(ticket.id)
            #expect(try await queue.delivered().keys.first == "late")
            await queue.close()
        }
    }

    @Test("Each retry after the expiry gives a request its first lifetime, however often it is retried")
    func retriedLateAgain() async throws {
        let wall = Mutex(Int64(1_700_000_000_000))
        try await OfflineScene.run { _ in
            .text("", status: 400)
        } _: { scene in
            func open() async throws -> OfflineQueue {
                try await OfflineQueue(
                    session: OfflineScene.session, directory: scene.directory.directory,
                    options: OfflineQueueOptions(backoff: OfflineScene.soon), files: LinuxFileSystem(),
                    wallTime: { wall.withLock { $0 } }, boot: nil)
            }
            var queue = try await open()
            let ticket = try await queue.submit(
                try scene.request(), as: OfflineSubmission(timeToLive: .seconds(3000)))
            for _ in 0..<3 {
                try await queue.drained
                await queue.close()
                wall.withLock { $0 += 4_000_000 }
                queue = try await open()
                try await queue.retry(ticket.id)
                let entry = try #require(await queue.entries.first)
                let left = entry.expiresAt - wall.withLock { $0 }
                #expect(left == 3_000_000)
                #expect(entry.submittedAt == 1_700_000_000_000)
            }
            await queue.close()
        }
    }

    @Test("A record that was deleted from outside does not block the lane")
    func takenAway() async throws {
        let isDown = Mutex(true)
        try await OfflineScene.run { _ in
            .text("", status: isDown.withLock { $0 } ? 503 : 200)
        } _: { scene in
            let queue = try await scene.queue { $0.backoff = OfflineScene.never }
            let first = try await queue.submit(try scene.request(), tag: "gone")
            try await queue.submit(try scene.request(), tag: "next")
            _ = try await queue.postponed(.refused)
            try scene.directory.remove("1.request")
            isDown.withLock { $0 = false }
            try await queue.retry(first.id)
            #expect(try await queue.delivered().keys.first == "next")
            let path = try await queue.first { event -> FilePath? in
                if case .recordSkipped(let path, _) = event { path } else { nil }
            }
            #expect(path.string.hasSuffix("/1.request"))
            try await queue.drained
            await queue.close()
        }
    }

    @Test("Closing and dropping do not wait for credentials that never arrive")
    func hangingRefresh() async throws {
        try await OfflineScene.run { _ in
            .text("", status: 401)
        } _: { scene in
            let credentials = OfflineCredentials(
                refresh: { try await Task.sleep(for: .seconds(1_000_000)) }, authorize: { $0 })
            let queue = try await scene.queue(credentials: credentials)
            let first = try await queue.submit(try scene.request(), lane: "a")
            try await queue.submit(try scene.request(), lane: "b")
            try await scene.origin.waitForRequests(count: 1)
            try await queue.drop(first.id)
            await queue.close()
            #expect(try scene.directory.names() == ["2.request"])
        }
    }

    @Test("Keys that are not valid in a field value are rejected")
    func keys() async throws {
        try await OfflineScene.run { scene in
            let queue = try await scene.queue { $0.sendsRequests = false }
            for key in ["", "ü", "a\nb"] {
                let error = await #expect(throws: HTTPError.self) {
                    try await queue.submit(try scene.request(), as: OfflineSubmission(key: .value(key)))
                }
                #expect(error?.code == .invalidRequest)
            }
            #expect(try scene.directory.names() == [])
            await queue.close()
        }
    }

    @Test("413 with Retry-After is transient, and permanent without it")
    func tooLarge() async throws {
        let count = Mutex(0)
        try await OfflineScene.run { _ in
            var answer = OriginResponse.text("", status: 413)
            if count.withLock({
                $0 += 1; return $0 == 1
            }) {
                answer.headers = ["Retry-After": "0"]
            }
            return answer
        } _: { scene in
            let queue = try await scene.queue()
            try await queue.submit(try scene.request())
            let (_, letter) = try await queue.dead()
            #expect(letter.statusCode == 413)
            #expect(scene.origin.requests.count == 2)
            try await queue.drained
            await queue.close()
        }
    }

    @Test("The default directory belongs to the program, below the state directory")
    func defaultDirectory() {
        func path(_ variables: [String: String]) -> String {
            ProgramDirectory.path(
                "queue", below: "XDG_STATE_HOME", orHome: [".local", "state"], program: "agent"
            ) { variables[$0] }.string
        }
        #expect(path(["XDG_STATE_HOME": "/state", "HOME": "/home/a"]) == "/state/agent/queue")
        #expect(path(["XDG_STATE_HOME": "state", "HOME": "/home/a"]) == "/home/a/.local/state/agent/queue")
        #expect(path(["HOME": "/home/a"]) == "/home/a/.local/state/agent/queue")
        #expect(path([:]) == "/.local/state/agent/queue")
    }

    @Test("Debug output of a queue contains no secrets")
    func mirror() async throws {
        try await OfflineScene.run { scene in
            let queue = try await scene.queue { $0.sendsRequests = false }
            var request = try scene.request()
            request.headerFields[.authorization] = "Bearer s3cret"
            try await queue.submit(request)
            var text = ""
            dump(queue, to: &text)
            #expect(!text.contains("s3cret"))
            await queue.close()
        }
    }
}
