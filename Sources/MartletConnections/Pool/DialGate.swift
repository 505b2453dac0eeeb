import DequeModule

/// Keeps thousands of connections from being opened in the same moment.
///
/// While a connection is opened it takes several times the memory that it takes later, and what is opened together with ten
/// thousand others finds the server's line full and is asked for again a second later. So at most ``limit`` dials are on
/// their way; but each counts for no more than ``interval``, so that hosts which are far away, or dead, hold up nobody: ten
/// thousand dials begin each second, whatever becomes of them.
///
/// It only counts and keeps; whoever asks it begins the dials.
package struct DialGate<Dial> {
    /// Nanoseconds of the pool's clock.
    package typealias Instant = UInt64

    /// How many dials may be on their way.
    package static var limit: Int { 256 }
    /// How long one counts, in nanoseconds: 25 ms.
    package static var interval: UInt64 { 25_000_000 }

    private struct Passage {
        var id: PoolConnectionID
        var until: Instant
    }

    /// Those that count.
    private var counting: Set<PoolConnectionID> = []
    /// Those that were let through, the oldest first; some have ended since.
    private var passages = Deque<Passage>()
    private var waiting: [PoolConnectionID: Dial] = [:]
    /// Those that wait, the first first; some were withdrawn since.
    private var line = Deque<PoolConnectionID>()

    /// A gate that nothing has passed.
    package init() {}

    /// How many wait.
    package var waitingCount: Int { waiting.count }

    /// When one that waits may begin, unless another ends before; `nil` where none waits.
    package var nextDeadline: Instant? { waiting.isEmpty ? nil : passages.first?.until }

    /// Asks for a dial to begin.
    /// - Returns: The dial, where it may begin now; else `nil`, and it is kept.
    package mutating func admit(_ id: PoolConnectionID, _ dial: Dial, now: Instant) -> Dial? {
        forget(now)
        guard waiting.isEmpty, counting.count < DialGate.limit else {
            waiting[id] = dial
            line.append(id)
            return nil
        }
        pass(id, now)
        return dial
    }

    /// A dial that waits is not wanted any more.
    /// - Returns: The dial; `nil` where it does not wait.
    package mutating func withdraw(_ id: PoolConnectionID) -> Dial? { waiting.removeValue(forKey: id) }

    /// A dial has ended, one way or the other.
    package mutating func ended(_ id: PoolConnectionID) { counting.remove(id) }

    /// Lets those through that may begin now.
    package mutating func next(now: Instant) -> [Dial] {
        forget(now)
        var dials: [Dial] = []
        while counting.count < DialGate.limit, let id = line.popFirst() {
            guard let dial = waiting.removeValue(forKey: id) else { continue }
            pass(id, now)
            dials.append(dial)
        }
        return dials
    }

    private mutating func pass(_ id: PoolConnectionID, _ now: Instant) {
        let (until, overflows) = now.addingReportingOverflow(DialGate.interval)
        counting.insert(id)
        passages.append(Passage(id: id, until: overflows ? .max : until))
    }

    /// Forgets those that have ended, or have counted for long enough.
    private mutating func forget(_ now: Instant) {
        while let passage = passages.first, passage.until <= now || !counting.contains(passage.id) {
            counting.remove(passage.id)
            _ = passages.popFirst()
        }
    }
}
