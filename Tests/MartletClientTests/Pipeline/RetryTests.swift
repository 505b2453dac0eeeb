import FoundationEssentials
import Martlet
import MartletTesting
import SystemPackage
import Testing

@Suite("Retries over the network")
struct RetryTests {
    /// Sends four of the ten bytes of a body, and closes the connection.
    private static let cut = ServerScript.respond("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
    /// Sends the ten bytes of a body.
    private static let whole = ServerScript.keepAlive("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789")

    private static func session(
        _ policy: RetryPolicy = .transient(backoff: .constant(.zero)),
        _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) -> HTTPSession {
        HTTPSession.own { configuration in
            configuration.retry = policy
            change(&configuration)
        }
    }

    @Test("A transient status is retried until it succeeds, and the metrics count each attempt")
    func passing() async throws {
        try await TestOrigin.withOrigin { request in
            request.number < 3 ? OriginResponse(503) : .text("up")
        } run: { origin async throws in
            let exchange = try await RetryTests.session().get(origin.url())
            #expect(exchange.text == "up")
            #expect(exchange.metrics.hops.map(\.reason) == [.retry, .retry])
            #expect(exchange.metrics.hops.map(\.status) == [503, 503])
        }
    }

    @Test("Without a policy the status is returned")
    func never() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse(503)
        } run: { origin async throws in
            #expect(try await HTTPSession.own().get(origin.url()).statusCode == 503)
            #expect(origin.requests.count == 1)
        }
    }

    @Test("After the last attempt its response is returned")
    func exhausted() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse(503)
        } run: { origin async throws in
            #expect(try await RetryTests.session().get(origin.url()).statusCode == 503)
            #expect(origin.requests.count == 3)
        }
    }

    @Test("A collected body that was cut is fetched again")
    func cutBody() async throws {
        try await TestOrigin.withOrigin(scripts: Self.cut, Self.whole) { origin async throws in
            let exchange = try await RetryTests.session().get(origin.url())
            #expect(exchange.text == "0123456789")
            #expect(exchange.metrics.hops.map(\.error) == [.truncated])
        }
    }

    @Test("A stream that was cut is not retried, since part of it was already delivered")
    func cutStream() async throws {
        try await TestOrigin.withOrigin(scripts: Self.cut) { origin async throws in
            let error = await #expect(throws: HTTPError.self) {
                try await RetryTests.session().stream(try HTTPRequest(method: .get, url: origin.url())) {
                    _, body in
                    for try await _ in body {}
                }
            }
            #expect(error?.code == .truncated)
            #expect(origin.connectionCount == 1)
        }
    }

    @Test("A download that was cut restarts, and its file is complete")
    func cutDownload() async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin(scripts: Self.cut, Self.whole) { origin async throws in
            let path = directory.path + "/file"
            try await RetryTests.session().save(
                HTTPRequest(method: .get, url: origin.url()), to: FilePath(path), overwrites: false)
            #expect(try String(contentsOfFile: path, encoding: .utf8) == "0123456789")
            #expect(try directory.contents() == ["file"])
        }
    }

    @Test("A POST that was sent is retried only with an idempotency key")
    func unsafe() async throws {
        let dying = ServerScript(.expectRequestHead, .readBody(4), .close)
        let sound = ServerScript(.expectRequestHead, .readBody(4), .sendOK, .awaitClose)
        try await TestOrigin.withOrigin(scripts: dying, sound) { origin async throws in
            let session = RetryTests.session()
            let request = try HTTPRequest(method: .post, url: origin.url())
            await #expect(throws: HTTPError.self) { try await session.send(request, body: .text("body")) }
            #expect(origin.connectionCount == 1)
        }
        try await TestOrigin.withOrigin(scripts: dying, sound) { origin async throws in
            var options = RequestOptions()
            options.idempotencyKey = .random
            let request = try HTTPRequest(method: .post, url: origin.url())
            let exchange = try await RetryTests.session().send(request, body: .text("body"), options: options)
            #expect(exchange.text == "ok")
            let keys = Set(origin.requests.map { $0.headers["Idempotency-Key"] })
            #expect(origin.connectionCount == 2)
            #expect(keys.count <= 1)
        }
    }

    @Test("Cancelling ends the delay between attempts immediately")
    func cancelled() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse(503)
        } run: { origin async throws in
            let session = RetryTests.session(.transient(backoff: .constant(.seconds(3600))))
            let task = Task { try await session.get(origin.url()) }
            try await origin.recorder.waitForCounts { $0.responses == 1 }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    @Test("A retry after the total timeout is not attempted, and the timeout error contains the status")
    func totalClock() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse(503)
        } run: { origin async throws in
            let session = RetryTests.session(.transient(backoff: .constant(.seconds(3600)))) {
                $0.timeouts.total = TestTimeouts.long
            }
            let start = ContinuousClock.now
            let error = try #require(await #expect(throws: HTTPError.self) { try await session.get(origin.url()) })
            #expect(ContinuousClock.now - start < TestTimeouts.ending)
            #expect(error.timeout == .total && error.status == 503 && error.exchange?.statusCode == 503)
            #expect(error.description.contains("503"))
            #expect(origin.requests.count == 1)
        }
    }

    @Test("A total timeout during the last attempt contains the previous attempt's status")
    func totalClockOfLastAttempt() async throws {
        try await withEnoughTime(from: .seconds(1)) { total in
            try await TestOrigin.withOrigin(
                handler: .inTurn([.status(502), .fault(OriginFault(.stall))])
            ) { origin async throws in
                let error = try #require(
                    await #expect(throws: HTTPError.self) {
                        try await RetryTests.session().get(origin.url(), timeout: total)
                    })
                #expect(error.timeout == .total)
                guard error.attempts > 1 else { return false }
                #expect(error.attempts == 2)
                #expect(error.description.hasSuffix("was 502 (2 attempts)"), "\(error)")
                return true
            }
        }
    }

    @Test("A session without budget does not retry")
    func budget() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse(503)
        } run: { origin async throws in
            let session = RetryTests.session(
                .transient(maximumAttempts: 2, backoff: .constant(.zero), budget: 0))
            for _ in 0..<15 { _ = try await session.get(origin.url()) }
            #expect(origin.requests.count == 25)
        }
    }

    @Test("A retry that the total timeout prevents does not use the budget")
    func budgetOfPreventedRetry() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse(503)
        } run: { origin async throws in
            let session = RetryTests.session(
                .transient(maximumAttempts: 2, backoff: .constant(.seconds(3600)), budget: 0))
            // A new session has a budget of ten retries.
            for _ in 0..<11 {
                let error = await #expect(throws: HTTPError.self) {
                    try await session.get(origin.url(), timeout: .seconds(600))
                }
                #expect(error?.timeout == .total)
            }
        }
    }

    @Test("Without budget the response is returned, even if its retry would be too late")
    func emptyBudget() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse(503)
        } run: { origin async throws in
            let session = RetryTests.session(
                .transient(maximumAttempts: 2, backoff: .constant(.zero), budget: 0))
            for _ in 0..<10 { _ = try await session.get(origin.url()) }
            var options = RequestOptions()
            options.retry = .transient(maximumAttempts: 2, backoff: .constant(.seconds(3600)), budget: 0)
            let response = try await session.get(origin.url(), timeout: .seconds(600), options: options)
            #expect(response.statusCode == 503)
        }
    }

    @Test("A refused connection is retried")
    func refused() async throws {
        let closed = try ClosedPort.shared.get()
        let error = await #expect(throws: HTTPError.self) { try await RetryTests.session().get(closed.url) }
        #expect(error?.code == .connectFailed)
        #expect(error?.attempts == 3 && error?.description.hasSuffix(" (3 attempts)") == true)
    }

    /// The limits that can prevent a retry, and the text about them.
    private static let limits: [(RetryPolicy, attempts: Int, text: String?)] = [
        (.transient(maximumAttempts: 2, backoff: .constant(.zero)), 2, "the limit of 2 attempts is reached"),
        (
            .transient(backoff: .constant(.seconds(3600))), 1,
            "the total timeout expires before the next attempt, in 3600 s"
        ),
        (.transient(maximumAttempts: 20, backoff: .constant(.zero), budget: 0), 11, "the retry budget is used up"),
        (.never, 1, nil),
    ]

    @Test("An error that is not retried because of a limit names the limit", arguments: limits.indices)
    func limit(_ index: Int) async throws {
        let (policy, attempts, text) = RetryTests.limits[index]
        let closed = try ClosedPort.shared.get()
        let session = RetryTests.session(policy) { $0.timeouts.total = .seconds(600) }
        let error = try #require(await #expect(throws: HTTPError.self) { try await session.get(closed.url) })
        #expect(error.code == .connectFailed && error.attempts == attempts, "\(error)")
        if let text {
            #expect(error.message.hasSuffix("; not retried: \(text)"), "\(error)")
        } else {
            #expect(!error.message.contains("not retried"), "\(error)")
        }
    }

    @Test("An error that a retry cannot fix names no limit, and that of a cut body does")
    func limitOfOthers() async throws {
        let invalid = ServerScript.respond("garbage\r\n\r\n")
        try await TestOrigin.withOrigin(scripts: invalid, Self.cut, Self.cut) { origin async throws in
            let session = RetryTests.session(.transient(maximumAttempts: 2, backoff: .constant(.zero)))
            let wrong = await #expect(throws: HTTPError.self) { try await session.get(origin.url()) }
            #expect(wrong?.code == .protocolViolation && wrong?.message.contains("not retried") == false)
            let error = await #expect(throws: HTTPError.self) { try await session.get(origin.url()) }
            #expect(error?.code == .truncated && error?.attempts == 2)
            #expect(error?.message.hasSuffix("; not retried: the limit of 2 attempts is reached") == true)
        }
    }
}
