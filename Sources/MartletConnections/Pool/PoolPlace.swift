/// The place of a request among all others: when it came and how urgent it is.
///
/// It stays with the request while that holds a connection, so that a request whose connection turns out to be dead
/// gets its old place back.
struct PoolPlace: Sendable {
    /// When the request came, in nanoseconds of the pool's clock.
    var arrival: UInt64
    /// The number of the request, from 0; settles the order of requests that came at one instant.
    var sequence: UInt64
    /// How urgent the request is.
    var priority: RequestPriority
    /// Whether it goes before or behind its equals.
    var order = WaitingOrder.firstComeFirstServed
    /// Whether calls that hold connections wait for the request: it is served before all others.
    var isNested = false

    /// The place as a value that can be compared; the smallest is served first.
    ///
    /// A request gains one level per `ageing` nanoseconds, so at any time t its level is
    /// `priority + (t - arrival) / ageing`. Whether one such level is above another does not depend on t: ordering by
    /// arrival plus one `ageing` for each level below the highest is the same, and never has to be done again.
    ///
    /// A request that goes before its equals counts as having come with all others of its ageing interval, and as the
    /// first of them; thereby it is never ahead of one that has waited an interval longer.
    func rank(ageing: UInt64) -> PoolRank {
        if isNested { return PoolRank(due: 0, behind: 0, turn: sequence) }
        let behind = UInt64(RequestPriority.highest.rawValue - priority.rawValue)
        let (delay, tooLong) = behind.multipliedReportingOverflow(by: ageing)
        let isLastFirst = order == .lastComeFirstServed && ageing > 0
        let begin = isLastFirst ? arrival - arrival % ageing : arrival
        let (due, tooLate) = begin.addingReportingOverflow(delay)
        return PoolRank(
            due: tooLong || tooLate ? .max : due, behind: behind,
            turn: isLastFirst ? .max - sequence : sequence)
    }
}
