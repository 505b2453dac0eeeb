package import MartletTransport

/// The state machine that decides when to query the kernel for links, addresses and routes, and which responses to use.
/// Notifications, which only cause queries, arrive in bursts. So the query waits for a quiet period, but at most a
/// second after the first notification. An interface that changes all the time is queried once a second.
struct NetworkMonitorMachine: WatchMachine {
    /// The time without notifications before a query.
    private static let quiet = Duration.milliseconds(200)
    /// The maximum delay of a query after the first notification.
    private static let maximumDelay = Duration.seconds(1)
    /// The delay of another query after a failed one.
    private static let retry = Duration.seconds(1)
    /// The number of consecutive interrupted responses that are ignored; the next one is used.
    private static let interruptionLimit = 4
    /// The number of consecutive failures after which the snapshot is unknown.
    private static let failureLimit = 3

    enum QueryOutcome: Sendable {
        case seen(NetworkSnapshot)
        /// The complete response, but something changed in the meantime.
        case interrupted(NetworkSnapshot)
        /// The kernel never gives this process such information.
        case denied
        /// The query failed, or its response could not be read.
        case failed
    }

    private enum State: Sendable {
        case resting
        /// Queries at `due`, which further notifications may delay until `latest`.
        case settling(due: MonotonicTime, latest: MonotonicTime)
        /// A query is running; with the times of the first and last notification since its start.
        case querying(first: MonotonicTime?, last: MonotonicTime?)
    }

    /// The current snapshot; `nil` before the first response.
    private(set) var view: NetworkSnapshot?
    // The creator of a machine starts the first query.
    private var state = State.querying(first: nil, last: nil)
    private var interruptionCount = 0
    private var failureCount = 0

    /// The time of the next ``timePassed(now:)``; `nil` for none before another event.
    var nextEvent: MonotonicTime? {
        guard case .settling(let due, _) = state else { return nil }
        return due
    }

    mutating func eventReceived(now: MonotonicTime) {
        switch state {
        case .resting: settle(now, latest: now.advanced(by: NetworkMonitorMachine.maximumDelay))
        case .settling(_, let latest): settle(now, latest: latest)
        // The response may have been created before or after the change.
        case .querying(let first, _): state = .querying(first: first ?? now, last: now)
        }
    }

    private mutating func settle(_ last: MonotonicTime, latest: MonotonicTime) {
        state = .settling(due: min(last.advanced(by: NetworkMonitorMachine.quiet), latest), latest: latest)
    }

    /// Handles the passing of time.
    /// - Returns: Whether to query the kernel now.
    mutating func timePassed(now: MonotonicTime) -> Bool {
        guard case .settling(let due, _) = state, due <= now else { return false }
        state = .querying(first: nil, last: nil)
        return true
    }

    /// Handles the end of a query.
    mutating func queryFinished(_ outcome: QueryOutcome, now: MonotonicTime) {
        guard case .querying(let first, let last) = state else { return }
        state = .resting
        if let first, let last { settle(last, latest: first.advanced(by: NetworkMonitorMachine.maximumDelay)) }
        switch outcome {
        case .seen(let view):
            (interruptionCount, failureCount) = (0, 0)
            self.view = view
        case .interrupted(let view):
            failureCount = 0
            interruptionCount += 1
            if interruptionCount > NetworkMonitorMachine.interruptionLimit {
                // The snapshot may be wrong, so another query follows.
                interruptionCount = 0
                self.view = view
            }
            retry(now.advanced(by: NetworkMonitorMachine.quiet))
        case .denied:
            state = .resting
            view = .unknown
        case .failed:
            failureCount += 1
            if view == nil || failureCount >= NetworkMonitorMachine.failureLimit { view = .unknown }
            retry(now.advanced(by: NetworkMonitorMachine.retry))
        }
    }

    /// Schedules another query, unless a notification causes an earlier one.
    private mutating func retry(_ due: MonotonicTime) {
        if case .settling(let earlier, _) = state, earlier <= due { return }
        state = .settling(due: due, latest: due)
    }
}

/// The state of the network at one moment.
package struct NetworkSnapshot: Hashable, Sendable {
    package var path: NetworkPath
    /// All addresses of this machine, including those of links that are down; `nil` if they are not known.
    package var addresses: Set<IPAddress>?
    /// The snapshot if the kernel gives no information.
    static let unknown = NetworkSnapshot(path: .unknown)
}
