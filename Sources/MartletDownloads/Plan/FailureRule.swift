import MartletURL
package import MartletCore
package import MartletConnections

/// What is done about a transfer that failed.
package enum FailureRule {
    /// What is done.
    package enum Action: Equatable, Sendable {
        /// It may pass: another try, after what `Retry-After` says or a growing wait.
        case retry(after: Duration?)
        /// The place where the file was has it no longer: the original URL is asked again.
        case askOriginal
        /// It will not pass.
        case fail
    }

    /// Statuses that pass.
    package static let passing: Set<Int> = [408, 425, 429, 500, 502, 503, 504]
    /// Statuses by which a signed URL that has expired is known.
    package static let expired: Set<Int> = [401, 403, 404, 410]

    /// Statuses with which some servers reject any request that has a `Range`.
    package static let rejectingRange: Set<Int> = [400, 403, 405, 406, 412, 500, 501, 503]

    /// What is done about a status that is no success.
    /// - Parameter isElsewhere: Whether it came from another place than the original URL, because of a redirect.
    package static func action(status: Int, retryAfter: Duration?, isElsewhere: Bool) -> Action {
        if passing.contains(status) { return .retry(after: retryAfter) }
        return isElsewhere && expired.contains(status) ? .askOriginal : .fail
    }

    /// What is done about an error of a call.
    package static func action(_ error: HTTPError, isElsewhere: Bool) -> Action {
        switch error.code {
        case .resolutionFailed, .connectFailed, .connectionLost, .emptyResponse, .truncated:
            return isElsewhere && error.isConnectFailure ? .askOriginal : .retry(after: nil)
        case .tlsFailed where error.phase == .receivingBody || error.phase == .awaitingHead:
            // An alert amid the stream: the connection broke. A handshake that fails is another thing.
            return .retry(after: nil)
        case .proxyFailed where error.isTransient, .tlsFailed where error.isCutHandshake:
            return isElsewhere ? .askOriginal : .retry(after: nil)
        case .timedOut: return error.clock == .total ? .fail : .retry(after: nil)
        default: return .fail
        }
    }

    /// Whether a failure of one transfer is a failure of all: the file on this side cannot be written or may not grow, or a
    /// limit of the caller was reached. Any other failure concerns only the connection that it came from.
    static func concernsAll(_ error: HTTPError) -> Bool {
        switch error.code {
        case .fileFailed, .diskFull, .fileExists, .alreadyInProgress, .bodyTooLarge, .sessionInvalidated: true
        case .timedOut: error.clock == .total
        default: false
        }
    }

    /// How long to wait.
    /// - Parameters:
    ///   - failures: How many there were since the last new byte, this one included.
    ///   - random: Between 0 and 1.
    package static func delay(
        _ failures: Int, asked: Duration?, _ retry: DownloadRetry, random: Double
    ) -> Duration {
        if let asked { return min(max(.zero, asked), max(.zero, retry.longestRetryAfter)) }
        var span = max(.zero, retry.firstDelay)
        let longest = max(.zero, retry.longestDelay)
        for _ in 1..<max(2, min(failures, 40)) where failures > 1 && span < longest { span = span * 2 }
        return min(span, longest) * min(max(random, 0), 1)
    }
}

/// Whether the transfers of a download could be faster, and are held to a limit of our own: then another connection brings
/// nothing, and who takes over what another one has asked for only has it drop what is on its way.
///
/// A limit lets a burst pass at first, so that one look that shows no wait tells nothing.
package struct PacingJudgement: Sendable {
    /// How many looks without a wait show that the limit does not bind.
    package static let freeLooks = 3
    /// How many looks without a request show that the transfers stand still for another reason.
    package static let idleLooks = 20

    private var isLimited = false
    private var free = 0
    private var idle = 0

    /// Whether the limit binds.
    package var isHeldBack: Bool {
        isLimited && free < PacingJudgement.freeLooks && idle < PacingJudgement.idleLooks
    }

    /// Looks once more.
    package mutating func look(_ hold: BandwidthHold) {
        isLimited = hold != .unlimited
        switch hold {
        case .unlimited, .held: (free, idle) = (0, 0)
        case .free: (free, idle) = (min(free + 1, PacingJudgement.freeLooks), 0)
        case .idle: idle = min(idle + 1, PacingJudgement.idleLooks)
        }
    }
}
