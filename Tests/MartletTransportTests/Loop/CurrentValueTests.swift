import MartletTransport
import Testing

@Suite("Latest values")
struct CurrentValueTests {
    @Test("A subscriber receives the current value immediately, and then only different values")
    func presentFirst() async {
        let value = CurrentValue(1)
        value.update { 2 }
        #expect(await value.next(after: 0)?.value == 2)
        let version = await value.next(after: 0)?.version ?? 0
        value.update { 2 }
        async let next = value.next(after: version)
        value.update { 3 }
        #expect(await next?.value == 3)
    }

    @Test("A slow subscriber skips intermediate values")
    func skips() async {
        let value = CurrentValue(0)
        let first = await value.next(after: 0)
        for number in 1...100 { value.update { number } }
        #expect(await value.next(after: first?.version ?? 0)?.value == 100)
    }

    @Test("The last value is delivered before the end, to all waiters")
    func end() async {
        let value = CurrentValue(0)
        let seen = await value.next(after: 0)?.version ?? 0
        async let one = value.next(after: seen)
        async let other = value.next(after: seen)
        value.update { 7 }
        value.finish()
        #expect(await one?.value == 7)
        #expect(await other?.value == 7)
        let last = await value.next(after: 0)
        #expect(last?.value == 7)
        #expect(await value.next(after: last?.version ?? 0) == nil)
        value.update { 8 }
        #expect(value.value == 7)
    }

    @Test("Cancelling ends only the wait of the cancelled task")
    func cancelled() async {
        let value = CurrentValue(0)
        let seen = await value.next(after: 0)?.version ?? 0
        let cancelled = Task { await value.next(after: seen)?.value }
        let patient = Task { await value.next(after: seen)?.value }
        cancelled.cancel()
        #expect(await cancelled.value == nil)
        value.update { 1 }
        #expect(await patient.value == 1)
    }

    @Test("Concurrent changes from many tasks are all observed")
    func concurrent() async {
        let value = CurrentValue(0)
        await withTaskGroup(of: Void.self) { group in
            for number in 1...200 { group.addTask { value.update { number } } }
            var seen: UInt64 = 0
            // Each value differs from the previous one and is therefore a change.
            while seen < 201, let next = await value.next(after: seen) { seen = next.version }
        }
        #expect(value.value > 0)
    }
}
