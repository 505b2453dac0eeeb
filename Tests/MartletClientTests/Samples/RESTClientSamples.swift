import FoundationEssentials
import Martlet
import MartletTesting
import Testing

// The samples of the page about building a REST client, compiled and run; a test compares the two texts.

struct Note: Codable, Equatable, Sendable {
    var id: Int
    var title: String
    var createdAt: Date
}

struct NoteDraft: Encodable, Sendable {
    var title: String
}

struct NotePage: Decodable {
    var notes: [Note]
    var nextCursor: String?
}

struct NoteFilter: Encodable {
    var tagNames: [String]
    var pageSize = 50
    var cursor: String?
}

struct NoteProblem: Error, Decodable {
    var title: String
    var status: Int
}

struct NotesClient: Sendable {
    let api: HTTPHost

    init(_ session: HTTPSession, token: String, refreshToken: String) throws {
        let identity = try session.host("https://id.example.com")
        api = try session.host(
            "https://notes.example.com/v1", headers: [.accept: "application/json"]
        ) {
            $0.encoder = .json(keys: .snakeCase, dates: .iso8601)
            $0.decoder = .json(keys: .snakeCase, dates: .iso8601)
            $0.errors = .decoding(NoteProblem.self)
            $0.authentication = .bearer(token) {
                try await identity.post("token", body: .text(refreshToken))
                    .validated().text
            }
            $0.options.timeouts.total = .seconds(30)
        }
    }
}

extension NotesClient {
    func note(_ id: String) async throws -> Note {
        try await api.get(["notes", id]).decode()
    }

    func create(_ draft: NoteDraft) async throws -> Note {
        try await api.post(
            "notes", json: draft, options: .init { $0.idempotencyKey = .random }
        ).decode()
    }

    func delete(_ id: String) async throws {
        try await api.delete(["notes", id])
    }

    func notes(tagged tags: [String]) async throws -> [Note] {
        var notes: [Note] = []
        var filter = NoteFilter(tagNames: tags)
        repeat {
            let page: NotePage = try await api.get("notes", query: filter).decode()
            notes += page.notes
            filter.cursor = page.nextCursor
        } while filter.cursor != nil
        return notes
    }

    func archive() async throws -> [Note] {
        var notes: [Note] = []
        for try await page in api.pages("archive", query: ["page_size": 50]) {
            notes += try page.decode([Note].self)
        }
        return notes
    }

    func attach(_ photo: String, to id: String, as draft: NoteDraft) async throws {
        let form = HTTPBody.multipart {
            $0.part("draft", .json(draft))
            $0.file("photo", at: photo)
        }
        try await api.upload(form, to: ["notes", id, "photos"]) { progress in
            print(progress.fractionCompleted ?? 0)
        }
    }
}

struct NoteComments: HTTPEndpoint {
    typealias Response = [String]
    var noteID: String
    var path: [String] { ["notes", noteID, "comments"] }
}

@Suite("The samples of the page about building a REST client", .timeLimit(.minutes(20)))
struct RESTClientSamples {
    static func identified(_ session: HTTPSession) throws -> HTTPHost {
        let api = try session.with {
            $0.middleware.append(
                ClosureMiddleware { request, context, next in
                    var request = request
                    request.headers["X-Request-ID"] = "\(context.number)"
                    return try await next(request)
                })
        }.host("https://notes.example.com/v1")
        return api
    }

    static func show(_ client: NotesClient) async throws {
        do {
            print(try await client.note("7").title)
        } catch let problem as NoteProblem where problem.status == 404 {
            print("there is no such note:", problem.title)
        } catch let error as HTTPError where error.isTimeout {
            print("the service is slow:", error)
        }
    }

    static func comments(_ client: NotesClient) async throws -> [String] {
        let comments = try await client.api.call(NoteComments(noteID: "7"))
        return comments
    }

    @Test("A note is fetched")
    func fetch() async throws {
        let mock = MockTransport { request in
            #expect(request.headers["Authorization"] == "Bearer t")
            return .json(
                text: #"{"id":7,"title":"Sea","created_at":"2026-07-31T12:00:00Z"}"#)
        }
        let session = HTTPSession(configuration: .mock(mock))
        let client = try NotesClient(session, token: "t", refreshToken: "r")
        #expect(try await client.note("7").title == "Sea")
        #expect(mock.recorder.requests.map(\.target) == ["/v1/notes/7"])
    }

    @Test("The rest of the page's client: tokens, pages, problems, forms and endpoints")
    func whole() async throws {
        let mock = MockTransport { request in
            let body = try await request.collectText()
            if request.target == "/token" { return .text(body == "r" ? "t2" : "no") }
            guard request.headers["Authorization"] == "Bearer t2" else { return OriginResponse(401) }
            let note = #"{"id":7,"title":"Sea","created_at":"2026-07-31T12:00:00Z"}"#
            switch request.target {
            case "/v1/notes?page_size=50&tag_names=sea": return .json(text: #"{"notes":[\#(note)],"next_cursor":"2"}"#)
            case "/v1/notes?cursor=2&page_size=50&tag_names=sea": return .json(text: #"{"notes":[\#(note)]}"#)
            case "/v1/archive?page_size=50":
                return .json(text: "[\(note)]", headers: ["Link": "</v1/archive?page_size=50&page=2>; rel=\"next\""])
            case "/v1/archive?page_size=50&page=2": return .json(text: "[\(note)]")
            case "/v1/notes/7/comments": return .json(text: #"["fine"]"#)
            case "/v1/notes/a%2Fb/photos":
                #expect(body.contains(#"{"title":"Sea"}"#) && body.contains("photo"))
                return OriginResponse(201)
            case "/v1/notes": return .json(text: note)
            case "/v1/notes/1": return OriginResponse(204)
            default:
                return OriginResponse(
                    404, headers: ["Content-Type": "application/problem+json"],
                    body: .text(#"{"title":"gone","status":404}"#))
            }
        }
        let client = try NotesClient(HTTPSession(configuration: .mock(mock)), token: "t1", refreshToken: "r")
        #expect(try await client.notes(tagged: ["sea"]).map(\.id) == [7, 7])
        #expect(try await client.archive().map(\.id) == [7, 7])
        #expect(try await client.create(NoteDraft(title: "Sea")).id == 7)
        try await client.delete("1")
        #expect(try await Self.comments(client) == ["fine"])
        try await client.attach("/etc/hostname", to: "a/b", as: NoteDraft(title: "Sea"))
        try await Self.show(client)
        await #expect(throws: NoteProblem.self) { try await client.note("8") }
        #expect(mock.recorder.requests.count { $0.target == "/token" } == 1)
    }
}
