import Martlet
import MartletTesting
import Synchronization
import Testing

@Suite("Offline queue: delivery")
struct DeliveryTests {
    @Test("A request is delivered with its fields, body and quoted key, and leaves no file")
    func delivers() async throws {
        let serverLog = ServerLog()
        try await OfflineScene.run { request in
            try await serverLog.note(request)
            return .text("taken", status: 201)
        } _: { scene in
            let queue = try await scene.queue()
            var request = try scene.request()
            request.headerFields[.contentLanguage] = "de"
            let ticket = try await queue.submit(request, body: .text("hello"), lane: "notes", tag: "first")
            let answer = try #require(try await queue.delivered()["first"])
            #expect(answer.statusCode == 201)
            #expect(answer.text == "taken")
            let entry = try #require(serverLog.entries.first)
            #expect(serverLog.entries.count == 1)
            #expect(entry.body == "hello")
            #expect(entry.fields["Content-Language"] == "de")
            #expect(entry.fields["Content-Type"] == "text/plain; charset=utf-8")
            #expect(entry.key == ticket.idempotencyKey)
            #expect(entry.key?.wholeMatch(of: /"[0-9a-f]{32}"/) != nil)
            try await queue.drained
            #expect(try scene.directory.names() == [])
            #expect(await queue.entries.isEmpty)
            await queue.close()
        }
    }

    @Test("A request that could not be sent is stored, and the next process delivers it under its tag")
    func survives() async throws {
        let serverLog = ServerLog()
        try await OfflineScene.run { request in
            try await serverLog.note(request)
            return .text("taken")
        } _: { scene in
            let first = try await scene.queue { $0.sendsRequests = false }
            let ticket = try await first.submit(try scene.request(), body: .text("a"), tag: "note 1")
            await first.close()
            #expect(serverLog.entries.isEmpty)
            #expect(try scene.directory.names() == ["1.request"])
            let second = try await scene.queue()
            #expect(try await second.delivered().keys.first == "note 1")
            #expect(serverLog.entries.map(\.key) == [ticket.idempotencyKey])
            await second.close()
        }
    }

    @Test("Requests that failed because the server was down are sent in order once it is up")
    func serverComesBack() async throws {
        let directory = try OfflineDirectory()
        // A port without a listener, on an address from which no other test takes ports.
        let address = "127.0.71.1"
        let gone = try await TestOrigin.start(
            OriginOptions(binding: .address(address, port: 0)), handler: .status(200))
        let place = gone.url("/")
        await gone.stop()
        let queue = try await OfflineQueue(
            session: OfflineScene.session, directory: directory.directory,
            options: OfflineQueueOptions(backoff: OfflineScene.soon))
        for number in 1...5 {
            try await queue.submit(try HTTPRequest(method: .post, url: place), body: .text("\(number)"))
        }
        _ = try await queue.postponed(.unreachable)
        let serverLog = ServerLog()
        let origin = try await TestOrigin.start(
            OriginOptions(binding: .address(address, port: gone.port))
        ) { request in
            try await serverLog.note(request)
            return .text("")
        }
        try await queue.drained
        #expect(serverLog.effects == ["1", "2", "3", "4", "5"])
        #expect(serverLog.entries.count == 5)
        await queue.close()
        await origin.stop()
    }

    @Test("A hundred requests in one lane under random 503s succeed in order, each once")
    func orderUnderRefusals() async throws {
        let serverLog = ServerLog()
        let random = Mutex(SeededGenerator(seed: 7))
        try await OfflineScene.run { request in
            let refuses = random.withLock { Int.random(in: 0..<3, using: &$0) == 0 }
            try await serverLog.note(request, takes: !refuses)
            return .text("", status: refuses ? 503 : 200)
        } _: { scene in
            let queue = try await scene.queue()
            for number in 1...100 {
                try await queue.submit(try scene.request(), body: .text("\(number)"), lane: "one")
            }
            try await queue.drained
            #expect(serverLog.effects == (1...100).map { "\($0)" })
            #expect(serverLog.entries.count > 100)
            await queue.close()
        }
    }

    @Test("Lanes are independent: a rejected request stops no other lane")
    func lanesAreApart() async throws {
        try await OfflineScene.run { request in
            .text("", status: request.path == "/stuck" ? 503 : 200)
        } _: { scene in
            let queue = try await scene.queue { $0.backoff = OfflineScene.never }
            try await queue.submit(try scene.request(.post, "/stuck"), lane: "a", tag: "stuck")
            try await queue.submit(try scene.request(.post, "/fine"), lane: "a", tag: "behind")
            try await queue.submit(try scene.request(.post, "/fine"), lane: "b", tag: "other")
            #expect(try await queue.delivered().keys.first == "other")
            _ = try await queue.postponed(.refused)
            #expect(await queue.pendingCount == 2)
            await queue.close()
        }
    }

