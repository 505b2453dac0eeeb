import Martlet
import MartletTesting
import MartletTestSupport

/// What became of one run of a download.
struct RangeRun: Sendable {
    /// The file or the error.
    var result: Result<DownloadResult, any Error>
    /// All that happened.
    var events: [DownloadEvent]
    /// What the origin was asked for.
    var requests: [RangeRequest]
    /// How many bytes of bodies the origin sent.
    var sentByteCount: UInt64

    var value: DownloadResult? { try? result.get() }

    /// The error; `nil` where there is none, or one of another kind.
    var error: HTTPError? {
        guard case .failure(let error) = result else { return nil }
        return error as? HTTPError
    }

    /// Why it began anew, each time that it did.
    var restarts: [DownloadEvent.RestartReason] {
        events.compactMap { event in
            if case .restarted(let reason) = event { reason } else { nil }
        }
    }

    /// The failures that were borne, and the delay behind each.
    var retries: [(error: HTTPError, delay: Duration)] {
        events.compactMap { event in
            if case .retrying(let error, let delay, _) = event { (error, delay) } else { nil }
        }
    }

    /// The requests, for a test that fails.
    var log: String {
        requests.map { request in
            "#\(request.number)@\(request.connection) \(request.range ?? "-") if \(request.ifRange ?? "-")"
                + " -> \(request.status) \(request.contentRange ?? "-") \(request.sentByteCount) bytes"
        }.joined(separator: "\n") + "\n\(result)"
    }
}
