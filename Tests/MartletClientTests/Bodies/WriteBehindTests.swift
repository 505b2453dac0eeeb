import MartletStorage
import Synchronization
import Testing

@testable import MartletCore

@Suite("Write-behind blocks")
struct WriteBehindTests {
    /// A sink that accepts no further block after the first.
    private final class Sated: BlockSink {
        let count = Mutex(0)

        func write(_ bytes: RawSpan) -> Bool {
            count.withLock { $0 += 1 }
            return false
        }
    }

    @Test("A sink that stops the writer receives no block that was already filled")
    func sated() async throws {
        let sink = Sated()
        let writer = BlockWriter(sink, expected: nil)
        let (first, second) = (try await writer.emptyBlock(), try await writer.emptyBlock())
        _ = first.append([1])
        _ = second.append([2])
        try await writer.write(first)
        try await writer.write(second)
        try await writer.finish()
        #expect(sink.count.withLock { $0 } == 1)
    }
}
