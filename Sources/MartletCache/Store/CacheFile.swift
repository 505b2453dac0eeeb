/// A file of the cache's, told by its name. What has another name is not the cache's: it is neither read nor removed.
enum CacheFile: Hashable, Sendable {
    /// A stored response: its head, and its body where that is small.
    case entry(EntryName)
    /// A larger body, in a file that is never written again; the number is the entry's generation.
    case body(EntryName, generation: UInt64)
    /// A file that is still being written. Its lock says whether by anybody.
    case temporary(UInt64)
    /// The order in which entries were used.
    case index
    /// The lock, and how much is stored.
    case lock

    /// The name in the cache's folder.
    var name: String {
        switch self {
        case .entry(let entry): "\(entry.digest.text).\(entry.slot)"
        case .body(let entry, let generation):
            "\(entry.digest.text).\(entry.slot).\(CacheDigest.text(of: generation))"
        case .temporary(let number): "new.\(CacheDigest.text(of: number))"
        case .index: "index"
        case .lock: "lock"
        }
    }

    /// The file of a name; `nil` for names that are not the cache's.
    init?(name: String) {
        switch name {
        case "index": self = .index
        case "lock": self = .lock
        default:
            let parts = name.split(separator: ".", omittingEmptySubsequences: false)
            if parts.count == 2, parts[0] == "new" {
                guard let number = CacheDigest.number(parts[1].utf8) else { return nil }
                self = .temporary(number)
                return
            }
            guard parts.count == 2 || parts.count == 3, let digest = CacheDigest(text: parts[0].utf8),
                parts[1].utf8.count == 1, let byte = parts[1].utf8.first,
                (0x30..<(0x30 + UInt8(EntryName.slotLimit))).contains(byte)
            else { return nil }
            let entry = EntryName(digest: digest, slot: Int(byte - 0x30))
            guard parts.count == 3 else {
                self = .entry(entry)
                return
            }
            guard let generation = CacheDigest.number(parts[2].utf8) else { return nil }
            self = .body(entry, generation: generation)
        }
    }
}
