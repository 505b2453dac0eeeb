import Martlet
import MartletCache
import MartletStorage

/// Removes the entries of some URLs from a cache, whosever they are.
struct CacheClearing: Sendable {
    /// A URL whose entries go.
    struct Target: Sendable {
        /// As keys have it.
        let url: String
        /// That, and its path as it was written, which requests may have kept.
        fileprivate let spellings: Set<String>

        init(_ url: HTTPURL, asIs: HTTPURL) {
            let texts = [url, asIs].map { url in
                CacheKey(of: url.absoluteString)?.url ?? url.absoluteString
            }
            self.url = texts[0]
            spellings = Set(texts)
        }
    }

    /// What was removed.
    struct Count: Sendable {
        var entries = 0
        /// What the entries occupied.
        var byteCount: UInt64 = 0

        /// For people.
        var text: String {
            "\(entries) \(entries == 1 ? "entry" : "entries"), \(ProgressText.size(Double(byteCount)))"
        }

        /// For programs.
        var members: [(String, JSONValue)] {
            [("entries", .number(entries)), ("bytes", .number(byteCount))]
        }
    }

    /// What was removed of each target.
    private(set) var counts: [Count]
    /// What could not be read, and so may be what was to be removed.
    private(set) var errors: [StorageError] = []
    /// Whether an entry could not be removed.
    private(set) var hasFailed = false

    /// Removes the entries. Whose they are is known by reading them alone, so all are read.
    init(_ targets: [Target], in cache: DiskCache) throws(StorageError) {
        counts = Array(repeating: Count(), count: targets.count)
        var places: [String: Int] = [:]
        for (place, target) in targets.enumerated() {
            for spelling in target.spellings where places[spelling] == nil { places[spelling] = place }
        }
        for name in try cache.entryNames() {
            switch cache.look(at: name) {
            case .whole(let reader):
                guard let place = places[reader.head.key.url] else { continue }
                guard cache.remove(reader) else {
                    hasFailed = true
                    continue
                }
                counts[place].entries += 1
                counts[place].byteCount &+= reader.storedByteCount
            case .unreadable(let error): errors.append(error)
            case .damaged, nil: break
            }
        }
    }
}
