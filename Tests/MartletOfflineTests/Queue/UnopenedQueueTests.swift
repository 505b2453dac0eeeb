import Martlet
import MartletTesting
import Testing

@Suite("A request for an offline queue that is not open")
struct UnopenedQueueTests {
    @Test("Without a queue the error names the request, and says how to open one")
    func unopened() async throws {
        let session = OfflineScene.session
        let request = try HTTPRequest(method: .post, url: "https://me:pw@a.example/notes?token=hidden")
        let error = await #expect(throws: HTTPError.self) {
            try await session.send(request, body: .text("x"), whenOffline: .enqueue)
        }
        #expect(error?.code == .invalidRequest && error?.wasSent == false)
        let message = "\(try #require(error))"
        for part in [
            "POST https://a.example/notes", "no offline queue is open", "OfflineQueue(session: session",
        ] {
            #expect(message.contains(part), "\(message)")
        }
        #expect(!message.contains("pw") && !message.contains("hidden"))
        let host = try session.host("https://a.example/v2")
        let other = await #expect(throws: HTTPError.self) {
            try await host.send("notes", body: .text("x"), whenOffline: .enqueue)
        }
        #expect(other?.description.contains("POST https://a.example/v2/notes") == true)
    }

    @Test("A queue that was released is not open, and one that was closed says so")
    func released() async throws {
        try await OfflineScene.run { scene in
            let session = OfflineScene.session
            _ = try await scene.queue(session: session)
            let error = await #expect(throws: HTTPError.self) {
                try await session.send(try scene.request(), whenOffline: .enqueue)
            }
            #expect(error?.message.contains("keep it") == true)
            let queue = try await scene.queue(session: session)
            await queue.close()
            let closed = await #expect(throws: HTTPError.self) {
                try await session.send(try scene.request(), whenOffline: .enqueue)
            }
            #expect(closed?.message.contains("clos") == true)
            let submitted = await #expect(throws: HTTPError.self) { try await queue.submit(try scene.request()) }
            #expect(submitted?.code == .offlineQueueClosed && closed?.code == .offlineQueueClosed)
            #expect(scene.origin.requests.isEmpty)
        }
    }

    @Test("A query is appended to the URL of a submitted request")
    func query() async throws {
        try await OfflineScene.run { scene in
            let queue = try await scene.queue { $0.sendsRequests = false }
            let ticket = try await queue.submit(
                "https://a.example/notes", query: ["limit": 2], body: .text("x"), lane: "notes")
            #expect(ticket.url.absoluteString == "https://a.example/notes?limit=2")
            await queue.close()
        }
    }

    @Test("A queue sends a request itself, and returns the response or a ticket")
    func sendsItself() async throws {
        try await OfflineScene.run { scene in
            // Each session ignores the queue of the other.
            let queue = try await scene.queue { $0.backoff = OfflineScene.never }
            guard case .response(let answer) = try await queue.send(try scene.request(), body: .text("x"))
            else { return #expect(Bool(false), "no response") }
            #expect(answer.text == "taken")
            scene.answer { _ in .text("", status: 503) }
            let outcome = try await queue.send(
                try scene.request(), body: .text("x"), as: OfflineSubmission(tag: "later"))
            guard case .queued(let ticket) = outcome else { return #expect(Bool(false), "not queued") }
            #expect(ticket.tag == "later")
            await queue.close()
        }
    }

    @Test("Later attempts in one process have the headers and the credentials of the host too")
    func laterAttempts() async throws {
        let key = try #require(HTTPField.Name("X-Api-Key"))
        try await OfflineScene.run { request in
            request.headers["X-Try"] == nil ? .text("", status: 503) : .text("taken")
        } _: { scene in
            let session = OfflineScene.session
            let queue = try await scene.queue(session: session)
            let api = try session.host(scene.origin.url("/v2"), headers: [.init(key): "secret"])
                .with { $0.credentials = .basic(user: "me", password: "pw") }
            guard case .queued = try await api.post("notes", body: .text("x"), whenOffline: .enqueue) else {
                return #expect(Bool(false), "not queued")
            }
            try await scene.origin.waitForRequests(count: 3)
            for request in scene.origin.requests {
                #expect(request.headers["X-Api-Key"] == "secret")
                #expect(request.headers["Authorization"] == "Basic bWU6cHc=")
            }
            scene.answer { _ in .text("taken") }
            try await queue.drained
            await queue.close()
        }
    }

    @Test("A closure that adds credentials adds them to the headers of the host")
    func closureOfQueue() async throws {
        let key = try #require(HTTPField.Name("X-Api-Key"))
        try await OfflineScene.run { scene in
            let session = OfflineScene.session
            let queue = try await scene.queue(
                session: session,
                credentials: OfflineCredentials { request in
                    var request = request
                    request.headerFields[.authorization] = "Bearer t"
                    return request
                })
            let api = try session.host(scene.origin.url("/v2"), headers: [.init(key): "secret"])
            try await queue.submit("notes", of: api, body: .text("x"))
            try await queue.drained
            #expect(scene.origin.requests.first?.headers["X-Api-Key"] == "secret")
            #expect(scene.origin.requests.first?.headers["Authorization"] == "Bearer t")
            await queue.close()
        }
    }
}
