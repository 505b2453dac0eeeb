/// What an ``OfflineQueue`` knows of a request that it holds.
public struct OfflineEntry: Sendable {
    /// What is to become of it.
    public enum State: Sendable {
        /// It waits for its turn, or for its lane.
        case waiting
        /// It is being sent.
        case sending
        /// It is not sent again by itself.
        case dead(OfflineDeadLetter)
        /// It is not known whether it took effect.
        case uncertain(OfflineDeadLetter)
    }

    /// Which one.
    public let ticket: OfflineTicket
    /// What is to become of it.
    public let state: State
    /// How often it was sent, over all processes.
    public let attempts: Int
    /// When it was submitted, in milliseconds since 1970.
    public let submitted: Int64
    /// When it expires, in milliseconds since 1970.
    public let expires: Int64
    /// How many bytes its body has.
    public let bodyByteCount: UInt64
    /// The fields that were not stored, and that the closure of the queue has to add.
    public let secretFields: [String]
}
