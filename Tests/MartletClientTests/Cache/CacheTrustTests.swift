import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletCaching
@testable import MartletCore

@Suite("Cache and unverified servers")
struct CacheTrustTests {
    enum Way: CaseIterable {
        case anyCertificate, anyName, closure, rule
    }

    @Test(
        "A response of an unverified server is not stored, and a view that verifies the server does not get it",
        arguments: Way.allCases)
    func notStored(_ way: Way) async throws {
        try await TestOrigin.withOrigin(.tls(way == .anyName ? .wrongName : .selfSigned)) { _ in
            CacheScene.answer("forged")
        } run: { origin async throws in
            let authorities = TrustPolicy.only(.text(origin.authorityPEM ?? ""))
            let (careful, cache) = try CacheScene.session { $0.tls.trust = authorities }
            let careless = careful.with { configuration in
                switch way {
                case .anyCertificate: configuration.tls.trust = .dangerouslyAcceptingAnyCertificate
                case .anyName: configuration.tls.verifiesHostName = false
                case .closure: configuration.tls.trust = authorities.evaluated { _, _ in .accept }
                case .rule:
                    configuration.tls.hosts["127.0.0.1"] = TLSHostSettings(trust: .dangerouslyAcceptingAnyCertificate)
                }
            }
            for _ in 0..<2 {
                let forged = try await careless.get(origin.url())
                #expect(forged.source == .network && forged.text == "forged")
            }
            #expect(cache.statistics.stores == 0)
            let error = await #expect(throws: HTTPError.self) { try await careful.get(origin.url()) }
            #expect(error?.code == .tlsFailed)
        }
    }

    @Test("A response of a server that a closure accepts without an error is stored")
    func acceptedWithoutError() async throws {
        try await TestOrigin.withOrigin(.tls()) { _ in
            CacheScene.answer("true")
        } run: { origin async throws in
            let (session, _) = try CacheScene.session {
                $0.tls.trust = .only(.text(origin.authorityPEM ?? "")).evaluated { _, _ in .accept }
            }
            #expect(try await session.get(origin.url()).source == .network)
            #expect(try await session.get(origin.url()).source == .cache)
        }
    }

    @Test("Neither a 304 nor a 404 of an unverified server changes what is stored")
    func notChanged() async throws {
        try await TestOrigin.withOrigin(.tls()) { request in
            if request.headers["X-Gone"] != nil { return OriginResponse(404, headers: ["Cache-Control": "no-store"]) }
            guard request.headers["If-None-Match"] != nil else {
                return CacheScene.answer("true", "max-age=600", ["ETag": "\"1\""])
            }
            return OriginResponse(304, headers: ["ETag": "\"1\"", "Cache-Control": "max-age=600", "X-Forged": "1"])
        } run: { origin async throws in
            let (session, _) = try CacheScene.session { $0.tls.trust = .only(.text(origin.authorityPEM ?? "")) }
            let careless = session.with { $0.tls.trust = .dangerouslyAcceptingAnyCertificate }
            let url = origin.url()
            #expect(try await session.get(url).text == "true")
            let validated = try await careless.get(url, options: CacheScene.mode(.revalidate))
            #expect(validated.source == .validatedCache && validated.field("X-Forged") == "1")
            let missing = try await careless.get(
                url, headers: CacheScene.fields(("X-Gone", "1")), options: CacheScene.mode(.reload))
            #expect(missing.statusCode == 404)
            let stored = try await session.get(url)
            #expect(stored.source == .cache && stored.text == "true" && stored.field("X-Forged") == nil)
        }
    }
}
