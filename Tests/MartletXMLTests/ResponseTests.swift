import MartletCore
import MartletTesting
import MartletTestSupport
import MartletXML
import Testing

@Suite("XML responses")
struct ResponseTests {
    private static func origin(
        _ bytes: [UInt8], type: String = "application/xml", status: Int = 200,
        _ run: (HTTPSession, String) async throws -> Void
    ) async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse(status, headers: ["Content-Type": type], body: .bytes(bytes))
        } run: { origin in
            try await run(HTTPSession(configuration: .ephemeral.patient(total: .seconds(600))), origin.url())
        }
    }

    private static func decoded<Decoder: ResponseDecoder>(
        _ exchange: HTTPExchange, using decoder: Decoder
    ) throws -> Decoder.Output {
        try decoder.decode(exchange)
    }

    @Test("A response is parsed as XML with the charset of its Content-Type")
    func tree() async throws {
        let bytes = Array("<a>".utf8) + [0xE9] + Array("</a>".utf8)
        try await Self.origin(bytes, type: "text/xml; charset=ISO-8859-1") { session, url in
            let exchange = try await session.get(url)
            #expect(try exchange.xml().root.text == "\u{E9}")
            #expect(try Self.decoded(exchange, using: .xml).root.text == "\u{E9}")
        }
    }

    @Test("XML events are delivered while the body arrives, in constant memory")
    func events() async throws {
        let items = (0..<5000).map { "<item id='\($0)'>text</item>" }.joined()
        try await Self.origin(Array("<list>\(items)</list>".utf8)) { session, url in
            let ids = try await session.stream(try HTTPRequest(method: .get, url: url)) { response, body in
                var ids: [String] = []
                for try await event in body.xmlEvents(of: response) {
                    if case .start(let start) = event, let id = start["id"] { ids.append(id) }
                }
                return ids
            }
            #expect(ids == (0..<5000).map(String.init))
        }
    }

    @Test("A truncated body is a document error that follows all complete events")
    func truncated() async throws {
        try await Self.origin(Array("<a><b/>".utf8)) { session, url in
            await #expect(throws: XMLError.self) {
                try await session.stream(try HTTPRequest(method: .get, url: url)) { _, body in
                    var count = 0
                    do {
                        for try await _ in body.xmlEvents { count += 1 }
                    } catch {
                        #expect(count == 3)
                        throw error
                    }
                }
            }
        }
    }

    @Test("A status outside 2xx throws the session's error, and its document can still be decoded")
    func status() async throws {
        try await Self.origin(Array("<error/>".utf8), status: 500) { session, url in
            let exchange = try await session.get(url)
            #expect(throws: HTTPError.self) { try exchange.xml() }
            #expect(try XMLResponseDecoder().decode(exchange).root.name.local == "error")
        }
    }

    @Test("The decoder accepts the XML media types")
    func types() {
        let types = XMLResponseDecoder().acceptableContentTypes
        #expect(types.contains("application/xml"))
        #expect(types.contains("text/xml"))
        #expect(types.contains("application/*+xml"))
    }
}
