import FoundationEssentials
import MartletCache

extension WallTime {
    /// The present.
    package static var now: WallTime { WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)) }
}
