import MartletCacheChild
import MartletWire

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

    /// Finds a URL.
    func find(_ url: String, language: String? = nil) -> EntryReader? {
        entry(for: CacheKey(url: url)) { head in
            language == nil || head.selections.first?.value == language
        }
    }

    /// The seed of the body that is found whole; 0 for a miss, `nil` for a wrong byte.
    func seed(of url: String, language: String? = nil) -> UInt64? {
        guard let reader = find(url, language: language), let bytes = try? reader.contents(limit: .max) else {
            return 0
        }
        guard SampleResponse.matches(reader.head, bytes) else { return nil }
        return reader.head.fields.firstValue(of: "x-seed").flatMap { UInt64($0) }
    }
}
