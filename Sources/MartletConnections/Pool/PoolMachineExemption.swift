/// Connections that are in use and do not count against the limits.
///
/// A call may have to keep its connection while code of the program runs, which may make further calls to the same host.
/// If all places were held by such calls, those further calls would wait for the very calls that wait for them. So the
/// place of such a connection is given to whoever waits. Once the connection counts again, the pool may be over its
/// limits, as after they were lowered: what becomes free is closed until they hold.
extension PoolMachine {
    /// The connections that count against the total limit.
    var countedCount: Int { connections.count - exemptCount }

    /// Stops counting a connection in use against the limits. Its release ends this as well.
    package mutating func exempt(_ connection: PoolConnectionID) -> Effects {
        var effects = Effects()
        let index = connection.index
        guard connections.holds(index, connection.generation), connections.records[index].state == .leased,
            !connections.records[index].isExempt
        else { return effects }
        let host = connections.records[index].host
        connections.records[index].isExempt = true
        hosts.records[host].exempt += 1
        exemptCount += 1
        settle(host, &effects)
        return effects
    }

    /// Counts a connection in use again. Does nothing if it counts, or was given back.
    package mutating func endExemption(_ connection: PoolConnectionID) {
        let index = connection.index
        guard connections.holds(index, connection.generation), connections.records[index].isExempt
        else { return }
        count(index)
        reconsider(connections.records[index].host)
    }

    /// Counts an exempt connection again. Its host has yet to be reconsidered.
    mutating func count(_ index: Int) {
        connections.records[index].isExempt = false
        hosts.records[connections.records[index].host].exempt -= 1
        exemptCount -= 1
    }
}
