import MartletURL
package import MartletCore
import MartletHosts
import MartletTransport
import Synchronization

/// Places for connections: so many for each host and port, first come, first served.
///
/// What it counts is what downloads may have open, so a place is taken before a connection is asked for, and given back when
/// that is closed or free for others.
package final class HostConnectionSlots: ConnectionSlots {
    private struct Host: Hashable {
        var name: String
        var port: Int

        init(_ origin: HTTPURL.Origin) {
            name = origin.host
            port = origin.port
        }
    }

    private struct Waiting {
        var number: UInt64
        var waiter: Waiter<Void>
    }

    private struct Places {
        var count = 0
        /// Those that wait, in the order in which they came.
        var line: [Waiting] = []
    }

    private struct State {
        var limit: Int
        var hosts: [Host: Places] = [:]
        /// Those that were given a place and have not noticed yet.
        var served: Set<UInt64> = []
        var lastNumber: UInt64 = 0

        /// Gives free places to those that wait.
        mutating func serve(_ host: Host) -> [Waiter<Void>] {
            guard var places = hosts[host] else { return [] }
            var woken: [Waiter<Void>] = []
            while places.count < limit, woken.count < places.line.count {
                let next = places.line[woken.count]
                places.count += 1
                served.insert(next.number)
                woken.append(next.waiter)
            }
            places.line.removeFirst(woken.count)
            hosts[host] = places.count == 0 && places.line.isEmpty ? nil : places
            return woken
        }
    }

    /// Guards the above: all downloads take places and give them back.
    private let state: Mutex<State>

    /// Places for so many connections to each host, at least 1.
    package init(limit: Int) { state = Mutex(State(limit: max(1, limit))) }

    /// Changes how many connections there may be to each host. Those that are open stay; where there is room now, those that
    /// wait get it at once.
    package func setLimit(_ limit: Int) {
        let woken = state.withLock { state -> [Waiter<Void>] in
            state.limit = max(1, limit)
            return Array(state.hosts.keys).flatMap { state.serve($0) }
        }
        for waiter in woken { waiter.resume(returning: ()) }
    }

    /// Waits for a place for one connection to an origin, first come, first served, and takes it.
    /// - Throws: `CancellationError` when the task is cancelled, which leaves no place taken.
    package func take(_ origin: HTTPURL.Origin) async throws(CancellationError) {
        let host = Host(origin)
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        await withTaskCancellationHandler {
            await suspend { (waiter: Waiter<Void>) in
                let isSettled = state.withLock { state -> Bool in
                    // Whoever is cancelled before this is not in line yet, and was not found there.
                    if Task.isCancelled { return true }
                    if state.hosts[host]?.line.isEmpty ?? true, state.hosts[host]?.count ?? 0 < state.limit {
                        state.hosts[host, default: Places()].count += 1
                        state.served.insert(number)
                        return true
                    }
                    state.hosts[host, default: Places()].line.append(Waiting(number: number, waiter: waiter))
                    return false
                }
                if isSettled { waiter.resume(returning: ()) }
            }
        } onCancel: {
            let waiter = state.withLock { state -> Waiter<Void>? in
                guard let index = state.hosts[host]?.line.firstIndex(where: { $0.number == number }) else {
                    return nil
                }
                let waiter = state.hosts[host]?.line.remove(at: index).waiter
                if let places = state.hosts[host], places.count == 0, places.line.isEmpty {
                    state.hosts[host] = nil
                }
                return waiter
            }
            waiter?.resume(returning: ())
        }
        guard state.withLock({ $0.served.remove(number) }) != nil else { throw CancellationError() }
    }

    /// Takes a place where one is free and nobody waits for it.
    package func takeAtOnce(_ origin: HTTPURL.Origin) -> Bool {
        let host = Host(origin)
        return state.withLock { state in
            let places = state.hosts[host] ?? Places()
            guard places.line.isEmpty, places.count < state.limit else { return false }
            state.hosts[host, default: Places()].count += 1
            return true
        }
    }

    /// Gives a place back. One that was not taken is not counted.
    package func giveBack(_ origin: HTTPURL.Origin) {
        let host = Host(origin)
        let woken = state.withLock { state -> [Waiter<Void>] in
            guard let count = state.hosts[host]?.count, count > 0 else { return [] }
            state.hosts[host]?.count = count - 1
            return state.serve(host)
        }
        for waiter in woken { waiter.resume(returning: ()) }
    }

    /// How many places are taken with a host.
    package func count(_ origin: HTTPURL.Origin) -> Int {
        state.withLock { $0.hosts[Host(origin)]?.count ?? 0 }
    }

    /// How many wait for a place, of all hosts.
    package var waitingCount: Int {
        state.withLock { $0.hosts.values.reduce(0) { $0 + $1.line.count } }
    }

    /// How many hosts are known: those of which a place is taken.
    package var hostCount: Int { state.withLock { $0.hosts.count } }
}

/// How many connections downloads may have to one origin, all together.
package protocol ConnectionSlots: Sendable {
    /// Waits for a place for one connection to an origin, first come, first served, and takes it.
    /// - Throws: `CancellationError` when the task is cancelled, which leaves no place taken.
    func take(_ origin: HTTPURL.Origin) async throws(CancellationError)
    /// Takes a place where one is free and nobody waits for it.
    func takeAtOnce(_ origin: HTTPURL.Origin) -> Bool
    /// Gives a place back.
    func giveBack(_ origin: HTTPURL.Origin)
}

/// As many connections as the session has.
struct FreeSlots: ConnectionSlots {
    func take(_ origin: HTTPURL.Origin) async throws(CancellationError) {}

    func takeAtOnce(_ origin: HTTPURL.Origin) -> Bool { true }

    func giveBack(_ origin: HTTPURL.Origin) {}
}
