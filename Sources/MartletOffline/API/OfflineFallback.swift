/// What becomes of a request that cannot be sent now.
public struct OfflineFallback: Sendable {
    let queue: OfflineQueue?
    let submission: OfflineSubmission

    /// The queue that was opened for the session keeps it, in the lane of its origin.
    public static let freeze = OfflineFallback(queue: nil, submission: OfflineSubmission())

    /// A queue keeps it.
    /// - Parameters:
    ///   - queue: Which one; `nil` for the one that was opened last for the session.
    ///   - submission: How it stands there.
    public static func freeze(
        in queue: OfflineQueue? = nil, as submission: OfflineSubmission
    ) -> OfflineFallback {
        OfflineFallback(queue: queue, submission: submission)
    }

    /// A queue keeps it, in a lane and under a name.
    public static func freeze(
        in queue: OfflineQueue? = nil, lane: String? = nil, tag: String? = nil
    ) -> OfflineFallback {
        OfflineFallback(queue: queue, submission: OfflineSubmission(lane: lane, tag: tag))
    }
}
