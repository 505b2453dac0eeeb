import MartletCacheChild
import MartletStorage
import MartletWire
import Synchronization

@testable import MartletCache

extension DiskCache {
    /// Stores the body of a seed under a URL.
    @discardableResult
    func put(
        _ url: String, seed: UInt64 = 1, count: Int = 100, language: String? = nil, time: Int64 = 1000
    ) -> Bool {
        let selections = language.map { [StoredHead.Selection(name: "accept-language", value: $0)] } ?? []
        let head = SampleResponse.head(url, seed: seed, count: count, selections: selections, time: time)
        return store(head, body: SampleResponse.body(seed: seed, count: count))
    }

    /// Passes each valid entry to the closure, in no order, until it returns false. No entry counts as used.
    func forEachEntry(_ body: (EntryReader) -> Bool) {
        for name in (try? entryNames()) ?? [] {
            if let reader = open(name), !body(reader) { return }
        }
    }

    /// Sets another limit and evicts entries until it holds; 0 evicts all.
    func setLimit(_ byteCount: UInt64) {
        state.withLock { $0.statistics.limit = byteCount }
        guard byteCount > 0 else {
            removeAll()
            return
        }
        do throws(StorageError) {
            try withUsage { (usage) throws(StorageError) in _ = try makeRoom(for: 0, &usage) }
        } catch {
            note(error)
        }
    }

    /// Returns a reader of a URL's entry.
    func find(_ url: String, language: String? = nil) -> EntryReader? {
        entry(for: CacheKey(url: url)) { head in
            language == nil || head.selections.first?.value == language
        }
    }

    /// Returns the seed of the body that is found; 0 for a miss and `nil` for a wrong byte.
    func seed(of url: String, language: String? = nil) -> UInt64? {
        guard let reader = find(url, language: language), let bytes = try? reader.contents(limit: .max) else {
            return 0
        }
        guard SampleResponse.matches(reader.head, bytes) else { return nil }
        return reader.head.fields.firstValue(of: "x-seed").flatMap { UInt64($0) }
    }
}
