import Martlet
import MartletTesting
import Testing

@Suite("Descriptions of exchanges and errors")
struct PrintingTests {
    @Test("The description of an exchange is one line without the body and the fields")
    func exchanges() async throws {
        let session = HTTPSession.own { $0.connect(to: MockTransport { _ in .text("body-secret") }) }
        let exchange = try await session.get(
            "http://mock.test/path", headers: [.authorization: "Bearer field-secret"])
        var dumped = ""
        dump(exchange, to: &dumped)
        for text in ["\(exchange)", String(reflecting: exchange), dumped] {
            #expect(text.contains("GET http://mock.test/path: 200, 11 bytes"))
            #expect(!text.contains("secret"))
        }
    }

    @Test("The description of an error with a large body is one line")
    func errors() async throws {
        let mock = MockTransport { _ in .pattern(1 << 40) }
        let session = HTTPSession.own { $0.connect(to: mock) }
        let error = try #require(
            await #expect(throws: HTTPError.self) { try await session.get("http://mock.test/") })
        #expect(error.code == .bodyTooLarge)
        var dumped = ""
        dump(error, to: &dumped)
        for text in ["\(error)", String(reflecting: error), dumped] {
            #expect(text.utf8.count < 1000)
        }
    }
}
