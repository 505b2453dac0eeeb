import Martlet
import MartletTesting
import Testing

@Suite("Offline queue: redirects")
struct QueueRedirectTests {
    /// A server that has moved its notes to another path.
    private static func server(_ status: Int, _ serverLog: ServerLog) -> OfflineScene.StreamedResponse {
        { request in
            if request.path == "/notes" { return .redirect(to: "/notes/", status: status) }
            guard request.method == .post else { return .text("the list") }
            try await serverLog.note(request)
            return .text("taken")
        }
    }

    @Test(
        "A body that 301, 307 and 308 redirect arrives at the new URL", arguments: [301, 307, 308])
    func moved(_ status: Int) async throws {
        for key in [OfflineSubmission.Key.automatic, .none] {
            let serverLog = ServerLog()
            try await OfflineScene.run(answering: QueueRedirectTests.server(status, serverLog)) { scene in
                let queue = try await scene.queue()
                try await queue.submit(
                    try scene.request(), body: .text("once"), as: OfflineSubmission(tag: "note", key: key))
                #expect(try await queue.delivered()["note"]?.text == "taken")
                try await queue.drained
                #expect(serverLog.entries.map(\.body) == ["once"])
                #expect(scene.origin.requests.map(\.method) == [.post, .post])
                await queue.close()
            }
        }
    }

    @Test("A 301 preserves the method and the body also for a host with secret fields")
    func movedForHost() async throws {
        let serverLog = ServerLog()
        try await OfflineScene.run(answering: QueueRedirectTests.server(301, serverLog)) { scene in
            let session = OfflineScene.session
            let queue = try await scene.queue(session: session)
            let api = try session.host(scene.origin.url("/"), headers: ["X-Api-Key": "secret"])
            let outcome = try await api.post("notes", body: .text("once"), whenOffline: .enqueue)
            if case .response(let exchange) = outcome { #expect(exchange.text == "taken") }
            try await queue.drained
            #expect(serverLog.entries.map(\.body) == ["once"])
            await queue.close()
        }
    }

    @Test("With options that turn a 301 into a GET, the response does not count as delivery")
    func changed() async throws {
        let serverLog = ServerLog()
        try await OfflineScene.run(answering: QueueRedirectTests.server(301, serverLog)) { scene in
            let queue = try await scene.queue { $0.request.redirects = .follow() }
            try await queue.submit(try scene.request(), body: .text("once"), tag: "keyed")
            let (ticket, letter) = try await queue.dead()
            #expect(ticket.tag == "keyed" && letter.reason == .refused && letter.statusCode == 200)
            try await queue.submit(
                try scene.request(), body: .text("once"), as: OfflineSubmission(tag: "plain", key: .none))
            let (other, uncertain) = try await queue.uncertain()
            #expect(other.tag == "plain" && uncertain.statusCode == 200)
            #expect(serverLog.entries.isEmpty)
            await queue.close()
        }
    }

    @Test("A 302 to a page of another site, such as a captive portal, does not count as delivery")
    func captured() async throws {
        try await TestOrigin.withOrigin(.plain) { _ in
            .text("sign in")
        } run: { portal in
            let url = portal.url("/")
            try await OfflineScene.run { _ in
                .redirect(to: url)
            } _: { scene in
                let queue = try await scene.queue()
                try await queue.submit(try scene.request(), body: .text("once"), tag: "note")
                let (ticket, letter) = try await queue.dead()
                #expect(ticket.tag == "note" && letter.statusCode == 200)
                await queue.close()
            }
        }
    }

    @Test(
        "A POST that is redirected to another page of its origin is not delivered",
        arguments: [302, 303])
    func signIn(_ status: Int) async throws {
        try await OfflineScene.run { request in
            request.method == .post ? .redirect(to: "/login", status: status) : .text("sign in")
        } _: { scene in
            let queue = try await scene.queue()
            try await queue.submit(try scene.request(), body: .text("once"), tag: "keyed")
            let (ticket, letter) = try await queue.dead()
            #expect(ticket.tag == "keyed" && letter.reason == .refused && letter.statusCode == 200)
            try await queue.submit(
                try scene.request(), body: .text("once"), as: OfflineSubmission(tag: "plain", key: .none))
            let (other, uncertain) = try await queue.uncertain()
            #expect(other.tag == "plain" && uncertain.reason == .noResponse)
            #expect(await queue.restingCount == 2)
            await queue.close()
        }
    }

    @Test(
        "If the caller accepts it, a 302 or 303 leads to the result of a request", arguments: [302, 303])
    func result(_ status: Int) async throws {
        let serverLog = ServerLog()
        try await OfflineScene.run { request in
            guard request.method == .post else { return .text("result") }
            try await serverLog.note(request)
            return .redirect(to: "/result", status: status)
        } _: { scene in
            let queue = try await scene.queue { $0.acceptsRedirectedResults = true }
            try await queue.submit(try scene.request(), body: .text("once"), tag: "note")
            #expect(try await queue.delivered()["note"]?.text == "result")
            #expect(serverLog.entries.map(\.body) == ["once"])
            await queue.close()
        }
    }

    @Test("If the method is kept, a rejection after a redirect applies to the request itself")
    func rejected() async throws {
        try await OfflineScene.run { request in
            request.path == "/notes" ? .redirect(to: "/notes/", status: 301) : .text("", status: 404)
        } _: { scene in
            let queue = try await scene.queue()
            try await queue.submit(
                try scene.request(), body: .text("once"), as: OfflineSubmission(tag: "note", key: .none))
            let (_, letter) = try await queue.dead()
            #expect(letter.statusCode == 404)
            await queue.close()
        }
    }
}
