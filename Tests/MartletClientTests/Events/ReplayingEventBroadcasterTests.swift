import MartletCore
import MartletStreams
import Testing

@Suite("Replayed event sequences")
struct ReplayingEventBroadcasterTests {
    /// Returns all events up to the end.
    private func all(_ events: EventSequence<Int>) async -> [Int] {
        var all: [Int] = []
        for await event in events { all.append(event) }
        return all
    }

    @Test("Every subscriber gets all events, first the earlier ones, and then the end")
    func all() async {
        let log = ReplayingEventBroadcaster<Int>()
        log.add(1)
        let early = log.subscribe()
        log.add(2)
        let late = log.subscribe()
        log.add(3)
        log.end()
        log.add(4)
        #expect(await all(early) == [1, 2, 3])
        #expect(await all(late) == [1, 2, 3])
        #expect(await all(log.subscribe()) == [1, 2, 3])
        #expect(log.pastEvents == [1, 2, 3])
    }

    @Test("A late subscriber gets the last 256 events, or fewer at the weight limit")
    func past() async {
        let log = ReplayingEventBroadcaster<Int>()
        for number in 0..<300 { log.add(number) }
        #expect(log.pastEvents == Array(44..<300))
        let heavy = ReplayingEventBroadcaster<Int>(weightLimit: 10) { $0 }
        for number in [4, 3, 6, 2, 50, 1] { heavy.add(number) }
        #expect(heavy.pastEvents == [1])
        heavy.add(9)
        #expect(heavy.pastEvents == [1, 9])
    }

    @Test("A sequence does not retain its broadcaster and ends when that is released")
    func gone() async throws {
        var log: ReplayingEventBroadcaster<Int>? = ReplayingEventBroadcaster()
        let events = try #require(log?.subscribe())
        log?.add(1)
        log = nil
        #expect(await all(events) == [1])
    }

    @Test("A waiting subscriber receives events in order from any sender")
    func waiting() async {
        let log = ReplayingEventBroadcaster<Int>()
        let events = log.subscribe()
        let told = Task { await all(events) }
        for number in 0..<1_000 {
            log.add(number)
            if number % 7 == 0 { await Task.yield() }
        }
        log.end()
        #expect(await told.value == Array(0..<1_000))
    }

    @Test(
        "Tasks that share a sequence get each event once, and a cancelled task leaves the rest to the others")
    func shared() async {
        let log = ReplayingEventBroadcaster<Int>()
        let events = log.subscribe()
        let tasks = (0..<4).map { _ in Task { await all(events) } }
        for number in 0..<400 { log.add(number) }
        tasks[0].cancel()
        _ = await tasks[0].value
        for number in 400..<800 { log.add(number) }
        log.end()
        var taken: [Int] = []
        for task in tasks { taken += await task.value }
        #expect(taken.sorted() == Array(0..<800))
    }
}
