/// What the links between the pool's records are made of: places in a ``PoolTable``.
enum PoolIndex {
    /// The link that leads nowhere.
    static let none = -1
}
