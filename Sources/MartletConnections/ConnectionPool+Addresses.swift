package import MartletTransport
import Synchronization

extension ConnectionPool {
    /// This machine has these addresses now. Connections from one that it had before are closed where they are idle, and
    /// fail where they are in use, as though the peer had gone: no byte will come on them any more, and waiting for one
    /// would last until a clock runs out.
    package func localAddresses(are addresses: Set<IPAddress>) {
        let (works, busy) = state.withLock { state -> ([Work], [HTTP1Connection]) in
            guard state.addresses.update(addresses) else { return ([], []) }
            var works: [Work] = []
            var busy: [HTTP1Connection] = []
            for (index, connection) in state.connections.enumerated() {
                guard let connection, state.addresses.isLost(connection.stream.information.localAddress)
                else {
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
        for connection in busy { connection.loseAddress() }
    }
}
