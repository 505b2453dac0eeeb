import FoundationEssentials

/// The entries of a store: matching, expiry, the limit, and the changes since the file was written.
struct HSTSTable: Sendable {
    /// The maximum number of entries.
    let limit: Int
    private(set) var entries: [String: HSTSEntry] = [:]
    /// The number of changes so far.
    private(set) var revision: UInt64 = 0
    /// The revision that is in the file.
    private var savedRevision: UInt64 = 0
    /// The hosts that were changed or removed since then, with the revision of the last change.
    private var changes: [String: UInt64] = [:]
    /// The last revision that replaces all entries of the file, whatever it contains.
    private var replacingRevision: UInt64 = 0

    /// Creates a table with the entries of a file, of which those that expire last are kept.
    init(limit: Int, _ entries: [String: HSTSEntry] = [:]) {
        self.limit = max(0, limit)
        self.entries = HSTSTable.limited(entries, to: self.limit)
    }

    var hasUnsavedChanges: Bool { revision != savedRevision }

    /// Whether a host or a domain above it, which includes its subdomains, has an entry (RFC 6797 §8.2). Names are
    /// compared label by label. An expired entry does not hide another one above it.
    /// - Parameter host: A normalized host name, with or without the final dot.
    func contains(_ host: String, at now: Date) -> Bool {
        if entries.isEmpty { return false }
        var name = HSTSEntry.withoutFinalDot(host)
        if let entry = entries[name], !entry.isExpired(at: now) { return true }
        while let dot = name.firstIndex(of: ".") {
            name = String(name[name.index(after: dot)...])
            if let entry = entries[name], entry.includesSubdomains, !entry.isExpired(at: now) { return true }
        }
        return false
    }

    /// Stores an entry in place of that of the same host; an expired one only removes it. Above the limit, the entry
    /// that expires first is removed.
    mutating func set(_ entry: HSTSEntry, at now: Date) {
        guard !entry.isExpired(at: now) else {
            remove(entry.host)
            return
        }
        guard entries[entry.host] != entry else { return }
        entries[entry.host] = entry
        noteChange(of: entry.host)
        if entries.count > limit, let first = entries.values.min(by: { $0.expiresBefore($1) }) { remove(first.host) }
    }

    /// Removes the entry of a host, and returns whether there was one.
    @discardableResult mutating func remove(_ host: String) -> Bool {
        guard entries.removeValue(forKey: host) != nil else { return false }
        noteChange(of: host)
        return true
    }

    mutating func removeAll() {
        entries = [:]
        revision += 1
        replaceFile()
    }

    private mutating func noteChange(of host: String) {
        revision += 1
        changes[host] = revision
        // A server can add and remove names without end.
        if changes.count > 2 * limit { replaceFile() }
    }

    private mutating func replaceFile() {
        changes = [:]
        replacingRevision = revision
    }

    // MARK: The file

    /// Returns the entries to write to the file: those of this table, and others that are in the file already. For a
    /// host that was not changed here, the file's entry is used, because another process may have changed it.
    func merged(with file: [String: HSTSEntry], at now: Date) -> [String: HSTSEntry] {
        var merged = entries
        if replacingRevision <= savedRevision {
            for (host, entry) in file where changes[host] == nil { merged[host] = entry }
        }
        return HSTSTable.limited(merged.filter { !$0.value.isExpired(at: now) }, to: limit)
    }

    /// Records that the entries of a revision were written, merged with those of the file. Later changes are kept.
    mutating func didSave(_ merged: [String: HSTSEntry], revision: UInt64) {
        savedRevision = max(savedRevision, revision)
        changes = changes.filter { $0.value > revision }
        guard replacingRevision <= revision else { return }
        let current = entries
        entries = merged
        for host in changes.keys { entries[host] = current[host] }
        entries = HSTSTable.limited(entries, to: limit)
    }

    private static func limited(_ entries: [String: HSTSEntry], to limit: Int) -> [String: HSTSEntry] {
        guard entries.count > limit else { return entries }
        let kept = entries.values.sorted { $1.expiresBefore($0) }.prefix(limit)
        return Dictionary(kept.map { ($0.host, $0) }) { first, _ in first }
    }
}
