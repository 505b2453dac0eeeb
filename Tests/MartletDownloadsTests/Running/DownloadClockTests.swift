import MartletTesting
import MartletTestSupport
import Synchronization
import Testing

@testable import MartletDownloads

@Suite("The clock of downloads")
struct DownloadClockTests {
    @Test("All that listen are told until they are removed, and again when others come")
    func told() async throws {
        let clock = DownloadClock()
        for _ in 0..<2 {
            let (first, told) = AsyncStream<Void>.makeStream()
            let (second, alsoTold) = AsyncStream<Void>.makeStream()
            let numbers = [clock.add { told.yield() }, clock.add { alsoTold.yield() }]
            #expect(clock.listenerCount == 2)
            for stream in [first, second] {
                var ticks = stream.makeAsyncIterator()
                for _ in 0..<2 { #expect(await ticks.next() != nil) }
            }
            for number in numbers { clock.remove(number) }
            #expect(clock.listenerCount == 0)
        }
    }
}
