import Martlet

/// A client of the notes service.
///
/// Failures that the service describes are thrown as ``APIProblem``, and others as `HTTPError`. An expired access token
/// is refreshed once for all calls that need it, and these calls are repeated.
public struct NotesClient: Sendable {
    private let api: HTTPHost

    /// Creates a client.
    /// - Parameters:
    ///   - baseURL: The URL of the service, such as `https://notes.example.com/v1`.
    ///   - refreshToken: The long-lived secret that access tokens are requested with.
    ///   - session: The session that sends the requests. Tests pass one that is connected to a mock transport.
    public init(_ baseURL: String, refreshToken: String, session: HTTPSession = .shared) throws {
        let service = try session.host(baseURL) {
            $0.headers = ["Accept": "application/json"]
            $0.encoder = .json(keys: .snakeCase, dates: .iso8601)
            $0.decoder = .json(keys: .snakeCase, dates: .iso8601)
            $0.errors = .decoding(APIProblem.self)
            $0.options.timeouts.total = .seconds(30)
        }
        api = service.with {
            $0.authentication = .bearer { try await AccessToken.request(from: service, with: refreshToken) }
        }
    }

    /// Returns the note with an identifier.
    public func note(_ id: Note.ID) async throws -> Note {
        try await api.get("notes/\(id)").decode()
    }

    /// Returns all notes with one of the tags, or all notes.
    public func notes(tagged tags: [String] = [], pageSize: Int = 50) -> PagedItems<Note> {
        PagedItems { [api] cursor in
            try await api.get("notes", query: NoteQuery(tag: tags, limit: pageSize, cursor: cursor)).decode()
        }
    }

    /// Stores a note. A retry after a lost connection does not store a second one.
    public func create(_ draft: NoteDraft) async throws -> Note {
        try await api.post("notes", json: draft, options: .init { $0.idempotencyKey = .random })
            .decode()
    }

    /// Deletes a note.
    public func delete(_ id: Note.ID) async throws {
        _ = try await api.delete("notes/\(id)")
    }

    private struct NoteQuery: Encodable, Sendable {
        var tag: [String]
        var limit: Int
        var cursor: String?
    }
}
