import Martlet
import MartletCookies
import MartletCore
import MartletHosts
import MartletTesting
import Synchronization
import Testing

@Suite("Offline queue: credentials and secrets")
struct CredentialTests {
    private static let secretName = HTTPField.Name("X-Api-Key") ?? .expect

    /// A counter of calls, safe across tasks.
    private final class Count: Sendable {
        private let number = Mutex(0)
        var value: Int { number.withLock { $0 } }
        @discardableResult func up() -> Int {
            number.withLock {
                $0 += 1
                return $0
            }
        }
    }

    @Test("No file contains a secret, be it from a field, the user info of the URL, or a response")
    func nothingIsStored() async throws {
        try await OfflineScene.run { _ in
            var answer = OriginResponse.text("no", status: 403)
            answer.headers = ["Set-Cookie": "session=s3cret-e", "X-Api-Key": "s3cret-f"]
            return answer
        } _: { scene in
            let queue = try await scene.queue {
                $0.secretFields = [CredentialTests.secretName]
                $0.backoff = OfflineScene.never
            }
            let url = try HTTPURL(scene.origin.url("/x").replacing("http://", with: "http://user:s3cret-a@"))
            var request = HTTPRequest(method: .post, url: url)
            request.headerFields[.authorization] = "Bearer s3cret-b"
            request.headerFields[.cookie] = "id=s3cret-c"
            request.headerFields[.proxyAuthorization] = "Basic s3cret-d"
            request.headerFields[CredentialTests.secretName] = "s3cret-g"
            for body in [HTTPBody.text("small"), .bytes(Array(repeating: 65, count: 100_000))] {
                try await queue.submit(request, body: body)
            }
            _ = try await queue.dead()
            try await queue.drained
            let entries = await queue.entries
            #expect(entries.count == 2)
            #expect(
                entries.first?.secretFields == [
                    "Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key",
                ])
            // Compared as bytes: as characters, a mark after the text may combine with its last letter.
            let bytes = try scene.directory.allBytes()
            #expect(bytes.firstRange(of: Array("small".utf8)) != nil)
            #expect(bytes.firstRange(of: Array("s3cret".utf8)) == nil)
            for entry in entries { #expect(!"\(entry)".contains("s3cret")) }
            await queue.close()
        }
    }

    @Test("Without a closure the submitting process sends the secret fields, and a later one cannot")
    func sameProcess() async throws {
        try await OfflineScene.run { request in
            .text("", status: request.headers["Authorization"] == "Bearer abc" ? 200 : 401)
        } _: { scene in
            var request = try scene.request()
            request.headerFields[.authorization] = "Bearer abc"
            let first = try await scene.queue()
            try await first.submit(request)
            try await first.drained
            await first.close()
            let keeping = try await scene.queue { $0.sendsRequests = false }
            try await keeping.submit(request)
            await keeping.close()
            let later = try await scene.queue { $0.backoff = OfflineScene.never }
            _ = try await later.postponed(.unauthorized)
            #expect(await later.pendingCount == 1)
            await later.close()
        }
    }

    @Test("The closure adds the secrets that are not stored, and cannot change the key")
    func closureAdds() async throws {
        let serverLog = ServerLog()
        try await OfflineScene.run { request in
            try await serverLog.note(request)
            return .text("", status: request.headers["Authorization"] == "Bearer new" ? 200 : 401)
        } _: { scene in
            let queue = try await scene.queue(
                credentials: OfflineCredentials { request in
                    var request = request
                    request.headerFields[.authorization] = "Bearer new"
                    request.headerFields[.idempotencyKey] = "mine"
                    return request
                })
            var request = try scene.request()
            request.headerFields[.authorization] = "Bearer old"
            let ticket = try await queue.submit(request)
            try await queue.drained
            #expect(serverLog.entries.map(\.key) == [ticket.idempotencyKey])
            await queue.close()
        }
    }

