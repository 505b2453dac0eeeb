import FoundationEssentials
import MartletWire
import Synchronization

/// The value of the Date field, written anew once a second.
final class OriginClock: Sendable {
    private let last = Mutex((second: Int64.min, text: ""))

    init() {}

    /// The present, as HTTP writes it.
    var date: String {
        let second = Int64(Date().timeIntervalSince1970.rounded(.down))
        return last.withLock { last in
            if last.second != second { last = (second, HTTPDate(secondsSinceEpoch: second).text) }
            return last.text
        }
    }
}
