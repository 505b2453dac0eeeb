package import MartletCore

/// The action after a failed transfer.
package enum DownloadRetryRule {
    package enum Action: Equatable, Sendable {
        /// Retry a transient failure, after the time in `Retry-After` or a growing delay.
        case retry(after: Duration?)
        /// Request the original URL again: the file is no longer at the URL of a redirect.
        case requestOriginal
        /// Fail the download with the error.
        case fail
    }

    /// Statuses of transient failures.
    package static let passing: Set<Int> = [408, 425, 429, 500, 502, 503, 504]
    /// Statuses from 400 to 499 that are not about the URL, but about the proxy or the range. Any other one may mean an
    /// expired signed URL: the file stores differ.
    package static let independentOfURL: Set<Int> = [407, 416]
    /// Statuses with which some servers reject any request that has a `Range`.
    package static let rejectingRange: Set<Int> = [400, 403, 405, 406, 412, 500, 501, 503]

    /// Returns the action after a status that is not a success.
    /// - Parameter isRedirected: Whether the request went to the URL of a redirect, also within the origin.
    package static func action(status: Int, retryAfter: Duration?, isRedirected: Bool) -> Action {
        if passing.contains(status) { return .retry(after: retryAfter) }
        let mayBeExpired = (400..<500).contains(status) && !independentOfURL.contains(status)
        return isRedirected && mayBeExpired ? .requestOriginal : .fail
    }

    /// Returns the action after an error of a call.
    package static func action(_ error: HTTPError, isRedirected: Bool) -> Action {
        switch error.code {
        case .resolutionFailed, .connectFailed, .connectionLost, .emptyResponse, .truncated:
            return isRedirected && error.isConnectFailure ? .requestOriginal : .retry(after: nil)
        case .tlsFailed where error.phase == .receivingBody || error.phase == .awaitingHead:
            // An alert after the handshake means a lost connection, unlike a failed handshake.
            return .retry(after: nil)
        case .proxyFailed where error.isTransient, .tlsFailed where error.isCutHandshake:
            return isRedirected ? .requestOriginal : .retry(after: nil)
        case .timedOut: return error.timeout == .total ? .fail : .retry(after: nil)
        default: return .fail
        }
    }

    /// Whether an error of one transfer ends all: it is about the local file, a limit of the caller, or the session.
    static func concernsAll(_ error: HTTPError) -> Bool {
        switch error.code {
        case .fileFailed, .diskFull, .fileExists, .alreadyInProgress, .bodyTooLarge, .sessionInvalidated: true
        case .timedOut: error.timeout == .total
        default: false
        }
    }

    /// Returns the delay before a retry. `failures` counts since the last new byte; `random` is between 0 and 1.
    package static func delay(_ failures: Int, asked: Duration?, _ retry: DownloadRetry, random: Double) -> Duration {
        if let asked { return min(max(.zero, asked), max(.zero, retry.maximumRetryAfter)) }
        return RetryRule.fullJitter(retry.initialDelay, upTo: retry.maximumDelay, retry: failures, random: random)
    }
}

/// A detector of transfers that our own rate limit slows down. Another connection is then useless, and taking over a
/// range only discards bytes in transit. One sample without a wait proves nothing: a limit allows a burst at first.
package struct ThrottlingDetector: Sendable {
    /// The number of samples without a wait after which the limit is assumed not to apply.
    package static let freeSampleCount = 3
    /// The number of samples without a request after which the transfers are assumed to stall for another reason.
    package static let idleSampleCount = 20

    private var isLimited = false
    private var free = 0
    private var idle = 0

    /// Whether the limit slows down the transfers.
    package var isHeldBack: Bool {
        isLimited && free < ThrottlingDetector.freeSampleCount && idle < ThrottlingDetector.idleSampleCount
    }

    /// Adds a sample of the limit's effect.
    package mutating func sample(_ throttling: BandwidthThrottling) {
        isLimited = throttling != .unlimited
        switch throttling {
        case .unlimited, .held: (free, idle) = (0, 0)
        case .free: (free, idle) = (min(free + 1, ThrottlingDetector.freeSampleCount), 0)
        case .idle: idle = min(idle + 1, ThrottlingDetector.idleSampleCount)
        }
    }
}
