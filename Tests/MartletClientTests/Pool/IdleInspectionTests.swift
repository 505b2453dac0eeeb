import MartletURL
import Martlet
import MartletTesting
import MartletTestSupport
import MartletTransport
import MartletWire
import Testing

@testable import MartletPool

/// A stream whose end arrived together with the last bytes, so that only an inspection detects it.
private final class EndedStream: ForwardingStream {
    let stream: any ByteStream

    init(_ stream: any ByteStream) {
        self.stream = stream
    }

    func probe() -> IdleState { .unusable }

    func stopObservingIdle() -> Bool {
        _ = stream.stopObservingIdle()
        return false
    }
}

private struct EndedConnector: StreamConnector {
    let connector: any StreamConnector

    func connect(to destination: Destination) async throws(TransportError) -> any ByteStream {
        EndedStream(try await connector.connect(to: destination))
    }
}

@Suite("Inspection of a connection before reuse")
struct IdleInspectionTests {
    /// Repeated exchanges with a server. Failures do not count if the end came after the response, on a machine too
    /// busy to send both together.
    private struct Rounds {
        let server: FinishingServer
        var lateCount = 0

        mutating func run(_ round: Int, _ body: () async throws -> Void) async throws {
            do {
                try await body()
            } catch {
                guard await eventually({ server.endedCount == round }), server.wasLate(round) else {
                    throw error
                }
                lateCount += 1
            }
        }
    }

    /// A request that must not be retried.
    enum Unrepeatable: CaseIterable, Sendable {
        case post
        case putOnce

        var method: HTTPRequest.Method { self == .post ? .post : .put }
        var body: HTTPBody { self == .post ? .text("hello") : .once(Pieces("hello"), length: 5) }
    }

    @Test(
        "After a 307 whose server ends the connection, the POST is sent on another connection")
    func redirected() async throws {
        let server = try FinishingServer()
        defer { server.close() }
        let session = HTTPSession.own()
        var rounds = Rounds(server: server)
        for round in 1...200 {
            try await rounds.run(round) {
                let exchange = try await session.post(server.url("/redirect"), body: .text("hello"))
                #expect(exchange.text == "ok" && exchange.metrics.hops.count == 1, "round \(round)")
            }
        }
        #expect(server.completedCount == 200 - rounds.lateCount)
    }

    @Test(
        "A waiting call gets another connection if the server ends the first with its response",
        arguments: Unrepeatable.allCases)
    func granted(_ request: Unrepeatable) async throws {
        let server = try FinishingServer()
        defer { server.close() }
        let session = HTTPSession.own { $0.pool.connectionsPerHost = 1 }
        var rounds = Rounds(server: server)
        for round in 1...30 {
            let first = Task { try await session.get(server.url("/held")) }
            #expect(await eventually { server.heldCount == round })
            let second = Task {
                let head = HTTPRequest(method: request.method, url: try HTTPURL(server.url("/end")))
                return try await session.send(head, body: request.body)
            }
            #expect(await eventually { session.poolStatus.waiting == 1 })
            server.release()
            #expect(try await first.value.text == "ok")
            try await rounds.run(round) {
                let exchange = try await second.value
                #expect(exchange.text == "ok", "round \(round)")
            }
        }
        #expect(server.completedCount == 30 - rounds.lateCount)
    }

    @Test(
        "A lease that something still holds is not renewed, so that it cannot return the connection of a later exchange"
    )
    func renewedLease() async throws {
        let loop = EventLoop.sharedOrStalled
        let pool = ConnectionPool(limits: PoolLimits(), wireLimits: WireLimits(), loop: loop)
        defer { pool.shutDown() }
        var settings = DialSettings()
        settings.connector = Identified(MockTransport(scripts: ServerScript(.awaitClose)))
        let dialer = Dialer(settings: settings, loop: loop)
        let destination = Destination(isSecure: false, host: "mock.test", port: 80)
        func acquire() async throws -> Lease {
            switch try pool.acquire(destination, by: dialer, ConnectionPool.Request()) {
            case .lease(let lease): return lease
            case .ticket(let ticket): return try await ticket.lease()
            }
        }
        let held = try await acquire()
        held.returnUnused()
        let second = try await acquire()
        #expect(second !== held && second.connection === held.connection)
        held.release(isReusable: false)
        held.returnUnused()
        #expect(pool.snapshot.leased == 1 && pool.snapshot.idle == 0)
        second.returnUnused()
        // These leases are held by nothing after their return.
        for _ in 1...3 {
            let lease = try await acquire()
            #expect(lease.connection === held.connection && lease.isReused)
            #expect(pool.snapshot.leased == 1 && pool.snapshot.idle == 0)
            lease.returnUnused()
            #expect(pool.snapshot.leased == 0 && pool.snapshot.idle == 1)
        }
        // Weak, so that the test does not hold the lease.
        weak var former: Lease?
        func use() async throws {
            let lease = try await acquire()
            former = lease
            lease.returnUnused()
        }
        try await use()
        let renewed = try await acquire()
        #expect(renewed === former && renewed.isReused)
        renewed.returnUnused()
    }

    @Test(
        "Directly after an exchange the socket is inspected only for requests that must not be retried",
        arguments: [false, true])
    func leftOut(alwaysChecksSocket: Bool) async throws {
        let loop = EventLoop.sharedOrStalled
        let pool = ConnectionPool(limits: PoolLimits(), wireLimits: WireLimits(), loop: loop)
        defer { pool.shutDown() }
        let mock = MockTransport(scripts: ServerScript(.awaitClose), ServerScript(.awaitClose))
        var settings = DialSettings()
        settings.connector = Identified(EndedConnector(connector: mock))
        let dialer = Dialer(settings: settings, loop: loop)
        let destination = Destination(isSecure: false, host: "mock.test", port: 80)
        guard case .ticket(let ticket) = try pool.acquire(destination, by: dialer, ConnectionPool.Request())
        else {
            Issue.record("a connection out of nothing")
            return
        }
        try await ticket.lease().returnUnused()
        // A connection without an exchange behaves as if its last exchange ended at time zero.
        let request = ConnectionPool.Request(
            start: MonotonicTime(nanoseconds: 1), alwaysChecksSocket: alwaysChecksSocket)
        switch try pool.acquire(destination, by: dialer, request) {
        case .lease(let lease):
            #expect(!alwaysChecksSocket && lease.isReused)
        case .ticket(let ticket):
            #expect(alwaysChecksSocket)
            #expect(try await !ticket.lease().isReused)
        }
    }
}
