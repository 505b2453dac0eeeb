package import MartletTransport
import Synchronization

// Connections whose local address is lost.
extension ConnectionPool {
    /// Sets the current addresses of this machine. Idle connections from a lost address are closed. Connections in use
    /// fail immediately: no more bytes can arrive, and reads would only end with a timeout.
    package func localAddresses(are addresses: Set<IPAddress>) {
        let (works, busy) = state.withLock { state -> ([Work], [HTTP1Connection]) in
            guard state.addresses.update(addresses) else { return ([], []) }
            var works: [Work] = []
            var busy: [HTTP1Connection] = []
            for (index, connection) in state.connections.enumerated() {
                guard let connection, state.addresses.isLost(connection.stream.information.localAddress) else {
                    continue
                }
                if let id = state.machine.idleConnection(at: index) {
                    if let work = collect(state.machine.connectionDied(id), &state) { works.append(work) }
                } else {
                    busy.append(connection)
                }
            }
            return (works, busy)
        }
        for work in works { run(work) }
        for connection in busy { connection.closeForLostAddress() }
    }
}

/// The addresses that this machine has lost. Only addresses that existed before can be lost: a program may use
/// addresses that no interface has (`IP_FREEBIND`, local routes).
package struct LostAddresses: Sendable {
    /// The number of lost addresses above which the set is cleared: temporary IPv6 addresses change daily.
    private static let countLimit = 1_024

    private var held: Set<IPAddress> = []
    /// The addresses that are lost and have not returned.
    package private(set) var lost: Set<IPAddress> = []

    package init() {}

    /// Sets the addresses that the machine has now.
    /// - Returns: Whether an address was lost since the last update.
    package mutating func update(_ now: Set<IPAddress>) -> Bool {
        let gone = held.subtracting(now)
        held = now
        lost.subtract(now)
        if lost.count + gone.count > LostAddresses.countLimit { lost = [] }
        lost.formUnion(gone)
        return !gone.isEmpty
    }

    /// Whether a local address, given as the description of a socket's address, is lost. A loopback address never is.
    package func isLost(_ localAddress: String) -> Bool {
        guard !lost.isEmpty, let address = IPAddress(socket: localAddress) else { return false }
        return !address.isLoopback && lost.contains(address)
    }
}
