import Synchronization

/// Stored responses behind one door: memory before the disk, either of which may be missing.
///
/// What is stored goes to disk, and to memory where it is small; what the disk does not take stays in memory alone, and is
/// written down when memory gives it up. What fails in one tier is the other's: nothing fails because a disk does.
///
/// Whatever changes both tiers does so under one lock, so that they never hold different bodies of one response. Looking up
/// takes no part in that: it may find what is being replaced, and never what was invalidated before it began.
package final class ResponseStore: Sendable {
    /// What only whoever changes both tiers may touch.
    struct Changing: Sendable {
        /// Given up by memory and not on disk yet.
        var leaving: [MemoryEntry] = []
    }

    struct Counts: Sendable {
        var stores = 0
        var refusals = 0
    }

    let memory: MemoryCache
    let disk: DiskCache?
    let ends: RepresentationEnds
    /// Held while both tiers are changed, files included: by workers, and by others only where it is free. Taken before the
    /// locks of the tiers, never within them.
    let changing = Mutex(Changing())
    /// Which URLs are out of date since when. Asked and written by anybody, also under the locks of the tiers.
    let ledger = Mutex(InvalidationLedger())
    /// For which URLs something else is stored since when, so that what was looked up before does not take its place.
    let changes = Mutex(InvalidationLedger(limit: 4096))
    let counts = Mutex(Counts())
    /// Asked at each look, and written by unsafe requests.
    let outdated = Mutex(OutdatedURLs())

    /// A store of two tiers.
    ///
    /// - Parameters:
    ///   - memoryLimit: bytes that responses in memory may cost; 0 for no such tier.
    ///   - disk: the second tier; `nil` for none.
    ///   - order: what goes first when memory has no room.
    package init(memoryLimit: Int, disk: DiskCache?, order: EvictionOrder = .leastRecentlyUsed) {
        let ends = RepresentationEnds()
        memory = MemoryCache(limit: memoryLimit, order: order, hasDisk: disk != nil) { entry in
            ends.note(entry.head.key, entry.representation)
        }
        self.ends = ends
        self.disk = disk
    }

    /// Whether there is a second tier.
    package var hasDisk: Bool { disk != nil }

    /// Whether another process keeps the second tier locked: no response may wait for what is stored or removed. It takes no
    /// time.
    package var isHeldUp: Bool { disk?.lock.isHeldUp ?? false }

    /// The longest body that is stored in any tier, in bytes.
    package var bodyLimit: UInt64 { max(disk?.bodyLimit ?? 0, UInt64(memoryBodyLimit)) }

    /// The longest body that is kept in memory, in bytes: an eighth of the limit, less 512 and what the head costs.
    package var memoryBodyLimit: Int { memory.bodyLimit }

    /// What both tiers hold and were asked.
    package var statistics: TierStatistics {
        let counts = counts.withLock { $0 }
        return TierStatistics(
            memory: memory.statistics, disk: disk?.statistics, stores: counts.stores,
            refusals: counts.refusals)
    }

    /// Has a closure called with each body that is replaced, removed or invalidated by this process, and not with what merely
    /// made room. It is called at once, under the locks of the tiers: it must neither take long nor call the store.
    package func whenRepresentationEnds(_ body: @escaping @Sendable (CacheKey, UInt64) -> Void) {
        ends.add(body)
        disk?.whenBodyEnds { [ends] key, representation in ends.note(key, representation) }
    }

    // MARK: Epochs

    /// The present epoch, for a request that is about to be sent.
    package var epoch: InvalidationLedger.Epoch { ledger.withLock { $0.epoch } }

    /// The moment at which a request for a URL that is sent now counts as sent: what it brings is newer than what was out of
    /// date before, however short a time ago.
    package func requestTime(for url: String, now: WallTime) -> WallTime {
        outdated.withLock { $0.requestTime(for: url, now: now) }
    }

    /// Whether a response to a request that was sent at an epoch may still be stored.
    package func holds(_ epoch: InvalidationLedger.Epoch, for url: String) -> Bool {
        ledger.withLock { $0.holds(epoch, for: url) }
    }
}
