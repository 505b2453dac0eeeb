import Testing

@testable import MartletTransport

@Suite("Connect race: cache of failed addresses")
struct AddressMemoryTests {
    @Test("A failure is remembered until its lifetime expires")
    func lifetime() {
        var memory = AddressMemory<FakeAddress>(lifetime: 100)
        memory.recordFailure("4a", now: 1000)
        #expect(memory.hasFailedRecently("4a", now: 1000))
        #expect(memory.hasFailedRecently("4a", now: 1099))
        #expect(!memory.hasFailedRecently("4a", now: 1100))
        #expect(!memory.hasFailedRecently("4b", now: 1000))
    }

    @Test("By default a failure is remembered for ten minutes, and at most 256 are stored")
    func defaults() {
        let memory = AddressMemory<FakeAddress>()
        #expect(memory.lifetime == 600_000_000_000)
        #expect(memory.capacity == 256)
    }

    @Test("A later failure restarts the lifetime")
    func renewed() {
        var memory = AddressMemory<FakeAddress>(lifetime: 100)
        memory.recordFailure("4a", now: 1000)
        memory.recordFailure("4a", now: 1050)
        #expect(memory.hasFailedRecently("4a", now: 1149))
        #expect(memory.count == 1)
    }

    @Test("An address that works again is forgotten")
    func success() {
        var memory = AddressMemory<FakeAddress>()
        memory.recordFailure("4a", now: 1000)
        memory.recordSuccess("4a")
        #expect(!memory.hasFailedRecently("4a", now: 1000))
        #expect(memory.count == 0)
    }

    @Test("A full cache evicts its oldest failure")
    func bounded() {
        var memory = AddressMemory<FakeAddress>(capacity: 3)
        for (time, name) in ["4a", "4b", "4c"].enumerated() {
            memory.recordFailure(FakeAddress(name), now: UInt64(time))
        }
        memory.recordFailure("4a", now: 10)
        memory.recordFailure("4d", now: 11)
        #expect(memory.count == 3)
        #expect(!memory.hasFailedRecently("4b", now: 11))
        #expect(memory.hasFailedRecently("4a", now: 11))
        #expect(memory.hasFailedRecently("4d", now: 11))
    }

    @Test("A full cache evicts expired failures first")
    func expiredFirst() {
        var memory = AddressMemory<FakeAddress>(capacity: 3, lifetime: 100)
        for (time, name) in ["4a", "4b", "4c"].enumerated() {
            memory.recordFailure(FakeAddress(name), now: UInt64(time))
        }
        memory.recordFailure("4d", now: 500)
        #expect(memory.count == 1)
    }

    @Test("The cache stays within its capacity however many addresses fail")
    func flood() {
        var memory = AddressMemory<FakeAddress>()
        for number in 0..<1000 { memory.recordFailure(FakeAddress("4-\(number)"), now: UInt64(number)) }
        #expect(memory.count == 256)
        #expect(memory.hasFailedRecently("4-999", now: 1000))
        #expect(!memory.hasFailedRecently("4-743", now: 1000))
    }
}
