import Foundation
import Martlet
import MartletTesting
import NotesClient
import Testing

@Suite("A client of the notes service")
struct NotesClientTests {
    private let service = NotesService(titles: ["Sea", "Harbor", "Lighthouse", "Dune", "Tide"])
    private let transport: MockTransport
    private let client: NotesClient

    init() throws {
        transport = MockTransport(handler: service.handler)
        client = try NotesClient(
            "https://notes.example.com/v1", refreshToken: "secret",
            session: HTTPSession(configuration: .mock(transport)))
    }

    @Test("Names in snake case and dates are decoded")
    func decoding() async throws {
        let note = try await client.note(2)
        #expect(
            note
                == Note(
                    id: 2, title: "Harbor", tagNames: ["sea"],
                    createdAt: Date(timeIntervalSince1970: 1_748_779_200)))
    }

    @Test("Concurrent calls with an expired token refresh it once, and are repeated")
    func singleFlight() async throws {
        _ = try await client.note(1)
        #expect(service.issuedTokenCount == 1)
        service.expireToken()
        let titles = try await withThrowingTaskGroup(of: String.self) { group in
            for id in 1...5 { group.addTask { try await client.note(id).title } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(titles == ["Sea", "Harbor", "Lighthouse", "Dune", "Tide"])
        #expect(service.issuedTokenCount == 2)
    }

    @Test("Each page is requested when the previous one is used up, until all are read")
    func paging() async throws {
        var titles: [String] = []
        for try await note in client.notes(tagged: ["sea", "wind"], pageSize: 2) { titles.append(note.title) }
        #expect(titles == ["Sea", "Harbor", "Lighthouse", "Dune", "Tide"])
        let lists = transport.requests.map(\.target).filter { $0.hasPrefix("/v1/notes?") }
        #expect(
            Set(lists) == [
                "/v1/notes?limit=2&tag=sea&tag=wind", "/v1/notes?cursor=3&limit=2&tag=sea&tag=wind",
                "/v1/notes?cursor=5&limit=2&tag=sea&tag=wind",
            ])
    }

    @Test("A reader that stops early requests no further page")
    func pagingIsLazy() async throws {
        for try await note in client.notes(pageSize: 2) where note.title == "Harbor" { break }
        let lists = transport.requests.filter { $0.target.hasPrefix("/v1/notes?") }
        #expect(lists.allSatisfy { !$0.target.contains("cursor") })
    }

    @Test("A note is created and deleted with an idempotency key")
    func creating() async throws {
        let note = try await client.create(NoteDraft(title: "Gull"))
        #expect(note.id == 6)
        let post = try #require(
            transport.requests.last { $0.method == .post && $0.target == "/v1/notes" })
        #expect(post.headers.contains("Idempotency-Key"))
        try await client.delete(note.id)
        await #expect(throws: APIProblem.self) { try await client.note(note.id) }
    }

    @Test("A problem description of the service is thrown as an error")
    func problems() async throws {
        let problem = await #expect(throws: APIProblem.self) { try await client.create(NoteDraft(title: "")) }
        #expect(problem?.status == 422)
        #expect(problem?.invalidFields?.map(\.name) == ["title"])
    }

    @Test("A failure without a description is an HTTPError with the status")
    func undescribedFailures() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("out of order", status: 503)
        } run: { origin in
            let client = try NotesClient(origin.url("/v1"), refreshToken: "secret")
            let error = await #expect(throws: HTTPError.self) { try await client.note(1) }
            // The token could not be fetched: the error names the call, and the cause has the status.
            #expect(error?.code == .authenticationFailed)
            #expect((error?.underlying as? HTTPError)?.status == 503)
        }
    }
}
