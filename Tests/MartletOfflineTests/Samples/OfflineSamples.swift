import Martlet

/// The samples of the article about offline requests and of the README; compiled, never run.
enum OfflineSamples {
    struct Note: Encodable {
        var id: String
    }

    actor Tokens {
        func authorize(_ request: HTTPRequest) throws -> HTTPRequest { request }
    }

    static func kept(_ session: HTTPSession, _ tokens: Tokens, _ request: HTTPRequest, _ note: Note)
        async throws
    {
        let queue = try await OfflineQueue(
            session: session, directory: "/var/lib/app/outbox"
        ) { request in
            try await tokens.authorize(request)
        }
        let ticket = try await queue.submit(
            request, body: .json(note), lane: "notes", tag: note.id)
        print("kept as", ticket.id)
        for await event in queue.events {
            switch event {
            case .delivered(let ticket, let response):
                print(ticket.tag ?? "", response.statusCode)
            case .dead(let ticket, let letter): print(ticket, letter.message)
            default: break
            }
        }
    }

    static func queued(_ session: HTTPSession, _ request: HTTPRequest, _ note: Note) async throws {
        switch try await session.send(request, body: .json(note), whenOffline: .enqueue) {
        case .response(let response): print(response.statusCode)
        case .queued(let ticket): print("will be sent later:", ticket)
        }
    }

    static func sent(_ session: HTTPSession, _ request: HTTPRequest, _ note: Note) async throws {
        let outbox = try await OfflineQueue(
            session: session, directory: "/var/lib/app/outbox")
        switch try await outbox.send(request, body: .json(note)) {
        case .response(let response): print(response.statusCode)
        case .queued(let ticket): print("will be sent later:", ticket)
        }
    }

    static func ofHost(_ api: HTTPHost, _ note: Note) async throws -> OfflineOutcome {
        let queue = try await OfflineQueue(
            session: api.session, directory: "/var/lib/app/outbox",
            credentials: OfflineCredentials(api))
        let outcome = try await api.send("notes", body: .json(note), whenOffline: .enqueue)
        try await queue.submit("notes", of: api, body: .json(note))
        return outcome
    }
}
