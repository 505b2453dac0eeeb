import MartletConditions
import MartletCredentials
import MartletContent
import Foundation
import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletDownloads

/// The credentials that are sent to a redirect target, which later requests contact directly.
@Suite("Credentials of a download whose file is on another origin")
struct CredentialOriginTests {
    /// A way to configure credentials.
    enum Way: CaseIterable, Sendable {
        case basic, any, digest, bearer, tokens, userInfo, ofTheSession, defaultField, declaredSecret

        /// Whether the first origin receives the credentials preemptively.
        var isUnasked: Bool { self != .any && self != .digest }
    }

    @Test("The user info of the URL is sent with each part after a redirect within the origin")
    func sameOrigin() async throws {
        let conduct = RangeBehavior(
            Samples.one,
            acts: [
                .cut(request: 2, after: Samples.cut),
                RangeResponseOverride(on: { $0.target == "/latest" }) {
                    $0.replacement = .redirect(to: "/v1/file.bin")
                },
                RangeResponseOverride(on: { $0.fields["Authorization"] == nil }) {
                    $0.replacement = OriginResponse(401, headers: ["WWW-Authenticate": "Basic realm=\"r\""])
                },
            ])
        try await RangeScene.with(conduct) { scene in
            let url = scene.origin.url("/latest").replacing("http://", with: "http://me:secret@")
            let run = try await scene.run(from: url)
            #expect(run.requests.map(\.target) == ["/latest", "/v1/file.bin", "/v1/file.bin"], "\(run.log)")
            #expect(run.requests.allSatisfy { $0.fields["Authorization"] != nil }, "\(run.log)")
            #expect(run.requests.last?.start == Samples.cut)
            #expect(run.value?.url.absoluteString == scene.origin.url("/v1/file.bin"))
            try await scene.expectOrder(after: run, versions: [Samples.one])
        }
    }

    private struct Tokens: TokenProvider {
        func token() async throws -> String { "secret" }
        func refresh(after token: String) async throws -> String { "secret" }
    }

    @Test(
        "Only the origin of the credentials receives them, even if the redirect target is requested directly",
        arguments: Way.allCases, [1, 4])
    func kept(_ way: Way, _ segments: Int) async throws {
        let asking = "Basic realm=\"r\", Digest realm=\"r\", nonce=\"n\", qop=\"auth\", Bearer"
        let conduct = RangeBehavior(
            Samples.one,
            acts: [
                .cut(request: 1, after: Samples.cut),
                // The server challenges requests without credentials.
                .answer(
                    from: 2, through: 2,
                    OriginResponse(401, headers: ["WWW-Authenticate": asking], body: .text("who?"))),
            ])
        try await RangeScene.with(conduct) { scene in
            try await TestOrigin.withOrigin { request in
                guard way.isUnasked || request.headers["Authorization"] != nil else {
                    return OriginResponse(401, headers: ["WWW-Authenticate": asking])
                }
                return .redirect(to: "http://localhost:\(scene.origin.port)/elsewhere")
            } run: { front in
                var options = RangeScene.options { $0.segments = segments }
                var session = scene.session
                var url = front.url("/file")
                switch way {
                case .basic:
                    options.request.authentication = .init(
                        credentials: .basic(user: "me", password: "secret"))
                case .any:
                    options.request.authentication = .init(credentials: .any(user: "me", password: "secret"))
                case .digest:
                    options.request.authentication = .init(
                        credentials: .digest(user: "me", password: "secret"))
                case .bearer: options.request.authentication = .init(credentials: .bearer("secret"))
                case .tokens: options.request.authentication = .init(tokens: SingleFlightTokens(Tokens()))
                case .userInfo: url = url.replacing("http://", with: "http://me:secret@")
                case .ofTheSession:
                    session = session.with {
                        $0.authentication.credentials = .basic(user: "me", password: "secret")
                    }
                case .defaultField: session = session.with { $0.headers[.authorization] = "Bearer secret" }
                case .declaredSecret:
                    let name = try #require(HTTPField.Name("X-Api-Key"))
                    options.headers[name] = "secret"
                    session = session.with { $0.redirects.secretFields = [name] }
                }
                _ = try? await session.download(url, to: .file(scene.path), options: options)
                #expect(scene.ranges.requests.count >= 2)
                for request in scene.ranges.requests {
                    #expect(request.fields["Authorization"] == nil, "\(way)")
                    #expect(request.fields["X-Api-Key"] == nil)
                }
                #expect(
                    front.requests.contains {
                        $0.headers.contains("Authorization") || $0.headers.contains("X-Api-Key")
                    })
            }
        }
    }
}
