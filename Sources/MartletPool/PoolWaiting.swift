import MartletTransport
import Synchronization

/// The purpose for which a call holds a connection.
enum ConnectionUse: UInt8, CaseIterable, Sendable {
    /// The call sends its request.
    case sending
    /// The request is sent, and the call waits for the response.
    case awaitingResponse
    /// The call receives a body.
    case receiving
    /// The body was passed to a closure, which has not returned.
    case closure
    /// The program holds the body, and has not read it to its end.
    case held

    /// The text that follows the number of calls with this use.
    var words: String {
        switch self {
        case .sending: "sending"
        case .awaitingResponse: "waiting for a response"
        case .receiving: "receiving"
        case .closure: "by streams whose closure has not returned"
        case .held: "by opened responses whose body is not read to its end"
        }
    }
}

extension PoolMachine<ConnectionKey> {
    /// The limit that prevents a dial for a waiting request.
    struct Limit {
        /// The host of the limit, as `host:port`; `nil` for the limit of all hosts together.
        var host: String?
        var limit: Int
        /// The connections in use, including exempt ones, which do not count against the limit.
        var leased: [PoolConnectionID]
        var dialing: Int
    }

    /// The limit that blocks a waiting request; `nil` if it does not wait, or a connection is being opened for it.
    fileprivate func limit(of waiter: PoolWaiterID) -> Limit? {
        guard let index = waiters.index(of: waiter), waiters.records[index].isWithoutDial else { return nil }
        let host = waiters.records[index].host
        let record = hosts.records[host]
        let isHostLimit = record.counted >= record.limit
        guard isHostLimit || countedCount >= amounts.total else { return nil }
        let leased = connections.records.indices.filter {
            connections.records[$0].state == .leased && (!isHostLimit || connections.records[$0].host == host)
        }
        let destination = isHostLimit ? record.key?.destination : nil
        return Limit(
            host: destination.map { "\($0.host):\($0.port)" }, limit: isHostLimit ? record.limit : amounts.total,
            leased: leased.map(connections.name), dialing: isHostLimit ? record.dialing : dialingCount)
    }
}

extension ConnectionPool.State {
    /// The reason why a request waits; `nil` if it does not, or a connection is being opened for it.
    func shortage(of waiter: PoolWaiterID) -> String? { machine.limit(of: waiter).map { shortage($0) } }

    /// The text of a shortage, for example: `16 of 16 connections to api.example.com:443 are in use: 12 by streams
    /// whose closure has not returned, 4 receiving; raise connectionsPerHost, or let calls end sooner`.
    fileprivate func shortage(_ limit: PoolMachine<ConnectionKey>.Limit) -> String {
        let used = limit.leased.compactMap { connections[$0.index]?.use }
        var parts = ConnectionUse.allCases.reversed().compactMap { use in
            let count = used.count { $0 == use }
            return count > 0 ? "\(count) \(use.words)" : nil
        }
        if limit.dialing > 0 { parts.append("\(limit.dialing) being opened") }
        let (target, setting) =
            limit.host.map { ("connections to \($0)", "connectionsPerHost") } ?? (
                "connections to all hosts together", "totalConnections"
            )
        let count = limit.leased.count + limit.dialing
        let amount =
            count > limit.limit
            ? "\(count) \(target) are in use, above the limit of \(limit.limit)"
                + " (lowered, or exceeded while code of the program runs)"
            : "\(count) of \(limit.limit) \(target) are in use"
        return "\(amount): \(parts.joined(separator: ", ")); raise \(setting), or let calls end sooner"
    }
}

extension ConnectionPool {
    /// The time after which a wait for a connection is reported.
    package static let longWait = Duration.seconds(10)

    /// A report on requests that have waited for more than ``longWait``, for one reason.
    package struct LongWait: Sendable {
        package var requestCount: Int
        /// The limit that is reached, and the use of the connections.
        package var shortage: String
    }

    /// Reports the requests that have waited for ``longWait`` and were not reported yet, at most once in that time.
    /// - Returns: The time of the next call.
    func longWaitTimerFired(_ id: PoolWaiterID, now: MonotonicTime) -> MonotonicTime? {
        guard let onLongWait else { return nil }
        let (next, reports) = state.withLock { state -> (MonotonicTime?, [LongWait]) in
            guard state.waiters[id]?.isReported == false else { return (nil, []) }
            if let next = state.longWaitsReported?.advanced(by: ConnectionPool.longWait), now < next {
                return (next, [])
            }
            var reports: [String?: LongWait] = [:]
            for (id, waiting) in state.waiters
            where now.since(waiting.waiter.start) >= ConnectionPool.longWait && !waiting.isReported {
                guard let limit = state.machine.limit(of: id) else { continue }
                state.waiters[id]?.isReported = true
                reports[limit.host, default: LongWait(requestCount: 0, shortage: state.shortage(limit))].requestCount +=
                    1
            }
            guard !reports.isEmpty else { return (nil, []) }
            state.longWaitsReported = now
            return (nil, Array(reports.values))
        }
        // In a task, because the program's logger must not block the event loop.
        if !reports.isEmpty { Task { onLongWait(reports) } }
        return next
    }
}
