import MartletCache

/// What the cache had to do with an answer.
final class AnswerCaching: Sendable {
    /// Where the answer came from.
    let source: HTTPExchange.Source
    /// What the cache did, and why.
    let status: CacheStatus
    /// The answer of the network whose body is shared; `nil` where the body is not, or was stored.
    let transfer: Answer?
    /// What takes the answer's place, which is an error, where nothing else follows it (RFC 5861 §4).
    let fallback: Answer?
    /// Whether it is a first delivery, behind which one of the network is to come.
    let isPreview: Bool

    init(
        _ source: HTTPExchange.Source, _ status: CacheStatus, transfer: Answer? = nil,
        fallback: Answer? = nil,
        isPreview: Bool = false
    ) {
        self.source = source
        self.status = status
        self.transfer = transfer
        self.fallback = fallback
        self.isPreview = isPreview
    }

    /// Whether nothing but the cache might answer, and it had nothing: whatever is stored is a hit, be it a 504 as well.
    var isUnsatisfied: Bool { source == .cache && !status.isHit }

    /// The member of `Cache-Status`.
    var statusText: String { status.text }
}
