import MartletTransport
import Synchronization

/// The purpose for which a call holds a connection.
enum ConnectionUse: UInt8, CaseIterable, Sendable {
    /// It sends its request.
    case sending
    /// Its request is sent.
    case awaitingResponse
    /// It receives a body.
    case receiving
    /// The body is handed to a closure, which has not returned.
    case closure

    /// The calls in that state, in words that follow their number.
    var words: String {
        switch self {
        case .sending: "sending"
        case .awaitingResponse: "waiting for a response"
        case .receiving: "receiving"
        case .closure: "by streams whose closure has not returned"
        }
    }
}

/// The reason why a request waits for a connection: the limit that is reached, and what the connections are used for.
package final class PoolShortage: Sendable, CustomStringConvertible {
    /// The host whose limit is reached, as `host:port`; `nil` where it is the limit of all hosts together.
    package let host: String?
    /// The limit.
    package let limit: Int
    /// How many connections are open or being opened.
    package let count: Int
    /// How many are in use, by purpose.
    private let uses: [ConnectionUse: Int]
    /// How many are being opened.
    private let dialling: Int

    init(host: String?, limit: Int, count: Int, uses: [ConnectionUse: Int], dialling: Int) {
        self.host = host
        self.limit = limit
        self.count = count
        self.uses = uses
        self.dialling = dialling
    }

    /// For example: `16 of 16 connections to api.example.com:443 are in use: 12 by streams whose closure has not returned,
    /// 4 receiving; raise connectionsPerHost, or let calls end sooner`.
    package var description: String {
        var parts = ConnectionUse.allCases.reversed().compactMap { use in
            uses[use].map { "\($0) \(use.words)" }
        }
        if dialling > 0 { parts.append("\(dialling) being opened") }
        let target = host.map { "connections to \($0)" } ?? "connections to all hosts together"
        let setting = host == nil ? "totalConnections" : "connectionsPerHost"
        return "\(count) of \(limit) \(target) are in use: \(parts.joined(separator: ", ")); "
            + "raise \(setting), or let calls end sooner"
    }
}

extension PoolMachine {
    /// The limit that keeps a waiting request from a connection of its own.
    struct Limit {
        /// The host whose limit it is; `nil` for the limit of all hosts together.
        var host: Key?
        var limit: Int
        /// The connections in use that count against it.
        var leased: [PoolConnectionID]
        var dialling: Int
    }

    /// The limit that a waiting request has met; `nil` if it does not wait, or a connection is being opened for it.
    func limit(of waiter: PoolWaiterID) -> Limit? {
        guard waiters.holds(waiter.index, waiter.generation),
            waiters.records[waiter.index].connection == PoolIndex.none,
            waiters.records[waiter.index].dial == PoolIndex.none
        else { return nil }
        let host = waiters.records[waiter.index].host
        let record = hosts.records[host]
        let isOfHost = record.counted >= record.limit
        guard isOfHost || countedCount >= amounts.total else { return nil }
        let leased = connections.records.indices.filter {
            connections.records[$0].state == .leased && (!isOfHost || connections.records[$0].host == host)
        }
        return Limit(
            host: isOfHost ? record.key : nil, limit: isOfHost ? record.limit : amounts.total,
            leased: leased.map(name), dialling: isOfHost ? record.dialling : diallingCount)
    }
}

extension ConnectionPool.State {
    /// The reason why a request waits; `nil` if it does not, or a connection is being opened for it.
    func shortage(of waiter: PoolWaiterID) -> PoolShortage? {
        guard let limit = machine.limit(of: waiter) else { return nil }
        var uses: [ConnectionUse: Int] = [:]
        for id in limit.leased {
            guard let connection = connections[id.index] else { continue }
            uses[connection.use, default: 0] += 1
        }
        return PoolShortage(
            host: limit.host.map { "\($0.destination.host):\($0.destination.port)" }, limit: limit.limit,
            count: limit.leased.count + limit.dialling, uses: uses, dialling: limit.dialling)
    }
}

extension ConnectionPool {
    /// A connection that is being opened.
    struct EnclosingDial: Sendable {
        let pool: ObjectIdentifier
        let id: PoolConnectionID
    }

    /// The connections that the running task opens, the outermost first: resolvers and decisions about trust may make
    /// calls.
    @TaskLocal static var enclosingDials: [EnclosingDial] = []

    /// The time after which a wait for a connection is reported.
    package static let longWait = Duration.seconds(10)

    /// Requests that have waited for more than ``longWait``, for one reason.
    package struct LongWait: Sendable {
        /// How many they are.
        package var requestCount: Int
        package var shortage: PoolShortage
    }

    /// The reason why a request waits; `nil` if it does not, or a connection is being opened for it.
    func shortage(of waiter: PoolWaiterID) -> PoolShortage? { state.withLock { $0.shortage(of: waiter) } }

    /// Notes that a waiting request was made by calls that hold connections.
    func nest(_ waiter: PoolWaiterID, in holders: [PoolConnectionID]) {
        let work = state.withLock { state in collect(state.machine.nest(waiter, in: holders), &state) }
        run(work)
    }

    /// Reports the requests that have waited for long and were not reported yet, at most once in that time: a flood of
    /// requests is one report.
    /// - Returns: When to call this again.
    func longWaitTimerFired(_ id: PoolWaiterID, now: MonotonicTime) -> MonotonicTime? {
        guard let onLongWait else { return nil }
        let (next, reports) = state.withLock { state -> (MonotonicTime?, [LongWait]) in
            guard let waiter = state.waiters[id], !waiter.isReported.load(ordering: .relaxed) else {
                return (nil, [])
            }
            if let last = state.longWaitsReported {
                let next = last.advanced(by: ConnectionPool.longWait)
                if now < next { return (next, []) }
            }
            var reports: [String?: LongWait] = [:]
            for (id, waiter) in state.waiters
            where now.since(waiter.start) >= ConnectionPool.longWait
                && !waiter.isReported.load(ordering: .relaxed)
            {
                guard let limit = state.machine.limit(of: id) else { continue }
                waiter.isReported.store(true, ordering: .relaxed)
                let host = limit.host.map { "\($0.destination.host):\($0.destination.port)" }
                if reports[host] != nil {
                    reports[host]?.requestCount += 1
                } else if let shortage = state.shortage(of: id) {
                    reports[host] = LongWait(requestCount: 1, shortage: shortage)
                }
            }
            guard !reports.isEmpty else { return (nil, []) }
            state.longWaitsReported = now
            return (nil, Array(reports.values))
        }
        // The program's logger must not hold up the event loop.
        if !reports.isEmpty { Task { onLongWait(reports) } }
        return next
    }
}
