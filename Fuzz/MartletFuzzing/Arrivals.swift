/// The number of available bytes of a message at each step, until all are available.
struct Arrivals: Sequence, Sendable, CustomStringConvertible {
    /// The increasing counts; the last one is the total. An empty message has one count.
    let counts: [Int]

    /// Returns the arrival of all bytes in one step.
    static func whole(_ count: Int) -> Arrivals { Arrivals(of: count, sizes: [Swift.max(1, count)]) }

    /// Creates arrivals of `count` bytes in pieces whose sizes are used in turn.
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

    /// The first 40 counts, for findings.
    var description: String { "fed up to " + counts.prefix(40).map(String.init).joined(separator: ", ") }
}
