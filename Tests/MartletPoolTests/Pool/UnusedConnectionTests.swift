import MartletTransport
import MartletWire
import Synchronization
import Testing

@testable import MartletPool

@Suite("Connections that a request returns without using them")
struct UnusedConnectionTests {
    /// Opens streams in memory, and stores their other ends.
    private final class Connector: StreamConnector {
        let servers = Mutex<[MemoryStream]>([])

        func connect(to destination: Destination) async throws(TransportError) -> any ByteStream {
            let (client, server) = MemoryStream.pair(loop: .sharedOrStalled)
            servers.withLock { $0.append(server) }
            return client
        }
    }

    /// A pool of connections to one server.
    private struct Scene {
        let connector = Connector()
        let pool: ConnectionPool
        private let dialer: Dialer
        private let destination = Destination(isSecure: false, host: "memory.test", port: 80)

        init() {
            let loop = EventLoop.sharedOrStalled
            let limits = PoolLimits(idleLifetime: .seconds(1_000_000))
            pool = ConnectionPool(limits: limits, wireLimits: WireLimits(), loop: loop)
            var settings = DialSettings()
            settings.connector = Identified(connector)
            dialer = Dialer(settings: settings, loop: loop)
        }

        /// The time at which an idle connection is closed.
        var deadline: UInt64? { pool.state.withLock { $0.machine.nextDeadline } }

        func acquire(isFresh: Bool = false) async throws -> Lease {
            switch try pool.acquire(destination, by: dialer, ConnectionPool.Request(isFresh: isFresh)) {
            case .lease(let lease): return lease
            case .ticket(let ticket): return try await ticket.lease()
            }
        }

        /// Sends a request on the last connection that was opened. The server responds immediately.
        func request(on lease: Lease) throws {
            let exchange = Exchange(lease: lease, timeouts: ExchangeTimeouts(), loop: .sharedOrStalled)
            try exchange.send(ExchangeRequest(head: Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8), method: "GET"))
            let server = try #require(connector.servers.withLock { $0.last })
            let response = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nKeep-Alive: timeout=10000\r\n\r\n"
            #expect(try server.write(Array(response.utf8), from: 0) == response.utf8.count)
            guard case .head = try exchange.tryReceiveHead() else {
                Issue.record("no head")
                return
            }
            #expect(try exchange.readBodyAtOnce(upTo: 0).isEmpty)
            #expect(exchange.isFinished && pool.snapshot.idle == 1)
        }
    }

    @Test("The server's Keep-Alive timeout continues to run")
    func keepAlive() async throws {
        let scene = Scene()
        defer { scene.pool.shutDown() }
        try scene.request(on: try await scene.acquire())
        let deadline = scene.deadline
        #expect(deadline != nil)
        for _ in 1...2 {
            try await scene.acquire().returnUnused()
            #expect(scene.deadline == deadline)
        }
        #expect(scene.pool.snapshot.opened == 1)
    }

    @Test("Only a request that is sent on an open connection counts as a reuse")
    func reuses() async throws {
        let scene = Scene()
        defer { scene.pool.shutDown() }
        try scene.request(on: try await scene.acquire())
        try await scene.acquire().returnUnused()
        // The idle connection is rejected, because it has carried a request.
        try await scene.acquire(isFresh: true).returnUnused()
        #expect(scene.pool.snapshot.opened == 2)
        #expect(scene.pool.snapshot.reused == 0)
        try scene.request(on: try await scene.acquire())
        #expect(scene.pool.snapshot.reused == 1)
    }

    @Test("A connection whose local address is lost is closed")
    func lostAddress() async throws {
        let scene = Scene()
        defer { scene.pool.shutDown() }
        let lease = try await scene.acquire()
        lease.connection.closeForLostAddress()
        lease.returnUnused()
        #expect(scene.pool.snapshot.idle == 0 && scene.pool.snapshot.leased == 0)
    }
}
