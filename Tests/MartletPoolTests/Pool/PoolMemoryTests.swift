import MartletTransport
import MartletWire
import Testing

@testable import MartletPool

@Suite("Memory after a burst of requests")
struct PoolMemoryTests {
    /// Opens streams in memory, whose other ends are closed.
    private struct Connector: StreamConnector {
        func connect(to destination: Destination) async throws(TransportError) -> any ByteStream {
            MemoryStream.pair(loop: .sharedOrStalled).client
        }
    }

    @Test("The heap is trimmed when most requests of a burst have released their connections", arguments: [255, 256])
    func burst(count: Int) async throws {
        let loop = EventLoop.sharedOrStalled
        let trimmer = MemoryTrimmer(loop: loop) {}
        let limits = PoolLimits(
            connectionsPerHost: count, totalConnections: count, idleConnectionsPerHost: count, idleConnections: count)
        let pool = ConnectionPool(limits: limits, wireLimits: WireLimits(), loop: loop, trimmer: trimmer)
        defer { pool.shutDown() }
        var settings = DialSettings()
        settings.connector = Identified(Connector())
        let dialer = Dialer(settings: settings, loop: loop)
        let destination = Destination(isSecure: false, host: "memory.test", port: 80)
        var leases: [Lease] = []
        for _ in 0..<count {
            switch try pool.acquire(destination, by: dialer, ConnectionPool.Request()) {
            case .lease(let lease): leases.append(lease)
            case .ticket(let ticket): leases.append(try await ticket.lease())
            }
        }
        for lease in leases.dropLast(32) { lease.returnUnused() }
        #expect(trimmer.scheduledCount == 0)
        for lease in leases.suffix(32) { lease.returnUnused() }
        #expect(trimmer.scheduledCount == (count == 256 ? 1 : 0))
    }
}
