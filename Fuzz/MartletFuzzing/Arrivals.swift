/// How many bytes of a message are there, time after time, until all are.
struct Arrivals: Sequence, Sendable, CustomStringConvertible {
    /// The counts; they grow, and the last one is all. There is one even when there are no bytes.
    let counts: [Int]

    /// All at once.
    static func whole(_ count: Int) -> Arrivals { Arrivals(of: count, sizes: [Swift.max(1, count)]) }

    /// So many bytes in pieces of given sizes, which are used in turn.
    init(of count: Int, sizes: [Int]) {
        var counts: [Int] = []
        var reached = 0
        var next = 0
        while reached < count {
            reached = Swift.min(count, reached + Swift.max(1, sizes.isEmpty ? 1 : sizes[next % sizes.count]))
            next += 1
            counts.append(reached)
        }
        self.counts = counts.isEmpty ? [0] : counts
    }

    func makeIterator() -> IndexingIterator<[Int]> { counts.makeIterator() }

    /// The counts, for findings.
    var description: String { "fed up to " + counts.prefix(40).map(String.init).joined(separator: ", ") }
}