    @Test("409 is retried with the same key")
    func conflict() async throws {
        let serverLog = ServerLog()
        try await OfflineScene.run { request in
            try await serverLog.note(request)
            return .text("", status: serverLog.entries.count < 3 ? 409 : 200)
        } _: { scene in
            let queue = try await scene.queue()
            let ticket = try await queue.submit(try scene.request(), body: .text("x"))
            try await queue.drained
            #expect(serverLog.entries.map(\.key) == Array(repeating: ticket.idempotencyKey, count: 3))
            await queue.close()
        }
    }

    @Test("A permanently rejected request is a dead letter with its response, and the others are sent")
    func poison() async throws {
        try await OfflineScene.run { request in
            guard request.path == "/bad" else { return .text("") }
            var answer = OriginResponse.text("no such thing", status: 422)
            answer.headers = ["Content-Type": "text/plain", "Set-Cookie": "secret=1", "X-Why": "because"]
            return answer
        } _: { scene in
            let queue = try await scene.queue()
            let bad = try await queue.submit(try scene.request(.post, "/bad"), tag: "bad")
            try await queue.submit(try scene.request(.post, "/good"), tag: "good")
            #expect(try await queue.delivered().keys.first == "good")
            let (ticket, letter) = try await queue.dead()
            #expect(ticket == bad)
            #expect(letter.reason == .refused)
            #expect(letter.statusCode == 422)
            #expect(letter.body == Array("no such thing".utf8))
            #expect(letter.fields[HTTPField.Name("X-Why") ?? .expect] == "because")
            #expect(letter.fields[.setCookie] == nil)
            try await queue.drained
            await queue.close()

            // It is stored for the next process and is not sent automatically.
            let count = scene.origin.requests.count
            let next = try await scene.queue()
            let entry = try #require(await next.entries.first)
            guard case .dead(let kept) = entry.state else {
                Issue.record("\(entry)")
                return
            }
            #expect(kept == letter)
            #expect(entry.attempts == 1)
            #expect(scene.origin.requests.count == count)
            scene.answer { _ in .text("better now") }
            try await next.retry(bad.id)
            #expect(try await next.delivered()["bad"]?.text == "better now")
            #expect(try scene.directory.names() == [])
            await next.close()
        }
    }

    @Test("Dead letters and waiting requests can be dropped, and are gone when the call returns")
    func drops() async throws {
        try await OfflineScene.run { _ in
            .text("", status: 503)
        } _: { scene in
            let queue = try await scene.queue { $0.backoff = OfflineScene.never }
            let first = try await queue.submit(try scene.request())
            let second = try await queue.submit(try scene.request())
            _ = try await queue.postponed(.refused)
            try await queue.drop(second.id)
            try await queue.drop(first.id)
            #expect(try scene.directory.names() == [])
            #expect(await queue.pendingCount == 0)
            await #expect(throws: HTTPError.self) { try await queue.drop(first.id) }
            await #expect(throws: HTTPError.self) { try await queue.retry(first.id) }
            try await queue.drained
            await queue.close()
        }
    }

    @Test("A request that is being sent is cancelled when it is dropped")
    func dropsWhileSending() async throws {
        try await OfflineScene.run { request in
            throw OriginFault(.stall)
        } _: { scene in
            let queue = try await scene.queue()
            let ticket = try await queue.submit(try scene.request())
            try await scene.origin.waitForRequests(count: 1)
            try await queue.drop(ticket.id)
            #expect(try scene.directory.names() == [])
            await queue.close()
        }
    }

    @Test("Fifty changes of the network path during a drain lose, block and repeat no request")
    func flaps() async throws {
        let serverLog = ServerLog()
        try await OfflineScene.run { request in
            let number = serverLog.entries.count
            try await serverLog.note(request, takes: number % 4 != 1)
            if number % 4 == 1 { throw OriginFault(.reset) }
            return .text("")
        } _: { scene in
            let queue = try await scene.queue { $0.backoff = OfflineBackoff(initialDelay: .milliseconds(20)) }
            for number in 0..<60 {
                try await queue.submit(
                    try scene.request(), body: .text("\(number)"), lane: "lane \(number % 5)")
            }
            async let flaps: Void = {
                for _ in 0..<50 {
                    await queue.networkBecameAvailable()
                    await Task.yield()
                }
            }()
            await flaps
            try await queue.drained
            #expect(serverLog.effects.count == 60)
            #expect(Set(serverLog.effects).count == 60)
            for lane in 0..<5 {
                let own = serverLog.effects.compactMap { Int($0) }.filter { $0 % 5 == lane }
                #expect(own == own.sorted())
            }
            await queue.close()
        }
    }

