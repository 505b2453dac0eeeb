import MartletCore
import MartletXML

/// The compiled samples of the documentation pages on XML. A test compares the two texts.
enum XMLSamples {
    static func tree(_ session: HTTPSession) async throws -> [String] {
        let feed = try await session.get("https://example.org/feed.xml").decode(using: .xml)
        let titles = feed.root.all("channel/item/title").map(\.text)
        return titles
    }

    static func parsed(_ session: HTTPSession, _ request: HTTPRequest) async throws {
        try await session.stream(request) { response, body in
            for try await event in body.xmlEvents {
                if case .start(let element) = event { print(element.name) }
            }
        }
    }

    static func read(_ exchange: HTTPExchange) throws -> XMLTree {
        let xml = try exchange.xml()
        return xml
    }

    static func sitemap(_ session: HTTPSession) async throws {
        try await session.stream(
            "https://example.org/sitemap.xml", validate: .success
        ) { _, body in
            var text = ""
            for try await event in body.xmlEvents {
                switch event {
                case .start: text = ""
                case .text(let piece): text += piece
                case .end(let name) where name.local == "loc": print(text)
                default: break
                }
            }
        }
    }
}
