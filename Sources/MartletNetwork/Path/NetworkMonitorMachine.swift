package import MartletTransport

/// Decides when the kernel is asked for links, addresses and routes, and what is believed of its answers.
///
/// News are only a reason to ask. They come in bursts, so it is asked when they have been quiet for a while, but not later
/// than a second after the first of them: an interface that never comes to rest is looked at once a second.
package struct NetworkMonitorMachine: Sendable {
    /// How long news must be quiet before it is asked.
    package static let quiet = Duration.milliseconds(200)
    /// How long after the first of them it is asked at the latest.
    package static let patience = Duration.seconds(1)
    /// After how long it is asked again where that failed.
    package static let retry = Duration.seconds(1)
    /// How many answers in a row that something changed under are not believed; the next one is, for want of a better.
    package static let interruptionLimit = 4
    /// How many failures in a row leave what is believed as it was.
    package static let failureLimit = 3

    /// How a look ended.
    package enum Look: Sendable {
        /// The kernel has said all of it.
        case seen(NetworkView)
        /// It has, and something changed meanwhile.
        case interrupted(NetworkView)
        /// It does not say such things to this process, and never will.
        case refused
        /// It could not be asked, or its answer could not be read.
        case failed
    }

    private enum State: Sendable {
        /// Nothing is to be done before there are news.
        case resting
        /// It will be asked at `due`, which may yet move as far as `latest`.
        case settling(due: MonotonicTime, latest: MonotonicTime)
        /// It is being asked; since then there have been news, first and last.
        case looking(first: MonotonicTime?, last: MonotonicTime?)
    }

    /// What is believed; `nil` before the first answer.
    package private(set) var view: NetworkView?
    private var state = State.looking(first: nil, last: nil)
    private var interruptionCount = 0
    private var failureCount = 0

    /// A machine that is being told for the first time: whoever makes it asks at once.
    package init() {}

    /// When ``timePassed(now:)`` has to be called; `nil` for not before something else happens.
    package var nextEvent: MonotonicTime? {
        guard case .settling(let due, _) = state else { return nil }
        return due
    }

    /// There are news.
    package mutating func news(now: MonotonicTime) {
        switch state {
        case .resting: settle(first: now, last: now)
        case .settling(_, let latest):
            state = .settling(due: min(now.advanced(by: NetworkMonitorMachine.quiet), latest), latest: latest)
        case .looking(let first, _):
            // The answer may have been put together before or after.
            state = .looking(first: first ?? now, last: now)
        }
    }

    private mutating func settle(first: MonotonicTime, last: MonotonicTime) {
        let latest = first.advanced(by: NetworkMonitorMachine.patience)
        state = .settling(due: min(last.advanced(by: NetworkMonitorMachine.quiet), latest), latest: latest)
    }

    /// Time has passed.
    /// - Returns: Whether the kernel is to be asked now.
    package mutating func timePassed(now: MonotonicTime) -> Bool {
        guard case .settling(let due, _) = state, due <= now else { return false }
        state = .looking(first: nil, last: nil)
        return true
    }

    /// It has been asked.
    package mutating func looked(_ look: Look, now: MonotonicTime) {
        guard case .looking(let first, let last) = state else { return }
        state = .resting
        if let first, let last { settle(first: first, last: last) }
        switch look {
        case .seen(let view):
            (interruptionCount, failureCount) = (0, 0)
            self.view = view
        case .interrupted(let view):
            failureCount = 0
            interruptionCount += 1
            if interruptionCount > NetworkMonitorMachine.interruptionLimit {
                // What it says may be wrong, so it is asked again all the same.
                interruptionCount = 0
                self.view = view
            }
            again(now.advanced(by: NetworkMonitorMachine.quiet))
        case .refused:
            state = .resting
            view = .unknown
        case .failed:
            failureCount += 1
            if view == nil || failureCount >= NetworkMonitorMachine.failureLimit { view = .unknown }
            again(now.advanced(by: NetworkMonitorMachine.retry))
        }
    }

    /// Asks again at an instant, unless news have it done earlier.
    private mutating func again(_ due: MonotonicTime) {
        if case .settling(let earlier, _) = state, earlier <= due { return }
        state = .settling(due: due, latest: due)
    }
}
