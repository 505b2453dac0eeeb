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
