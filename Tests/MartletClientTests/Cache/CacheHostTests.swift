import Martlet
import MartletTesting
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletHosts

@Suite("Cache keys and the Host field")
struct CacheHostTests {
    @Test("A response is stored by URL, regardless of the caller's Host field")
    func host() async throws {
        try await TestOrigin.withOrigin { request in
            CacheScene.answer(request.path)
        } run: { origin async throws in
            try await TestOrigin.withOrigin { _ in
                CacheScene.answer("the other's")
            } run: { other async throws in
                let (session, _) = try CacheScene.session()
                // The forged Host field must not store this response for the other origin.
                let forged = CacheScene.fields(("Host", "127.0.0.1:\(other.port)"))
                #expect(try await session.get(origin.url("/a"), headers: forged).text == "/a")
                let honest = try await session.get(other.url("/a"))
                #expect(honest.source == .network && honest.text == "the other's")
                let again = try await session.get(other.url("/a"))
                #expect(again.source == .cache && again.text == "the other's")
                #expect(try await session.get(origin.url("/a")).text == "/a")
            }
        }
    }

    @Test(
        "A response to a request with another Host field is served only for the same Host field",
        arguments: [true, false])
    func otherHost(isShared: Bool) async throws {
        let signals = SignalBox()
        try await TestOrigin.withOrigin { request in
            try await signals.wait(for: "go")
            return CacheScene.answer(request.headers["Host"] ?? "-")
        } run: { origin async throws in
            signals.use(origin)
            let (session, _) = try CacheScene.session()
            let url = origin.url()
            func get(_ host: String?) async throws -> HTTPExchange {
                let headers = host.map { CacheScene.fields(("Host", $0)) } ?? HTTPHeaders()
                return try await session.get(url, headers: headers)
            }
            let hosts = ["one.example", "two.example", nil]
            if isShared {
                let tasks = hosts.map { host in Task { try await get(host).text } }
                try await origin.waitForRequests(count: 3)
                signals.raise("go")
                for (task, host) in zip(tasks, hosts) {
                    #expect(try await task.value == host ?? origin.address)
                }
            } else {
                signals.raise("go")
                for host in hosts { #expect(try await get(host).text == host ?? origin.address) }
            }
            for host in hosts {
                let again = try await get(host)
                #expect(again.source == .cache && again.text == host ?? origin.address)
            }
            // A Host field equal to that of the URL makes no difference.
            #expect(try await get(origin.address).source == .cache)
            #expect(origin.requests.count == 3)
        }
    }
}
