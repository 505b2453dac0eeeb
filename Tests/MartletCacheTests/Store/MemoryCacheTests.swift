import MartletCacheChild
import Testing

@testable import MartletCache

@Suite("Responses in memory")
struct MemoryCacheTests {
    private func entry(_ url: String, count: Int = 1000, language: String? = nil, time: Int64 = 1)
        -> MemoryEntry
    {
        let selections = language.map { [StoredHead.Selection(name: "accept-language", value: $0)] } ?? []
        return MemoryEntry(
            head: SampleResponse.head(url, seed: 1, count: count, selections: selections, time: time),
            body: SampleResponse.body(seed: 1, count: count))
    }

    private func urls(_ entries: [MemoryEntry]) -> [String] { entries.map(\.head.key.url) }

    @Test(
        "The cost of the entries never exceeds the limit, and the count of it is exact",
        arguments: EvictionOrder.allCases)
    func bounded(_ order: EvictionOrder) {
        let cache = MemoryCache(limit: 50_000, order: order)
        var held: [String: Int] = [:]
        for number in 0..<500 {
            let entry = entry("u\(number % 90)", count: number * 37 % 5000)
            held[entry.head.key.url] = entry.cost
            cache.insert(entry, isOnDisk: true)
            #expect(cache.statistics.byteCount <= 50_000)
        }
        let found = held.keys.compactMap { url in cache.entry(for: CacheKey(url: url)) { _ in true } }
        #expect(found.reduce(0) { $0 + $1.cost } == cache.statistics.byteCount)
        #expect(found.count == cache.statistics.entryCount)
        cache.removeAll()
        #expect(cache.statistics.byteCount == 0)
    }

    @Test("The most recently used entries are retained")
    func order() {
        let cache = MemoryCache(limit: 20_000)
        let cost = entry("a").cost
        for number in 0..<(20_000 / cost) { cache.insert(entry("\(number)"), isOnDisk: true) }
        #expect(cache.entry(for: CacheKey(url: "0")) { _ in true } != nil)
        cache.insert(entry("x"), isOnDisk: true)
        #expect(cache.entry(for: CacheKey(url: "0")) { _ in true } != nil)
        #expect(cache.entry(for: CacheKey(url: "1")) { _ in true } == nil)
    }

    @Test("Under memory pressure the cache is trimmed, and entries that are not on disk are returned for writing")
    func trim() {
        let cache = MemoryCache(limit: 100_000)
        cache.insert(entry("a"), isOnDisk: false)
        cache.insert(entry("b"), isOnDisk: true)
        let late = entry("c")
        cache.insert(late, isOnDisk: false)
        cache.insert(entry("d"), isOnDisk: false)
        cache.markOnDisk(late)
        #expect(urls(cache.unwritten) == ["a", "d"])
        #expect(urls(cache.trim(to: 0)) == ["a", "d"])
        #expect(cache.statistics.byteCount == 0)
        cache.insert(entry("e"), isOnDisk: false)
        #expect(cache.statistics.entryCount == 1)
    }

    @Test("Entries that are evicted to make room are returned too, oldest first")
    func evicts() {
        let cache = MemoryCache(limit: 20_000)
        var given: [MemoryEntry] = []
        for number in 0..<30 { given += cache.insert(entry("\(number)"), isOnDisk: number % 2 == 0) }
        #expect(urls(given).first == "1")
        #expect(urls(given).allSatisfy { (Int($0) ?? 0) % 2 == 1 })
    }

    @Test("An entry above an eighth of the limit is not accepted, and a limit of 0 accepts none")
    func large() {
        let cache = MemoryCache(limit: 80_000)
        cache.insert(entry("a"), isOnDisk: true)
        #expect(urls(cache.insert(entry("a", count: 10_000), isOnDisk: false)) == ["a"])
        #expect(cache.statistics.entryCount == 0)
        let none = MemoryCache(limit: 0)
        none.insert(entry("a", count: 0), isOnDisk: true)
        #expect(none.statistics.entryCount == 0)
    }

    @Test("At most eight variants are stored, and a response without Vary replaces them")
    func variants() {
        let cache = MemoryCache(limit: 1_000_000)
        for number in 0..<10 {
            cache.insert(entry("a", language: "l\(number)", time: Int64(number)), isOnDisk: true)
        }
        #expect(cache.statistics.entryCount == 8)
        let key = CacheKey(url: "a")
        #expect(cache.entry(for: key) { $0.selections.first?.value == "l1" } == nil)
        #expect(cache.entry(for: key) { $0.selections.first?.value == "l2" } != nil)
        #expect(cache.entry(for: key) { _ in true }?.head.selections.first?.value == "l9")
        cache.insert(entry("a"), isOnDisk: true)
        #expect(cache.statistics.entryCount == 1)
        cache.remove(key)
        #expect(cache.statistics.entryCount == 0)
    }

    @Test("A trimmed cache is immediately within the new size")
    func trimmed() {
        let cache = MemoryCache(limit: 100_000)
        for number in 0..<20 { cache.insert(entry("\(number)"), isOnDisk: false) }
        #expect(!cache.trim(to: 10_000).isEmpty)
        #expect(cache.statistics.byteCount <= 10_000)
    }

    @Test("A use at a position that another entry now occupies counts only for the entry itself")
    func movedUse() throws {
        let cache = MemoryCache(limit: 20_000)
        let cost = entry("a").cost
        for number in 0..<(20_000 / cost) { cache.insert(entry("\(number)"), isOnDisk: true) }
        let first = try #require(cache.responses(of: CacheKey(url: "0")).first)
        let second = try #require(cache.responses(of: CacheKey(url: "1")).first)
        cache.noteUse(of: first.entry, at: second.place)
        cache.noteUse(of: first.entry, at: 1_000_000)
        cache.insert(entry("x"), isOnDisk: true)
        #expect(!cache.responses(of: CacheKey(url: "0")).isEmpty)
        #expect(cache.responses(of: CacheKey(url: "1")).isEmpty)
        cache.noteUse(of: second.entry, at: second.place)
        #expect(cache.statistics.hits == 3)
    }
}

extension MemoryCache {
    /// Returns the newest accepted variant of a key, and counts it as used.
    fileprivate func entry(for key: CacheKey, where isAcceptable: (StoredHead) -> Bool) -> MemoryEntry? {
        let found = variants(of: key).filter { isAcceptable($0.head) }
            .max { $0.head.responseTime < $1.head.responseTime }
        noteUse(of: found)
        return found
    }
}