    @Test("A restored network path immediately sends the requests that could not reach a server")
    func pathComesBack() async throws {
        let path = ManualNetworkPath(.unsatisfied)
        let isDown = Mutex(true)
        try await OfflineScene.run { _ in
            if isDown.withLock({ $0 }) { throw OriginFault(.reset) }
            return .text("")
        } _: { scene in
            let queue = try await scene.queue {
                $0.backoff = OfflineScene.never
                $0.networkMonitor = path.monitor
            }
            try await queue.submit(try scene.request(), tag: "waiting")
            _ = try await queue.postponed(.unreachable)
            isDown.withLock { $0 = false }
            path.set(NetworkPath([], status: .satisfied))
            #expect(try await queue.delivered().keys.first == "waiting")
            await queue.close()
        }
    }

    @Test(
        "A request without a key that broke after it was sent is uncertain and is not repeated")
    func uncertain() async throws {
        let serverLog = ServerLog()
        try await OfflineScene.run { request in
            try await serverLog.note(request)
            if request.path == "/break" { throw OriginFault(.reset) }
            return .text("")
        } _: { scene in
            let queue = try await scene.queue()
            let submission = OfflineSubmission(tag: "once", key: .none)
            let ticket = try await queue.submit(
                try scene.request(.post, "/break"), body: .text("x"), as: submission)
            try await queue.submit(try scene.request(.post, "/fine"), tag: "next")
            let (found, letter) = try await queue.uncertain()
            #expect(found == ticket)
            #expect(ticket.idempotencyKey == nil)
            #expect(letter.reason == .noResponse)
            #expect(try await queue.delivered().keys.first == "next")
            try await queue.drained
            await queue.close()
            let next = try await scene.queue()
            try await next.drained
            #expect(serverLog.entries.map(\.path) == ["/break", "/fine"])
            guard case .uncertain = try #require(await next.entries.first).state else {
                Issue.record("it is no longer uncertain")
                return
            }
            try await next.drop(ticket.id)
            await next.close()
        }
    }

    @Test("A response with a cut body is a response: the request took effect")
    func cutAnswer() async throws {
        let serverLog = ServerLog()
        try await OfflineScene.run { request in
            try await serverLog.note(request)
            var answer = OriginResponse.text("0123456789")
            answer.fault = OriginFault(.cut, afterBodyBytes: 4)
            return answer
        } _: { scene in
            let queue = try await scene.queue()
            try await queue.submit(
                try scene.request(), as: OfflineSubmission(tag: "cut", key: .none))
            #expect(try await queue.delivered()["cut"]?.text == "0123")
            #expect(serverLog.entries.count == 1)
            await queue.close()
        }
    }

    @Test("A Retry-After date in the past means now")
    func retryAfterPast() async throws {
        let serverLog = ServerLog()
        try await OfflineScene.run { request in
            try await serverLog.note(request)
            guard serverLog.entries.count == 1 else { return .text("") }
            var answer = OriginResponse.text("", status: 503)
            answer.headers = ["Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"]
            return answer
        } _: { scene in
            let queue = try await scene.queue()
            try await queue.submit(try scene.request())
            try await queue.drained
            #expect(serverLog.entries.count == 2)
            await queue.close()
        }
    }

    @Test("Retry-After is obeyed: no other event resumes the lane before it")
    func retryAfterHolds() async throws {
        try await OfflineScene.run { _ in
            var answer = OriginResponse.text("", status: 429)
            answer.headers = ["Retry-After": "3000"]
            return answer
        } _: { scene in
            let queue = try await scene.queue()
            try await queue.submit(try scene.request())
            let why = try await queue.first { event -> OfflinePostponement? in
                if case .postponed(_, let why) = event { why } else { nil }
            }
            #expect(why.delay == .seconds(3000))
            await queue.networkBecameAvailable()
            #expect(scene.origin.requests.count == 1)
            await queue.close()
        }
    }
}
