import Martlet
@testable import MartletCore
@testable import MartletHosts
import MartletPool
import MartletTesting
import MartletTestSupport
import MartletTransport
import Testing

@Suite("Views of a session and their memory")
struct ViewTests {
    /// A change of a view's settings, and whether the view then uses its session's connections.
    struct Change: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var sharesConnections: Bool
        var apply: @Sendable (inout SessionConfiguration, _ port: Int) -> Void

        static let all = [
            Change(testDescription: "nothing", sharesConnections: true) { _, _ in },
            Change(testDescription: "a clock", sharesConnections: true) { configuration, _ in
                configuration.timeouts.total = TestTimeouts.long
            },
            Change(testDescription: "the resolver, to a struct of the same value", sharesConnections: false) {
                configuration, port in
                configuration.resolver = ListResolver(("127.0.0.1", port))
            },
            Change(testDescription: "the resolver, to the system's", sharesConnections: false) {
                configuration, _ in
                configuration.resolver = SystemResolver()
            },
            Change(testDescription: "a socket option", sharesConnections: false) { configuration, _ in
                configuration.socketOptions.keepAliveInterval = .seconds(61)
            },
        ]
    }

    @Test(
        "A view with a resolver of a struct type shares connections unless connection settings differ",
        arguments: Change.all)
    func sharing(_ change: Change) async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("ok"))) { origin in
            let session = HTTPSession.own { $0.resolver = ListResolver(("127.0.0.1", origin.port)) }
            let url = "http://localhost:\(origin.port)/"
            _ = try await session.get(url)
            let exchange = try await session.with { change.apply(&$0, origin.port) }.get(url)
            #expect(exchange.metrics.isConnectionReused == change.sharesConnections)
        }
    }

    @Test(
        "Sessions with the system resolver compare equal, and a resolver object has its own identity"
    )
    func identity() {
        final class Listed: Resolver {
            func addresses(of host: String, port: Int) async throws(ResolutionError) -> [SocketAddress] { [] }
        }
        let listed = Listed()
        #expect(DialSettings().isEqual(to: DialSettings()))
        let first = DialSettings(resolver: Identified(listed))
        #expect(first.isEqual(to: DialSettings(resolver: Identified(listed))))
        #expect(!first.isEqual(to: DialSettings(resolver: Identified(Listed()))))
        #expect(!first.isEqual(to: DialSettings()))
    }

    @Test("A view's dialer is released with the view while its session continues")
    func viewsAreReleased() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("ok"))) { origin in
            let session = HTTPSession.own()
            weak var dialer: Dialer?
            for seconds in [61, 62] {
                let view = session.with { $0.socketOptions.keepAliveInterval = .seconds(seconds) }
                dialer = view.dialer
                #expect(dialer != nil)
                _ = try await view.get(origin.url())
            }
            #expect(await eventually { dialer == nil })
            #expect(try await session.get(origin.url()).text == "ok")
        }
    }

    @Test("The pool of a released session is freed immediately, even with timers for idle connections")
    func poolIsReleased() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("ok"))) { origin in
            var session: HTTPSession? = HTTPSession.own()
            _ = try await session?.get(origin.url())
            weak var pool: ConnectionPool?
            pool = session?.core.pool
            #expect(pool != nil)
            session = nil
            #expect(await eventually { pool == nil })
        }
    }
}
