import Martlet
import MartletTesting
import MartletTestSupport

/// The result of one run of a download.
struct RangeRun: Sendable {
    /// The file or the error.
    var result: Result<DownloadResult, any Error>
    /// All events of the run.
    var events: [DownloadEvent]
    /// The requests that the origin received.
    var requests: [RangeRequest]
    /// The number of body bytes that the origin sent.
    var sentByteCount: UInt64

    var value: DownloadResult? { try? result.get() }

    /// The error; `nil` for success or an error of another type.
    var error: HTTPError? {
        guard case .failure(let error) = result else { return nil }
        return error as? HTTPError
    }

    /// The reason of each restart.
    var restarts: [DownloadEvent.RestartReason] {
        events.compactMap { event in
            if case .restarted(let reason) = event { reason } else { nil }
        }
    }

    /// The failures that were retried, and the delay after each.
    var retries: [(error: HTTPError, delay: Duration)] {
        events.compactMap { event in
            if case .retrying(let error, let delay, _) = event { (error, delay) } else { nil }
        }
    }

    /// The requests as text, for failure messages.
    var log: String {
        requests.map { request in
            "#\(request.number)@\(request.connection) \(request.range ?? "-") if \(request.ifRange ?? "-")"
                + " -> \(request.status) \(request.contentRange ?? "-") \(request.sentByteCount) bytes"
        }.joined(separator: "\n") + "\n\(result)"
    }
}
