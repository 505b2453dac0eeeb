import Synchronization

extension ResponseStore {
    /// Gives entries in memory up until they cost no more than so many bytes; the limit stays. What is not on disk is written
    /// there, where there is one. It blocks on files.
    package func trim(to byteCount: Int) {
        changing.withLock { changing in
            changing.leaving += memory.trim(to: byteCount)
            writeDown(&changing)
        }
    }

    /// Writes down what is not on disk, and in which order entries were used: to be called before the process ends. Memory
    /// keeps what it has. It blocks on files.
    package func flush() {
        guard let disk else { return }
        changing.withLock { changing in
            writeDown(&changing)
            for entry in memory.unwritten {
                if let name = written(entry) { memory.markOnDisk(entry, as: name) }
            }
        }
        disk.saveIndex()
    }

    /// Writes down what memory gave up; what the disk does not take is gone.
    func writeDown(_ changing: inout Changing) {
        for entry in changing.leaving { _ = written(entry) }
        changing.leaving = []
    }

    /// Writes an entry to disk, and says where; `nil` where it is not stored.
    private func written(_ entry: MemoryEntry) -> EntryName? {
        guard let disk, UInt64(entry.body.count) <= disk.bodyLimit else { return nil }
        let readers = disk.variants(of: entry.head.key)
        if let reader = readers.first(where: { $0.entry.generation == entry.representation }) {
            return disk.updateHead(of: reader, to: entry.head) ? reader.name : nil
        }
        // Another process may have stored a later one.
        let rivals = VariantRule.displaced(by: entry.head, in: readers.map(\.head), limit: .max)
        guard rivals.allSatisfy({ readers[$0].head.responseTime <= entry.head.responseTime }),
            let writer = disk.begin(
                entry.head, expectedByteCount: UInt64(entry.body.count), generation: entry.representation),
            writer.append(entry.body), writer.commit()
        else { return nil }
        return writer.name
    }
}
