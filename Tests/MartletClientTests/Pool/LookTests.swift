import MartletURL
import Martlet
import MartletTesting
import MartletTestSupport
import MartletTransport
import MartletWire
import Testing

@testable import MartletConnections

/// A stream whose end has come together with the last bytes, so that nothing but a look shows it.
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

@Suite("The look at a kept connection before it is used")
struct LookTests {
    /// Rounds with a server, of which those do not count that fail because the end came behind its response, on a machine too
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

    /// A request that may not be sent again.
    enum Unrepeatable: CaseIterable, Sendable {
        case post
        case putOnce

        var method: HTTPRequest.Method { self == .post ? .post : .put }
        var body: HTTPBody { self == .post ? .text("hello") : .once(Pieces("hello"), length: 5) }
    }

    @Test(
        "A server that ends the connection together with its 307 gets the POST again on another connection")
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
        "A call that waits for a connection whose server ends it with its response gets another one",
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
        "Right after an exchange only a request that may not be sent again looks at the socket",
        arguments: [false, true])
    func leftOut(mustLook: Bool) async throws {
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
        // A connection without an exchange counts as if its last one had ended at the clock's start.
        let request = ConnectionPool.Request(start: MonotonicTime(nanoseconds: 1), mustLook: mustLook)
        switch try pool.acquire(destination, by: dialer, request) {
        case .lease(let lease):
            #expect(!mustLook && lease.isReused)
        case .ticket(let ticket):
            #expect(mustLook)
            #expect(try await !ticket.lease().isReused)
        }
    }
}
