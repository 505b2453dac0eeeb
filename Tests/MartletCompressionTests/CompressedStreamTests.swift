import FoundationEssentials
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

    @Test("A large stream is sent in constant memory")
    func memory() async throws {
        let count = 2048
        try await TestOrigin.withOrigin { request in
            var byteCount = 0
            for try await piece in request.body { byteCount += piece.count }
            return .text("\(byteCount)")
        } run: { origin async throws in
            let reads = Reads()
            let peak = Atomic(0)
            let start = Self.anonymousMemory()
            let body = Self.stream(of: count, reads) { peak.max(Self.anonymousMemory(), ordering: .relaxed) }
            let exchange = try await HTTPSession.own().post(origin.url(), body: body)
            let byteCount = try #require(Int(exchange.text))
            #expect(byteCount > count * noise.count)
            #expect(start > 0 && peak.load(ordering: .relaxed) - start < 48 << 20)
        }
    }

    /// The resident memory of this process in bytes, without pages of files; 0 if it is not known.
    private static func anonymousMemory() -> Int {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("RssAnon:") }
        return (line?.split { !$0.isNumber }.first.flatMap { Int($0) } ?? 0) << 10
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
