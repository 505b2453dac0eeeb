import MartletWire
import Synchronization

extension ResponseStore {
    /// Begins to store a response.
    ///
    /// - Parameters:
    ///   - head: all but the body.
    ///   - expectedByteCount: the body's length where it is known; another length is not stored.
    ///   - epoch: when its request was sent: what is invalidated since is not stored.
    /// - Returns: where its body goes; `nil` for one that no tier takes, which counts as refused.
    package func begin(
        _ head: StoredHead, expectedByteCount: UInt64?, epoch: InvalidationLedger.Epoch
    ) -> ResponseWriter? {
        let expected = expectedByteCount ?? 0
        let limit = memory.bodyLimit(for: head).flatMap { expected <= UInt64($0) ? $0 : nil }
        let representation = UInt64.random(in: 1 ... .max)
        var writer: EntryWriter?
        // What is too large for the disk is an event, unless memory takes it.
        if let disk, limit == nil || expected <= disk.bodyLimit {
            writer = disk.begin(head, expectedByteCount: expectedByteCount, generation: representation)
        }
        guard limit != nil || writer != nil else {
            countRefusal()
            return nil
        }
        return ResponseWriter(
            head, expectedByteCount: expectedByteCount, representation: representation, epoch: epoch,
            memoryLimit: limit, entryWriter: writer, in: self)
    }

    func countRefusal() { counts.withLock { $0.refusals += 1 } }

    /// Stores a response whose body is whole.
    ///
    /// - Parameters:
    ///   - gathered: its body, where memory may have it.
    ///   - writer: its body, where the disk may have it.
    func commit(
        _ head: StoredHead, gathered: [UInt8]?, _ writer: EntryWriter?, trailers: FieldBlock?,
        representation: UInt64, epoch: InvalidationLedger.Epoch
    ) -> StoredResponse? {
        var head = head
        if let trailers { head.trailers = trailers }
        let url = head.key.url
        return changing.withLock { changing in
            writeDown(&changing)
            defer { noteChange(url) }
            let isCurrent = { self.holds(epoch, for: url) }
            let isOnDisk = writer?.commit(trailers: trailers, if: isCurrent) ?? false
            let limit = memory.bodyLimit(for: head)
            let body = gathered.flatMap { body in limit.map { body.count <= $0 } == true ? body : nil }
            // Whoever invalidates it now waits for the lock, and then removes it.
            guard isCurrent(), isOnDisk || body != nil else {
                if !isOnDisk { writer?.abandon() }
                countRefusal()
                return nil
            }
            counts.withLock { $0.stores += 1 }
            guard let body else {
                memory.displace(by: head, representation: representation)
                return found(head.key, representation, seen: nil)
            }
            let entry = MemoryEntry(
                StoredVariant(head: head, bodyLength: UInt64(body.count)), body: body,
                representation: representation, name: writer?.name)
            if !isOnDisk { removeDisplaced(by: head) }
            changing.leaving += memory.insert(entry, isOnDisk: isOnDisk)
            writeDown(&changing)
            return StoredResponse(entry)
        }
    }

    /// Replaces the head of a response by that of a 304's, in both tiers, the body staying (RFC 9111 §4.3.4).
    ///
    /// Nothing is stored where the response was removed or replaced meanwhile, or its URL invalidated since the epoch. It
    /// blocks on files.
    ///
    /// - Returns: the response with the new head, whatever became of what is stored.
    package func freshen(
        _ response: StoredResponse, to head: StoredHead, epoch: InvalidationLedger.Epoch
    ) -> StoredResponse {
        let key = response.head.key
        guard head.key == key else { return StoredResponse(response, head: head) }
        return changing.withLock { changing in
            writeDown(&changing)
            let isCurrent = { self.holds(epoch, for: key.url) }
            guard isCurrent() else { return StoredResponse(response, head: head) }
            var isOnDisk = false
            if let disk, let reader = response.reader ?? self.reader(key, response.representation) {
                isOnDisk = disk.updateHead(of: reader, to: head, if: isCurrent)
            }
            guard isCurrent() else { return StoredResponse(response, head: head) }
            let seen = noteChange(key.url)
            if let held = memory.entry(of: key, representation: response.representation),
                let updated = memory.updateHead(of: held.entry, to: head, isOnDisk: isOnDisk)
            {
                changing.leaving += updated.unwritten
                writeDown(&changing)
                return StoredResponse(updated.entry)
            }
            let found = isOnDisk ? self.found(key, response.representation, seen: seen) : nil
            return found ?? StoredResponse(response, head: head)
        }
    }

    /// Notes that something else is stored for a URL from now on. It has to be the last that a change does: what is found
    /// while it lasts may be what it removes, and must not move up behind it.
    @discardableResult
    func noteChange(_ url: String) -> InvalidationLedger.Epoch {
        changes.withLock { changes in
            changes.invalidate(url)
            return changes.epoch
        }
    }

    private func reader(_ key: CacheKey, _ representation: UInt64) -> EntryReader? {
        disk?.variants(of: key).first { $0.entry.generation == representation }
    }

    private func found(
        _ key: CacheKey, _ representation: UInt64, seen: InvalidationLedger.Epoch?
    ) -> StoredResponse? {
        let readers = disk?.variants(of: key) ?? []
        return readers.first { $0.entry.generation == representation }
            .map { StoredResponse($0, seen: seen, isLastOnDisk: readers.count == 1) }
    }

    /// Removes from disk what is replaced by a response that the disk has not taken, so that it does not come back when
    /// memory gives the new one up.
    private func removeDisplaced(by head: StoredHead) {
        guard let disk else { return }
        guard !head.selections.isEmpty else {
            disk.remove(head.key)
            return
        }
        let readers = disk.variants(of: head.key)
        let heads = readers.map(\.head)
        for index in VariantRule.displaced(by: head, in: heads, limit: EntryName.slotLimit) {
            disk.remove(readers[index])
        }
    }
}

/// Which URLs an unsafe request has made out of date, and when, for what cannot be found by its URL alone: what was stored for
/// other credentials, or in other partitions (RFC 9111 §4.4).
///
/// Bounded: of more URLs than ``limit`` those are forgotten that came first, half of them at once, and what others have of
/// these counts again. Times are the wall clock's: where that is set back, what is stored of such a URL is not used until it has
/// come that far again.
struct OutdatedURLs: Sendable {
    /// The most URLs.
    static let limit = 1024

    private var times: [String: WallTime] = [:]
    /// The URLs in the order in which they came first.
    private var order: [String] = []

    /// Notes that what was asked for up to now is out of date.
    mutating func note(_ url: String, at now: WallTime) {
        if times.updateValue(now, forKey: url) == nil { order.append(url) }
        guard order.count > OutdatedURLs.limit else { return }
        for url in order.prefix(OutdatedURLs.limit / 2) { times[url] = nil }
        order.removeFirst(OutdatedURLs.limit / 2)
    }

    /// Forgets all of them: nothing is stored any more.
    mutating func removeAll() {
        times = [:]
        order = []
    }

    /// The moment at which a request is sent: behind that at which its URL went out of date, also within its millisecond.
    func requestTime(for url: String, now: WallTime) -> WallTime {
        guard !times.isEmpty, times[url] == now, now.milliseconds < .max else { return now }
        return WallTime(milliseconds: now.milliseconds + 1)
    }

    /// Whether a response was asked for before its URL went out of date. One that another process asked for in the same
    /// millisecond counts as older, which costs a request at most.
    func cover(_ head: StoredHead) -> Bool {
        guard !times.isEmpty, let time = times[head.key.url] else { return false }
        return head.requestTime <= time
    }
}
