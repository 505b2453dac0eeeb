public import MartletClient

/// What a download is doing.
public enum DownloadState: Sendable {
    /// It has its place in a queue.
    case waiting
    /// It runs, or waits between two tries.
    case running
    /// All bytes are there and are compared with the checksums.
    case verifying
    /// It was paused, and stays so until it is resumed, in another process too.
    case paused
    /// The file is there.
    case finished(DownloadResult)
    /// It failed; resuming it tries again.
    case failed(HTTPError)
    /// It was cancelled; nothing of it is left.
    case cancelled

    /// Whether it is over, unless somebody resumes it.
    public var isOver: Bool {
        switch self {
        case .finished, .failed, .cancelled: true
        case .waiting, .running, .verifying, .paused: false
        }
    }
}
