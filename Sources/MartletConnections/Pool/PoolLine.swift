/// Waiting requests of one host in the order in which they are served: a binary heap, the next one on top.
///
/// A request is in up to two lines, that of all who wait and that of those for whom no dial is made. Its record says
/// where in each it stands, so that it is found when it leaves or its priority changes.
struct PoolLine: Sendable {
    /// Which line it is: the index of ``PoolWaiterRecord/positions``.
    enum Role: Int, Sendable {
        /// All who wait.
        case all = 0
        /// Those for whom no dial is made.
        case uncovered = 1
    }

    private struct Entry: Sendable {
        var rank: PoolRank
        var waiter: Int
    }

    private let role: Role
    private var entries: [Entry] = []

    /// An empty line.
    init(_ role: Role) { self.role = role }

    /// How many requests are in it.
    var count: Int { entries.count }

    /// The request that is served next, or none.
    var first: Int { entries.first?.waiter ?? PoolIndex.none }

    /// The rank of the request that is served next.
    var firstRank: PoolRank? { entries.first?.rank }

    /// All requests, in no order.
    var waiters: [Int] { entries.map(\.waiter) }

    /// Takes a request in.
    mutating func insert(_ waiter: Int, _ rank: PoolRank, _ table: inout PoolTable<PoolWaiterRecord>) {
        entries.append(Entry(rank: rank, waiter: waiter))
        table.records[waiter].positions[role.rawValue] = entries.count - 1
        siftUp(entries.count - 1, &table)
    }

    /// Takes a request out; nothing where it is not in the line.
    mutating func remove(_ waiter: Int, _ table: inout PoolTable<PoolWaiterRecord>) {
        let position = table.records[waiter].positions[role.rawValue]
        guard position != PoolIndex.none else { return }
        table.records[waiter].positions[role.rawValue] = PoolIndex.none
        let moved = entries.removeLast()
        guard position < entries.count else { return }
        entries[position] = moved
        table.records[moved.waiter].positions[role.rawValue] = position
        settle(position, &table)
    }

    /// Moves a request to where its rank belongs; nothing where it is not in the line.
    mutating func update(_ waiter: Int, _ rank: PoolRank, _ table: inout PoolTable<PoolWaiterRecord>) {
        let position = table.records[waiter].positions[role.rawValue]
        guard position != PoolIndex.none else { return }
        entries[position].rank = rank
        settle(position, &table)
    }

    /// Orders all requests anew, after a change of what ranks are made of.
    mutating func rebuild(ageing: UInt64, _ table: inout PoolTable<PoolWaiterRecord>) {
        for position in entries.indices {
            entries[position].rank = table.records[entries[position].waiter].place.rank(ageing: ageing)
        }
        for position in entries.indices.prefix(entries.count / 2).reversed() { siftDown(position, &table) }
    }

    /// Whether each request knows where it stands, and none stands before one that goes first; for tests.
    func isInOrder(_ table: PoolTable<PoolWaiterRecord>, ageing: UInt64) -> Bool {
        entries.indices.allSatisfy { position in
            let entry = entries[position]
            return table.records[entry.waiter].positions[role.rawValue] == position
                && table.records[entry.waiter].place.rank(ageing: ageing) == entry.rank
                && !(entry.rank < entries[max(0, position - 1) / 2].rank)
        }
    }

    private mutating func settle(_ position: Int, _ table: inout PoolTable<PoolWaiterRecord>) {
        let waiter = entries[position].waiter
        siftUp(position, &table)
        siftDown(table.records[waiter].positions[role.rawValue], &table)
    }

    private mutating func siftUp(_ start: Int, _ table: inout PoolTable<PoolWaiterRecord>) {
        var position = start
        while position > 0 {
            let parent = (position - 1) / 2
            guard entries[position].rank < entries[parent].rank else { return }
            exchange(position, parent, &table)
            position = parent
        }
    }

    private mutating func siftDown(_ start: Int, _ table: inout PoolTable<PoolWaiterRecord>) {
        var position = start
        while true {
            var first = position
            let child = 2 * position + 1
            if child < entries.count, entries[child].rank < entries[first].rank { first = child }
            if child + 1 < entries.count, entries[child + 1].rank < entries[first].rank { first = child + 1 }
            guard first != position else { return }
            exchange(position, first, &table)
            position = first
        }
    }

    private mutating func exchange(_ left: Int, _ right: Int, _ table: inout PoolTable<PoolWaiterRecord>) {
        entries.swapAt(left, right)
        table.records[entries[left].waiter].positions[role.rawValue] = left
        table.records[entries[right].waiter].positions[role.rawValue] = right
    }
}

/// The order in which waiting requests are served; the smallest rank first.
struct PoolRank: Comparable, Sendable {
    /// When the request came, plus one ageing interval for each level it is below the highest.
    var due: UInt64
    /// How many levels the request is below the highest.
    var behind: UInt64
    /// The number of the request, or of one that goes before its equals, what lies between that and the largest.
    var turn: UInt64

    /// Orders by due time, then by priority, then by turn.
    static func < (left: PoolRank, right: PoolRank) -> Bool {
        if left.due != right.due { return left.due < right.due }
        if left.behind != right.behind { return left.behind < right.behind }
        return left.turn < right.turn
    }
}

/// Which of the requests that wait for a connection, and are equally urgent, is served first.
public enum WaitingOrder: String, Hashable, Codable, Sendable, CaseIterable {
    /// Who came first; the default.
    case firstComeFirstServed

    /// Who came last: for what somebody looks at right now, such as the pictures of a list that is scrolled.
    ///
    /// It holds among requests of one priority that came within one ``PoolLimits/ageingInterval``: one that has waited
    /// longer is the more urgent for it, and so nobody is passed over without end. With an interval of `nil` newcomers
    /// always go first; with zero nobody ever does.
    case lastComeFirstServed
}
