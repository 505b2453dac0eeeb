/// A table whose places are used again, each time with a new generation.
///
/// Insertion, removal and access take constant time and, once the table has grown, no memory.
struct PoolTable<Record: Sendable>: Sendable {
    /// The records by place; a vacant place holds what its last owner left.
    var records: [Record] = []
    /// By place, how often it had been used before.
    private(set) var generations: [UInt32] = []
    private var vacant: [Int] = []

    /// The number of places in use.
    var count: Int { records.count - vacant.count }

    /// Puts `record` into a vacant or a new place, and returns the place.
    mutating func insert(_ record: Record) -> Int {
        if let index = vacant.popLast() {
            records[index] = record
            return index
        }
        records.append(record)
        generations.append(0)
        return records.count - 1
    }

    /// Makes a place vacant. Names with its generation are void from now on.
    mutating func remove(_ index: Int) {
        generations[index] &+= 1
        vacant.append(index)
    }

    /// Whether a name is that of a place in use. A vacant place has a generation that was not issued yet.
    func holds(_ index: Int, _ generation: UInt32) -> Bool {
        index >= 0 && index < generations.count && generations[index] == generation
    }
}
