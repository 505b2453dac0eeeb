import MartletWire
import Synchronization

extension ResponseStore {
    /// Starts to store a response.
    /// - Parameters:
    ///   - expectedByteCount: The length of the body, if it is known; a body of another length is not stored.
    ///   - epoch: The epoch of the request. If its URL was invalidated since then, or its key superseded, the response
    ///     is not stored.
    /// - Returns: The writer; `nil` if no tier can store the response.
    package func begin(_ head: StoredHead, expectedByteCount: UInt64?, epoch: InvalidationLog.Epoch) -> ResponseWriter?
    {
        let expected = expectedByteCount ?? 0
        let limit = memory.bodyLimit(for: head).flatMap { expected <= UInt64($0) ? $0 : nil }
        let representation = UInt64.random(in: 1 ... .max)
        var writer: EntryWriter?
        // An event reports a body that is too large for the disk, unless memory can store it.
        if let disk, limit == nil || expected <= disk.bodyLimit {
            writer = disk.begin(head, expectedByteCount: expectedByteCount, generation: representation)
        }
        guard limit != nil || writer != nil else { return nil }
        return ResponseWriter(
            head, expectedByteCount: expectedByteCount, representation: representation, epoch: epoch,
            memoryLimit: limit, entryWriter: writer, in: self)
    }

    /// Stores a response whose body is complete: memory the `gathered` body, the disk that of the writer, if any. In
    /// both tiers, a more recent response stays (``VariantRule/isOutdated(_:by:now:)``).
    func commit(
        _ head: StoredHead, gathered: [UInt8]?, _ writer: EntryWriter?, trailers: FieldBlock?, representation: UInt64,
        epoch: InvalidationLog.Epoch, now: WallTime
    ) -> StoredResponse? {
        var head = head
        if let trailers { head.trailers = trailers }
        let (key, outdated) = (head.key, outdated.withLock { $0 })
        return changing.withLock { leaving in
            persist(&leaving)
            defer { noteChange(key.url) }
            let isCurrent = { (stored: [StoredHead]) in
                self.holds(epoch, for: key)
                    && !VariantRule.isOutdated(head, by: stored.filter { !outdated.cover($0) }, now: now)
            }
            var isLatest = isCurrent(memory.variants(of: key).map(\.head))
            var isOnDisk = false
            if isLatest, let writer {
                isOnDisk = writer.commit(trailers: trailers) { stored in
                    isLatest = isCurrent(stored)
                    return isLatest
                }
            }
            let limit = memory.bodyLimit(for: head)
            let body = gathered.flatMap { body in limit.map { body.count <= $0 } == true ? body : nil }
            if isLatest, !isOnDisk, body != nil, let disk { isLatest = isCurrent(disk.variants(of: key).map(\.head)) }
            // A later invalidation waits for the lock, and then removes the response.
            guard isLatest, holds(epoch, for: key), isOnDisk || body != nil else {
                if !isOnDisk { writer?.abandon() }
                return nil
            }
            guard let body else {
                memory.displace(by: head, representation: representation)
                return found(key, representation, seen: nil)
            }
            let entry = MemoryEntry(
                StoredVariant(head: head, bodyLength: UInt64(body.count)), body: body, representation: representation,
                name: writer?.name)
            if !isOnDisk { removeDisplaced(by: head) }
            leaving += memory.insert(entry, isOnDisk: isOnDisk)
            persist(&leaving)
            return StoredResponse(entry)
        }
    }

    /// Replaces the head of a response by that of a 304, in both tiers, without its body (RFC 9111 §4.3.4). It blocks
    /// on files.
    /// - Returns: The response with the new head; `nil` if that is not stored, because the response was removed or
    ///   replaced, or its URL invalidated since.
    package func freshen(_ response: StoredResponse, to head: StoredHead, epoch: InvalidationLog.Epoch)
        -> StoredResponse?
    {
        let (key, representation) = (response.head.key, response.representation)
        guard head.key == key else { return nil }
        return changing.withLock { leaving -> StoredResponse? in
            persist(&leaving)
            let isCurrent = { self.holds(epoch, for: key) }
            guard isCurrent() else { return nil }
            var isOnDisk = false
            if let disk, let reader = response.reader ?? found(key, representation, seen: nil)?.reader {
                isOnDisk = disk.updateHead(of: reader, to: head, if: isCurrent)
            }
            guard isCurrent() else { return nil }
            let seen = noteChange(key.url)
            if let held = memory.entry(of: key, representation: representation),
                let updated = memory.updateHead(of: held, to: head, isOnDisk: isOnDisk)
            {
                leaving += updated.unwritten
                persist(&leaving)
                return StoredResponse(updated.entry)
            }
            return isOnDisk ? found(key, representation, seen: seen) : nil
        }
    }

    /// Records that the stored responses of a URL have changed, as the last step of a change: a response that was found
    /// during the change must not be promoted to memory after it.
    @discardableResult func noteChange(_ url: String) -> InvalidationLog.Epoch {
        changes.withLock { changes in
            changes.invalidate(url)
            return changes.epoch
        }
    }

    private func found(_ key: CacheKey, _ representation: UInt64, seen: InvalidationLog.Epoch?) -> StoredResponse? {
        let readers = disk?.variants(of: key) ?? []
        return readers.first { $0.entry.generation == representation }.map {
            StoredResponse($0, seen: seen, isLastOnDisk: readers.count == 1)
        }
    }

    /// Removes the responses on disk that one in memory replaces, so that they are not found again when it is evicted.
    private func removeDisplaced(by head: StoredHead) {
        guard !head.selections.isEmpty else {
            disk?.remove(head.key)
            return
        }
        let readers = disk?.variants(of: head.key) ?? []
        let heads = readers.map(\.head)
        for index in VariantRule.displaced(by: head, in: heads, limit: EntryName.slotLimit) {
            disk?.remove(readers[index])
        }
    }
}

/// The URLs that unsafe requests have made out of date, with the times, for responses that cannot be found by their URL
/// alone: those stored for other credentials, or in other partitions (RFC 9111 §4.4).
///
/// If a URL is removed from this table, its responses in other partitions are used again. If the clock of another
/// process is slow, its responses of such a URL are not used until that clock has reached the time in the table.
typealias InvalidatedURLs = RecentKeys<String, WallTime>

extension InvalidatedURLs {
    /// Returns the time at which a request counts as sent: after its URL was invalidated, even in this millisecond.
    func requestTime(for url: String, now: WallTime) -> WallTime {
        guard !isEmpty, self[url] == now, now.milliseconds < .max else { return now }
        return WallTime(milliseconds: now.milliseconds + 1)
    }

    /// Whether the request of a response was sent before its URL went out of date. A request of another process in the
    /// same millisecond counts as older, which costs at most one request.
    func cover(_ head: StoredHead) -> Bool {
        guard !isEmpty, let time = self[head.key.url] else { return false }
        return head.requestTime <= time
    }
}
