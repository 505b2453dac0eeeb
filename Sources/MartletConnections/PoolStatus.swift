/// How many connections a pool has, by what they are doing, and how many requests wait for one.
public struct PoolStatus: Hashable, Sendable {
    /// Open and free.
    public var idle: Int
    /// In use.
    public var leased: Int
    /// Being opened.
    public var dialling: Int
    /// Requests that wait.
    public var waiting: Int
    /// Connections opened since the pool was made.
    public var opened: UInt64
    /// Exchanges that used a connection which had carried one before.
    public var reused: UInt64
}
