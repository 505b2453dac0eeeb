/// The name of one connection of a pool, from the decision to dial it to the decision to close it.
///
/// Issued by ``PoolMachine``. A place is used again after its connection is gone, but never with the same
/// generation, so an event that comes too late cannot hit a foreign connection.
package struct PoolConnectionID: Hashable, Sendable, CustomStringConvertible {
    /// How often the place had been used before.
    package let generation: UInt32
    private let place: UInt32

    /// Names the connection in a place of the pool's table.
    init(index: Int, generation: UInt32) {
        self.place = UInt32(truncatingIfNeeded: index)
        self.generation = generation
    }

    /// The place of the connection in the pool's table, from 0; small and dense, fit for an array index.
    package var index: Int { Int(place) }

    /// For example `connection 3.0`: place 3, used for the first time.
    package var description: String { "connection \(index).\(generation)" }
}
