/// The name of one request that waits for a connection.
///
/// Issued by ``PoolMachine``; valid while the request waits and while it holds the connection it was granted.
package struct PoolWaiterID: Hashable, Sendable, CustomStringConvertible {
    /// How often the place had been used before.
    package let generation: UInt32
    private let place: UInt32

    /// Names the request in a place of the pool's table.
    init(index: Int, generation: UInt32) {
        self.place = UInt32(truncatingIfNeeded: index)
        self.generation = generation
    }

    /// The place of the request in the pool's table, from 0; small and dense, fit for an array index.
    package var index: Int { Int(place) }

    /// For example `waiter 3.0`: place 3, used for the first time.
    package var description: String { "waiter \(index).\(generation)" }
}
