import Martlet
import MartletTesting
import Testing

@Suite("send(…, whenOffline: .enqueue)")
struct QueuedSendTests {
    @Test("Any response is returned, whatever its status, and the queue stores nothing")
    func answered() async throws {
        try await OfflineScene.run { request in
            .text("answer", status: request.path == "/missing" ? 404 : 200)
        } _: { scene in
            let session = OfflineScene.session
            let queue = try await scene.queue(session: session)
            for (path, status) in [("/there", 200), ("/missing", 404)] {
                let outcome = try await session.send(
                    try scene.request(.post, path), body: .text("x"), whenOffline: .enqueue)
                guard case .response(let answer) = outcome else {
                    Issue.record("\(outcome)")
                    continue
                }
                #expect(answer.statusCode == status)
                #expect(answer.text == "answer")
            }
            try await queue.drained
            #expect(try scene.directory.names() == [])
            await queue.close()
        }
    }

    @Test("A request that cannot be sent is queued, and the next process delivers it")
    func queued() async throws {
        try await OfflineScene.run { _ in
            .text("", status: 503)
        } _: { scene in
            let session = OfflineScene.session
            let queue = try await scene.queue(session: session) { $0.backoff = OfflineScene.never }
            let outcome = try await session.send(
                try scene.request(), body: .text("x"), whenOffline: .enqueue(lane: "a", tag: "later"))
            guard case .queued(let ticket) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(ticket.tag == "later")
            // A request after a waiting one is queued immediately.
            guard case .queued = try await session.send(try scene.request(), whenOffline: .enqueue(lane: "a"))
            else {
                Issue.record("it was sent out of order")
                return
            }
            #expect(scene.origin.requests.count == 1)
            await queue.close()
            scene.answer { _ in .text("") }
            let next = try await scene.queue()
            #expect(try await next.delivered().keys.first == "later")
            try await next.drained
            await next.close()
        }
    }

    @Test("A request that broke after it was sent and must not be repeated throws and is not queued")
    func uncertain() async throws {
        try await OfflineScene.run { _ in
            throw OriginFault(.reset)
        } _: { scene in
            let session = OfflineScene.session
            let queue = try await scene.queue(session: session)
            let submission = OfflineSubmission(key: .none)
            let error = await #expect(throws: HTTPError.self) {
                try await session.send(
                    try scene.request(), body: .text("x"), whenOffline: .enqueue(in: queue, as: submission))
            }
            #expect(error?.wasSent == true)
            try await queue.drained
            #expect(try scene.directory.names() == [])
            await queue.close()
        }
    }

    @Test("Cancelling removes the request from the queue")
    func cancelled() async throws {
        try await OfflineScene.run { _ in
            throw OriginFault(.stall)
        } _: { scene in
            let session = OfflineScene.session
            let queue = try await scene.queue(session: session)
            let request = try scene.request()
            let task = Task { try await session.send(request, whenOffline: .enqueue) }
            try await scene.origin.waitForRequests(count: 1)
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            try await queue.drained
            #expect(try scene.directory.names() == [])
            await queue.close()
        }
    }

    @Test("The key of the options of a call or a host is sent, also with an idempotent method")
    func keyOfOptions() async throws {
        try await OfflineScene.run { scene in
            let session = OfflineScene.session
            let queue = try await scene.queue(session: session)
            let options = RequestOptions { $0.idempotencyKey = .value("order-17") }
            for method in [HTTPRequest.Method.post, .put] {
                _ = try await session.send(
                    try scene.request(method), body: .text("x"), options: options, whenOffline: .enqueue)
            }
            let api = try session.host(scene.origin.url("/")).with { $0.options = options }
            _ = try await api.send("notes", body: .text("x"), whenOffline: .enqueue)
            try await queue.submit("notes", of: api, body: .text("x"))
            try await queue.drained
            let keys = scene.origin.requests.map { $0.headers["Idempotency-Key"] }
            #expect(keys.count == 4 && Set(keys) == ["order-17"])
            for text in ["", "a\r\nX: y"] {
                let invalid = RequestOptions { $0.idempotencyKey = .value(text) }
                let error = await #expect(throws: HTTPError.self) {
                    try await session.send(try scene.request(), options: invalid, whenOffline: .enqueue)
                }
                #expect(error?.code == .invalidRequest)
            }
            #expect(scene.origin.requests.count == 4)
            await queue.close()
        }
    }

    @Test("Without a queue the call throws an error that says so, and sends nothing")
    func withoutQueue() async throws {
        try await OfflineScene.run { scene in
            let error = await #expect(throws: HTTPError.self) {
                try await OfflineScene.session.send(try scene.request(), whenOffline: .enqueue)
            }
            #expect(error?.message.contains("no offline queue") == true)
            #expect(scene.origin.requests.isEmpty)
        }
    }

    @Test("Closing the queue leaves waiting requests queued")
    func closing() async throws {
        try await OfflineScene.run { _ in
            throw OriginFault(.stall)
        } _: { scene in
            let session = OfflineScene.session
            let queue = try await scene.queue(session: session)
            let request = try scene.request()
            let task = Task { try await session.send(request, whenOffline: .enqueue(tag: "kept")) }
            try await scene.origin.waitForRequests(count: 1)
            await queue.close()
            guard case .queued(let ticket) = try await task.value else {
                Issue.record("it was not queued")
                return
            }
            #expect(ticket.tag == "kept")
            #expect(try scene.directory.names() == ["1.request"])
        }
    }
}
