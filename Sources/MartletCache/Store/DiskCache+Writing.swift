import Glibc
import MartletStorage
import Synchronization

extension DiskCache {
    /// Begins to store a response.
    ///
    /// - Parameters:
    ///   - expectedByteCount: the body's length where it is known. Room is set aside for all of it at once, and another length
    ///     is not stored.
    ///   - generation: the number of its body; drawn where it is `nil`.
    /// - Returns: where its body goes; `nil` for a body that is known to be too large, which an event says, and where nothing
    ///   is stored at all.
    package func begin(
        _ head: StoredHead, expectedByteCount: UInt64? = nil, generation: UInt64? = nil
    ) -> EntryWriter? {
        let limit = bodyLimit
        guard limit > 0 else { return nil }
        if let expectedByteCount, expectedByteCount > limit {
            refuse(head.key, tooLarge: expectedByteCount)
            return nil
        }
        return EntryWriter(
            head, expectedByteCount: expectedByteCount,
            generation: generation ?? .random(in: 1 ... .max), in: self)
    }

    /// Stores a response that is there as a whole.
    @discardableResult
    package func store(_ head: StoredHead, body: [UInt8]) -> Bool {
        guard let writer = begin(head, expectedByteCount: UInt64(body.count)) else { return false }
        return writer.append(body) && writer.commit()
    }

    // MARK: What writers need

    func refuse(_ key: CacheKey, tooLarge byteCount: UInt64) {
        countRefusal()
        emit(.tooLarge(key, byteCount: byteCount, limit: bodyLimit))
    }

    func refuse(noRoomFor key: CacheKey) {
        countRefusal()
        emit(.noRoom(key))
    }

    func refuse(_ error: StorageError) {
        countRefusal()
        note(error)
    }

    func countRefusal() {
        state.withLock { $0.statistics.refusals += 1 }
    }

    /// Up to which length room for a body is counted and not set aside in its file, in bytes: it is written soon, and setting
    /// room aside costs half as much as that.
    static let soonWrittenByteCount: UInt64 = 1 << 20

    /// Makes a file for a larger body, locked as being written, with room set aside; `nil` where there is none.
    func makeBodyFile(_ byteCount: UInt64, _ number: inout UInt64) throws(StorageError) -> OpenFile? {
        let chosen = UInt64.random(in: 0 ... .max)
        number = chosen
        let path = folder.path(of: .temporary(chosen))
        return try withLedger { (ledger) throws(StorageError) -> OpenFile? in
            guard try makeRoom(for: byteCount, &ledger) else { return nil }
            try ledger.add(byteCount)
            do throws(StorageError) {
                let file = try files.open(path, for: .creating)
                _ = try files.tryLock(file)
                if byteCount > Self.soonWrittenByteCount { try files.allocate(byteCount, for: file) }
                return file
            } catch {
                try? files.remove(path)
                ledger.subtract(byteCount)
                throw error
            }
        }
    }

    /// Sets more room aside; false where there is none.
    func extend(_ file: OpenFile, from reserved: UInt64, to byteCount: UInt64) throws(StorageError) -> Bool {
        guard byteCount > reserved else { return true }
        return try withLedger { (ledger) throws(StorageError) -> Bool in
            guard try makeRoom(for: byteCount - reserved, &ledger) else { return false }
            try ledger.add(byteCount - reserved)
            do throws(StorageError) {
                if byteCount > Self.soonWrittenByteCount { try files.allocate(byteCount, for: file) }
            } catch {
                ledger.subtract(byteCount - reserved)
                throw error
            }
            return true
        }
    }

    /// Counts what a body occupies instead of what was set aside for it.
    func settle(reserved: UInt64, allocated: UInt64) throws(StorageError) {
        guard reserved != allocated else { return }
        try withLedger { (ledger) throws(StorageError) in
            if allocated > reserved {
                try ledger.add(allocated - reserved)
            } else {
                ledger.subtract(reserved - allocated)
            }
        }
    }

    /// Removes a body that is not stored.
    func release(_ number: UInt64, reserved: UInt64) {
        let path = folder.path(of: .temporary(number))
        do throws(StorageError) {
            try files.remove(path)
            try withLedger { (ledger) throws(StorageError) in ledger.subtract(reserved) }
        } catch {
            // Where the file stays, it stays counted; whoever counts the folder next removes it.
            if error.code != ENOENT { note(error) }
        }
    }
}
