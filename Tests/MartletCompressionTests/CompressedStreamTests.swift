import Martlet
import MartletTestSupport
import MartletTesting
import Synchronization
import Testing

@Suite("Streams of compressed bodies", .serialized)
struct CompressedStreamTests {
    /// Counts the pieces that were read of a stream.
    private final class Reads: Sendable {
        private let number = Atomic(0)
        var count: Int { number.load(ordering: .relaxed) }
        func add() { number.add(1, ordering: .relaxed) }
    }

    /// A stream of blocks that are not compressible, 64 KiB each.
    private static func stream(of count: Int = .max, _ reads: Reads, onRead: (@Sendable () -> Void)? = nil) -> HTTPBody
    {
        .stream {
            AsyncStream<[UInt8]> {
                guard reads.count < count else { return nil }
                reads.add()
                onRead?()
                return noise
            }
        }.compressed(.gzip)
    }

    @Test("A server that does not read stops the compression, and a cancellation ends the call")
    func backPressure() async throws {
        let script = ServerScript(.expectRequestHead, .stall)
        try await TestOrigin.withOrigin(scripts: script) { origin async throws in
            let reads = Reads()
            let task = Task { try await HTTPSession.own().post(origin.url(), body: Self.stream(reads)) }
            var (last, checks) = (0, 0)
            // The buffers of both sockets are full once nothing was read for a while.
            _ = await eventually {
                checks = reads.count == last && last > 0 ? checks + 1 : 0
                last = reads.count
                return checks >= 200
            }
            // 64 MiB: far more than the sockets' buffers.
            #expect(last > 0 && last < 1024)
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            let atEnd = reads.count
            #expect(atEnd <= last + 1)
        }
    }

    @Test("A large stream is read only as fast as it is received")
    func lag() async throws {
        let received = Atomic(0)
        let lag = Atomic(0)
        try await TestOrigin.withOrigin { request in
            for try await piece in request.body { received.add(piece.count, ordering: .relaxed) }
            return .text("")
        } run: { origin async throws in
            let reads = Reads()
            let body = Self.stream(of: 2048, reads) {
                lag.max(reads.count * noise.count - received.load(ordering: .relaxed), ordering: .relaxed)
            }
            _ = try await HTTPSession.own().post(origin.url(), body: body)
            #expect(received.load(ordering: .relaxed) > 2048 * noise.count)
            // The buffers of the sockets, of 128 MiB in total.
            #expect(lag.load(ordering: .relaxed) < 64 << 20)
        }
    }

    @Test("An early response ends the compression")
    func earlyResponse() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse.status(413).with { $0.closesConnection = true }
        } run: { origin async throws in
            let reads = Reads()
            let exchange = try await HTTPSession.own().post(origin.url(), body: Self.stream(reads))
            #expect(exchange.statusCode == 413)
        }
    }

    @Test("A call that is cancelled while its source waits ends")
    func cancelledSource() async throws {
        let script = ServerScript(.expectRequestHead, .readAll)
        try await TestOrigin.withOrigin(scripts: script) { origin async throws in
            let (pieces, feed) = AsyncStream<[UInt8]>.makeStream()
            feed.yield(lines(100))
            let task = Task {
                try await HTTPSession.own().post(origin.url(), body: .once(pieces).compressed(.gzip))
            }
            try await origin.recorder.waitForRequests(count: 1)
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            feed.finish()
        }
    }
}
