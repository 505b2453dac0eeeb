import Martlet
import MartletTesting
import Testing

/// The samples of the page about testing, which run.
@Suite("The samples of the page about testing")
struct TestingSamples {
    struct User: Decodable, Equatable {
        var name: String
    }

    struct UserClient {
        let api: HTTPHost

        init(_ session: HTTPSession) throws { api = try session.host("https://api.example.com/v2") }

        func user(_ id: Int) async throws -> User { try await api.get("users/\(id)").validated().decode() }
    }

    private static func appConfiguration() -> SessionConfiguration { .ephemeral }

    @Test("A mock transport responds to a client with the configuration of the program")
    func mock() async throws {
        let mock = MockTransport(
            handler: .router {
                $0.get("/v2/users/1", .fixed(.json(text: #"{"name":"Anna"}"#)))
                $0.get("/v2/users/2", .status(503))
            })
        var configuration = Self.appConfiguration()
        configuration.connect(to: mock)
        let client = try UserClient(HTTPSession(configuration: configuration))

        #expect(try await client.user(1) == User(name: "Anna"))
        await #expect(throws: HTTPError.self) { try await client.user(2) }
        #expect(mock.recorder.requests.map(\.target) == ["/v2/users/1", "/v2/users/2"])
        await mock.stop()
    }

    @Test("A mock transport is the shortest configuration")
    func shortest() async throws {
        let mock = MockTransport { request in .text("Hello, \(request.path)") }
        let session = HTTPSession(configuration: .mock(mock))
        #expect(try await session.get("https://example.org/martlet").text == "Hello, /martlet")
    }

    @Test("A fault and a script are responses too")
    func faults() async throws {
        let broken = MockTransport { _ in throw OriginFault(.reset) }
        let session = HTTPSession(configuration: .mock(broken))
        let error = await #expect(throws: HTTPError.self) { try await session.get("http://example.org/") }
        #expect(error?.code == .connectionLost && error?.wasSent == true)

        let short = MockTransport(
            scripts: .respond("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"))
        let truncated = await #expect(throws: HTTPError.self) {
            try await HTTPSession(configuration: .mock(short)).get("http://example.org/")
        }
        #expect(truncated?.code == .truncated)
    }
}
