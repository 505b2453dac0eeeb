import DequeModule
import MartletTransport

extension ReplayMachine {
    /// What waits for each other, and what it waits for.
    struct Lane: Sendable {
        /// What a lane does.
        enum State: Hashable, Sendable {
            /// Its first request may begin.
            case ready
            /// Its first request is under way, or settling.
            case busy(OfflineID)
            /// It waits; the number tells this wait from others.
            case waiting(OfflinePostponement.Reason, until: MonotonicTime, UInt64)
        }
        /// What it has to send, in order; never empty, but for a moment.
        var ids = Deque<OfflineID>()
        var state: State
        /// How many tries failed in a row.
        var failures = 0

        /// Adds a request at its place.
        /// - Returns: Whether it is the first.
        mutating func insert(_ id: OfflineID) -> Bool {
            // By number: nearly always at the end. One that is under way stays in front.
            var first = ids.startIndex
            if case .busy = state { first = min(first + 1, ids.endIndex) }
            var place = ids.endIndex
            while place > first, ids[place - 1] > id { place -= 1 }
            ids.insert(id, at: place)
            return ids.count == 1
        }

        /// Takes a request out.
        mutating func remove(_ id: OfflineID) {
            if ids.first == id {
                ids.removeFirst()
                return
            }
            // They are in order, but for one in front that was under way when another came that belongs before it.
            var (low, high) = (ids.startIndex, ids.endIndex)
            while low < high {
                let middle = (low + high) / 2
                if ids[middle] < id { low = middle + 1 } else { high = middle }
            }
            if low < ids.endIndex, ids[low] == id {
                ids.remove(at: low)
            } else if let place = ids.firstIndex(of: id) {
                ids.remove(at: place)
            }
        }
    }
}
