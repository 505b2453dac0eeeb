public import MartletClient

/// What happens to a download. None is ever left out for a slow subscriber.
public enum DownloadEvent: Sendable {
    /// A run began, with so many bytes of earlier ones.
    case started(resumedByteCount: UInt64)
    /// What was there cannot be used any more, and the file is fetched from its beginning.
    case restarted(RestartReason)
    /// Something failed that may pass; the next try comes after the delay. `failures` counts those since the last new byte.
    case retrying(HTTPError, after: Duration, failures: Int)
    /// All bytes are there and are compared with the checksums.
    case verifying
    /// The file has its name.
    case finished(DownloadResult)
    /// It is over without the file, for this run. What has come is kept where ``MartletClient/HTTPError/keptByteCount`` says so.
    case failed(HTTPError)
    /// It was paused, and what has come is kept.
    case paused
    /// It was cancelled.
    case cancelled

    /// Why a download began anew.
    public enum RestartReason: String, Hashable, Sendable, Codable {
        /// The file on the server has changed.
        case changed
        /// The server does not answer with parts of the file, or not with the ones asked for.
        case rangesRefused
        /// There is nothing by which the bytes could be known to be still those of the file.
        case notResumable
        /// The last 64 KiB that were there are not what the server has.
        case overlapDiffers
    }
}
