import Martlet
import MartletTesting
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletHosts

@Suite("What is stored goes by the URL")
struct CacheHostTests {
    @Test("What is stored is found by the URL, whatever a Host field of the caller's says")
    func host() async throws {
        try await TestOrigin.withOrigin { request in
            CacheScene.answer(request.path)
        } run: { origin async throws in
            try await TestOrigin.withOrigin { _ in
                CacheScene.answer("the other's")
            } run: { other async throws in
                let (session, _) = try CacheScene.session()
                // As if it were the other's page, which it must not become.
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

    @Test("What was sent under another Host is nobody else's", arguments: [true, false])
    func otherHost(isShared: Bool) async throws {
        let signals = SignalBox()
        try await TestOrigin.withOrigin { request in
            try await signals.wait(for: "go")
            return CacheScene.answer(request.fields["Host"] ?? "-")
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
            // The URL's own says nothing new.
            #expect(try await get(origin.address).source == .cache)
            #expect(origin.requests.count == 3)
        }
    }
}