    @Test("The submitting process sends the user of a URL in each attempt, and stores it nowhere")
    func userOfURL() async throws {
        let count = Count()
        try await OfflineScene.run { _ in
            .text("", status: count.up() == 1 ? 503 : 200)
        } _: { scene in
            let url = try HTTPURL(scene.origin.url("/notes").replacing("http://", with: "http://me:s3cret@"))
            let session = OfflineScene.session
            let queue = try await scene.queue(session: session)
            let outcome = try await session.send(url.absoluteString, body: .text("x"), whenOffline: .enqueue)
            guard case .queued = outcome else { return #expect(Bool(false), "not queued") }
            _ = try await queue.send(url, body: .text("x"))
            try await queue.submit(url, body: .text("x"))
            try await queue.drained
            let sent = scene.origin.requests.map { $0.headers["Authorization"] }
            #expect(sent.count == 4 && Set(sent) == ["Basic bWU6czNjcmV0"])
            await queue.close()
            let keeping = try await scene.queue { $0.sendsRequests = false }
            try await keeping.submit(url, body: .text("small"))
            let bytes = try scene.directory.allBytes()
            #expect(bytes.firstRange(of: Array("small".utf8)) != nil)
            #expect(bytes.firstRange(of: Array("s3cret".utf8)) == nil)
            await keeping.close()
        }
    }

    @Test("Fields that a closure adds or changes do not follow a redirect to another origin")
    func redirectedAway() async throws {
        try await TestOrigin.withOrigin(.plain) { _ in
            .text("taken")
        } run: { other in
            let target = other.url("/notes")
            try await OfflineScene.run { _ in
                .redirect(to: target, status: 307)
            } _: { scene in
                let session = OfflineScene.session
                let headers: HTTPHeaders = ["X-Api-Key": "added", "Accept": "text/plain"]
                let ofHost = OfflineCredentials(try session.host(scene.origin.url("/"), headers: headers))
                let queue = try await scene.queue(
                    session: session,
                    credentials: OfflineCredentials { request in
                        var request = try await ofHost.authorize(request)
                        request.headerFields[.from] = "changed"
                        return request
                    })
                let ticket = try await queue.submit(
                    scene.origin.url("/notes"), body: .text("x"), headers: ["From": "given", "X-Plain": "given"])
                try await queue.drained
                let first = try #require(scene.origin.requests.first?.headers)
                #expect(first["X-Api-Key"] == "added" && first["From"] == "changed")
                let second = try #require(other.requests.first?.headers)
                #expect(second["X-Api-Key"] == nil && second["From"] == nil)
                #expect(second["Accept"] == "text/plain" && second["X-Plain"] == "given")
                #expect(second["Idempotency-Key"] == ticket.idempotencyKey)
                await queue.close()
            }
        }
    }

    @Test("A 401 requests new credentials once, however many lanes were rejected with the old ones")
    func oneRefresh() async throws {
        let refreshes = Count()
        let token = Mutex("old")
        let serverLog = ServerLog()
        try await OfflineScene.run { request in
            let isNew = request.headers["Authorization"] == "Bearer new"
            try await serverLog.note(request, takes: isNew)
            return .text("", status: isNew ? 200 : 401)
        } _: { scene in
            let credentials = OfflineCredentials(
                refresh: {
                    refreshes.up()
                    // Other requests may receive the same 401 at this point.
                    for _ in 0..<1000 { await Task.yield() }
                    token.withLock { $0 = "new" }
                },
                authorize: { request in
                    var request = request
                    request.headerFields[.authorization] = "Bearer \(token.withLock { $0 })"
                    return request
                })
            let queue = try await scene.queue(credentials: credentials)
            for number in 0..<20 {
                try await queue.submit(
                    try scene.request(), body: .text("\(number)"), lane: "\(number % 4)")
            }
            try await queue.drained
            #expect(refreshes.value == 1)
            #expect(serverLog.effects.count == 20)
            await queue.close()
        }
    }

    @Test("A second 401 makes the lane wait without losses until there are credentials")
    func stillRefused() async throws {
        let asked = Count()
        let isRight = Mutex(false)
        try await OfflineScene.run { request in
            .text("", status: request.headers["Authorization"] == "Bearer right" ? 200 : 401)
        } _: { scene in
            let queue = try await scene.queue(
                credentials: OfflineCredentials { request in
                    asked.up()
                    var request = request
                    request.headerFields[.authorization] =
                        isRight.withLock { $0 } ? "Bearer right" : "Bearer wrong"
                    return request
                }
            ) { $0.backoff = OfflineScene.never }
            try await queue.submit(try scene.request(), tag: "first")
            try await queue.submit(try scene.request(), tag: "second")
            let ticket = try await queue.postponed(.unauthorized)
            #expect(ticket.tag == "first")
            #expect(asked.value == 2)
            #expect(scene.origin.requests.count == 2)
            await queue.networkBecameAvailable()
            #expect(await queue.pendingCount == 2)
            isRight.withLock { $0 = true }
            await queue.credentialsChanged()
            try await queue.drained
            #expect(scene.origin.requests.count == 4)
            await queue.close()
        }
    }

    @Test("A closure that throws sends nothing, and the request waits")
    func closureThrows() async throws {
        struct Locked: Error {}
        let isLocked = Mutex(true)
        try await OfflineScene.run { scene in
            let queue = try await scene.queue(
                credentials: OfflineCredentials { request in
                    if isLocked.withLock({ $0 }) { throw Locked() }
                    return request
                }
            ) { $0.backoff = OfflineScene.never }
            try await queue.submit(try scene.request())
            _ = try await queue.postponed(.credentialsFailed)
            #expect(scene.origin.requests.isEmpty)
            isLocked.withLock { $0 = false }
            await queue.credentialsChanged()
            try await queue.drained
            await queue.close()
        }
    }
}
