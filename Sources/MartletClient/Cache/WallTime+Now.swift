import FoundationEssentials
import MartletCache
import MartletTransport

extension WallTime {
    /// The present, by the clock of the process's caches: see ``SteadyWallClock``.
    package static var now: WallTime { SteadyWallClock.ofProcess.time(at: .sinceBoot()) }
}
