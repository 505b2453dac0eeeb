import MartletTesting
import Synchronization

/// A notes service in memory that tests control.
final class NotesService: Sendable {
    private struct State {
        var titles: [Int: String] = [:]
        var issuedTokenCount = 0
        var validToken: String?
    }

    private let state = Mutex(State())

    /// The number of access tokens that were issued so far.
    var issuedTokenCount: Int { state.withLock { $0.issuedTokenCount } }

    /// Creates a service with notes, whose identifiers are 1, 2 and so on.
    init(titles: [String] = []) {
        state.withLock { state in
            for (index, title) in titles.enumerated() { state.titles[index + 1] = title }
        }
    }

    /// Makes the service reject the current token.
    func expireToken() { state.withLock { $0.validToken = nil } }

    var handler: OriginHandler {
        .router { router in
            router.post("/v1/token") { [self] _ in issueToken() }
            router.get("/v1/notes/:id") { [self] in authorized($0) { note($0.number(of: "id") ?? 0) } }
            router.delete("/v1/notes/:id") { [self] in authorized($0, delete) }
            router.get("/v1/notes") { [self] in authorized($0, list) }
            router.post("/v1/notes") { [self] in try await create($0) }
        }
    }

    private func issueToken() -> OriginResponse {
        let token = state.withLock { state in
            state.issuedTokenCount += 1
            state.validToken = "token-\(state.issuedTokenCount)"
            return state.validToken ?? ""
        }
        return .json(text: #"{"access_token": "\#(token)"}"#)
    }

    private func authorized(
        _ request: OriginRequest, _ respond: (OriginRequest) -> OriginResponse
    ) -> OriginResponse {
        let validToken = state.withLock { $0.validToken }
        guard let validToken, request.headers["Authorization"] == "Bearer \(validToken)" else {
            return OriginResponse(401, headers: ["WWW-Authenticate": "Bearer"])
        }
        return respond(request)
    }

    private func note(_ id: Int) -> OriginResponse {
        guard let title = state.withLock({ $0.titles[id] }) else {
            return Self.problem(404, #"{"title": "No such note", "status": 404}"#)
        }
        return .json(text: Self.json(id, title))
    }

    private func delete(_ request: OriginRequest) -> OriginResponse {
        state.withLock { $0.titles[request.number(of: "id") ?? 0] = nil }
        return OriginResponse(204)
    }

    /// Returns a page of notes. Its cursor is the identifier of the first note of the page.
    private func list(_ request: OriginRequest) -> OriginResponse {
        let limit = Int(request.query["limit"] ?? "") ?? 50
        let first = Int(request.query["cursor"] ?? "") ?? 1
        let notes = state.withLock { state in
            state.titles.filter { $0.key >= first }.sorted { $0.key < $1.key }
        }
        let items = notes.prefix(limit).map { Self.json($0.key, $0.value) }.joined(separator: ",")
        let next = notes.dropFirst(limit).first.map { #""\#($0.key)""# } ?? "null"
        return .json(text: #"{"items": [\#(items)], "next_cursor": \#(next)}"#)
    }

    private func create(_ request: OriginRequest) async throws -> OriginResponse {
        struct Draft: Decodable { var title: String, tag_names: [String] }
        let draft: Draft = try await request.decode()
        return authorized(request) { _ in
            guard !draft.title.isEmpty else {
                return Self.problem(
                    422,
                    """
                    {"title": "Invalid note", "status": 422, "detail": "A note needs a title",
                     "invalid_fields": [{"name": "title", "reason": "empty"}]}
                    """)
            }
            let id = state.withLock { state in
                let id = (state.titles.keys.max() ?? 0) + 1
                state.titles[id] = draft.title
                return id
            }
            return .json(text: Self.json(id, draft.title), status: 201)
        }
    }

    private static func json(_ id: Int, _ title: String) -> String {
        #"{"id": \#(id), "title": "\#(title)", "tag_names": ["sea"], "created_at": "2025-06-01T12:00:00Z"}"#
    }

    private static func problem(_ status: Int, _ text: String) -> OriginResponse {
        .json(text: text, status: status, contentType: "application/problem+json")
    }
}
