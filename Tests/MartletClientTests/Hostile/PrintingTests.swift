import Martlet
import MartletTesting
import Testing

@Suite("Exchanges and errors as they are printed")
struct PrintingTests {
    @Test("A line says what an exchange is, and neither its body nor its fields, however it is printed")
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

    @Test("An error that carries a large body is printed in a line")
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
