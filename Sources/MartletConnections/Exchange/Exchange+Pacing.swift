import MartletTransport
import Synchronization

extension Exchange {
    /// Whether a direction is held to a limit now.
    package func isHeldBack(_ direction: TransferDirection) -> Bool {
        pace?.isActive(direction) ?? false
    }

    /// Waits until some of the body may be read; the idle clock stands meanwhile, the total clock goes on.
    ///
    /// What is granted and not read then is given back by ``giveBack(_:)``.
    /// - Returns: How many of the bytes wanted may be read now, at least 1.
    package func allowance(of wanted: Int) async throws(ExchangeError) -> Int {
        guard let pace, isHeldBack(.down) else { return wanted }
        let turn = BandwidthGovernor.Wait()
        let isCancelled = state.withLock { state in
            state.turn = turn
            return state.isCancelled
        }
        if isCancelled { throw failure(.cancelled) }
        let outcome = await pace.governor.take(
            wanted, .down, in: pace.lane, by: turn, until: clocks.totalDeadline)
        state.withLock { $0.turn = nil }
        switch outcome {
        case .value(let count): return count
        case .timedOut: throw failure(.timedOut(.total))
        case .interrupted: throw failure(.cancelled)
        }
    }

    /// Gives back what was granted by ``allowance(of:)`` and not read.
    package func giveBack(_ count: Int) {
        pace?.governor.giveBack(count, .down, in: pace?.lane ?? BandwidthLane())
    }

    /// Whether the transfer is paused.
    package var isPaused: Bool { gate?.isPaused ?? false }
}
