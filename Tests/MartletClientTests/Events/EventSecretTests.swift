import FoundationEssentials
import Martlet
import MartletTesting
import Synchronization
import Testing

@Suite("Events contain no secrets")
struct EventSecretTests {
    private final class Collecting: ObservingMiddleware {
        let texts = Mutex<[String]>([])

        func observe(_ event: SessionEvent, in context: CallContext) {
            var dumped = ""
            dump(event, to: &dumped)
            texts.withLock { $0 += ["\(event)", "\(event.kind)", dumped] }
        }
    }

    @Test(
        "Printed and encoded events contain no fields, cookies, credentials, queries, fragments or bodies"
    )
    func printed() async throws {
        try await TestOrigin.withOrigin { request in
            switch request.path {
            case "/a":
                OriginResponse(
                    302, headers: ["Location": "/b?s3cret-location", "Set-Cookie": "c=s3cret-cookie"])
            case "/b" where request.headers["Authorization"] == nil:
                OriginResponse(401, headers: ["WWW-Authenticate": "Basic realm=\"x\""])
            case "/b" where request.number < 4: OriginResponse(503, headers: ["X": "s3cret-field"])
            default: .text("s3cret-body")
            }
        } run: { origin async throws in
            let collecting = Collecting()
            let session = HTTPSession.own { configuration in
                configuration.middleware = [collecting]
                configuration.cookies = CookieJar()
                configuration.retry = .transient(backoff: .constant(.zero))
                configuration.authentication.handler = { _ in
                    .basic(user: "s3cret-user", password: "s3cret-password")
                }
            }
            let events = session.events
            let place = origin.url("/a?s3cret-query#s3cret-fragment")
                .replacing("http://", with: "http://s3cret-user:s3cret-password@")
            let exchange = try await session.send(
                try HTTPRequest(
                    method: .put, url: place, headers: [.init("X-Key") ?? .accept: "s3cret-key"]),
                body: .text("s3cret-upload"))
            #expect(exchange.text == "s3cret-body")
            #expect(exchange.metrics.hops.count == 3)
            await session.finishAndInvalidate()
            for await event in events {
                var dumped = ""
                dump(event, to: &dumped)
                let encoded = String(decoding: try JSONEncoder().encode(event), as: UTF8.self)
                collecting.texts.withLock { $0 += ["\(event)", dumped, encoded] }
            }
            let texts = collecting.texts.withLock { $0 }
            #expect(texts.count > 20)
            for text in texts {
                #expect(!text.contains("s3cret"))
                #expect(!text.contains("czNjcmV0"))
            }
        }
    }
}
