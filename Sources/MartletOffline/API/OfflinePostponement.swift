/// Why a request of an ``OfflineQueue`` is sent again later, and when.
public struct OfflinePostponement: Sendable {
    /// Why.
    public enum Reason: String, Hashable, Sendable, CaseIterable {
        /// No connection could be opened, or it broke: tried again when the network's path comes back, at once.
        case unreachable
        /// The server answered that it cannot, just now; or it does not know yet what became of an earlier try.
        case refused
        /// The server wants credentials that were not to be had: tried again when ``OfflineQueue/credentialsChanged()`` says
        /// so, and at the longest interval.
        case unauthorized
        /// The closure that adds the credentials threw.
        case credentialsFailed
        /// A file could not be read or written.
        case storage
    }

    /// Why.
    public let reason: Reason
    /// How long its lane waits; something else may make it shorter.
    public let delay: Duration
    /// What failed, or what the server said, in words.
    public let message: String

    init(_ reason: Reason, delay: Duration, message: String) {
        self.reason = reason
        self.delay = delay
        self.message = message
    }
}
