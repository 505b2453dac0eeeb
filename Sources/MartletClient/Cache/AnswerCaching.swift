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
    /// Called when that happens, to count it.
    private let whenUsed: (@Sendable () -> Void)?
    /// The cookies that the network set as it said that what is stored is good; those that are stored were set before.
    let setCookies: [[UInt8]]
    /// Whether it is a first delivery, behind which one of the network is to come.
    let isPreview: Bool

    init(
        _ source: HTTPExchange.Source, _ status: CacheStatus, transfer: Answer? = nil,
        standIn: StandIn? = nil, setCookies: [[UInt8]] = [], isPreview: Bool = false
    ) {
        self.source = source
        self.status = status
        self.transfer = transfer
        fallback = standIn?.answer
        whenUsed = standIn?.whenUsed
        self.setCookies = setCookies
        self.isPreview = isPreview
    }

    /// Whether nothing but the cache might answer, and it had nothing: whatever is stored is a hit, be it a 504 as well.
    var isUnsatisfied: Bool { source == .cache && !status.isHit }

    /// Takes what stands in for the answer, which counts from now on.
    func useFallback() -> Answer? {
        if fallback != nil { whenUsed?() }
        return fallback
    }
}
