import MartletStorage
import Synchronization

extension DiskCache {
    /// Shows each entry that is whole, in no order, until the closure returns false. None counts as used.
    package func forEachEntry(_ body: (EntryReader) -> Bool) {
        for name in namesOfEntries() {
            if let reader = open(name, for: nil), !body(reader) { return }
        }
    }

    /// Reads every byte that is stored and removes the entries that are damaged.
    ///
    /// - Returns: how many entries are whole, how many bytes their bodies have, and how many were removed.
    package func verify() -> (whole: Int, byteCount: UInt64, damaged: Int) {
        var result = (whole: 0, byteCount: UInt64(0), damaged: 0)
        for name in namesOfEntries() {
            let before = state.withLock { $0.statistics.damaged }
            if let reader = open(name, for: nil), isWhole(reader) {
                result.whole += 1
                result.byteCount &+= reader.byteCount
            } else {
                result.damaged += state.withLock { $0.statistics.damaged } - before
            }
        }
        return result
    }

    private func isWhole(_ reader: EntryReader) -> Bool {
        var offset: UInt64 = 0
        while offset < reader.byteCount {
            guard let bytes = try? reader.read(at: offset, limit: EntryReader.readLimit), !bytes.isEmpty
            else {
                return false
            }
            offset += UInt64(bytes.count)
        }
        return true
    }

    private func namesOfEntries() -> [EntryName] {
        do throws(StorageError) {
            return try entryNames()
        } catch {
            note(error)
            return []
        }
    }
}
