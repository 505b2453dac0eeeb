import Martlet

/// What came of a download.
enum DownloadOutcome: Sendable {
    /// The file is there.
    case finished(DownloadResult)
    /// It failed.
    case failed(HTTPError)
    /// Its time (`-m`) is over; what has come is kept.
    case outOfTime
    /// It was stopped, and what has come is kept.
    case stopped

    /// What the program exits with for it; `nil` where it is no failure of its own.
    var status: ExitStatus? {
        switch self {
        case .finished, .stopped: nil
        case .failed(let error): DownloadOutcome.status(of: error)
        case .outOfTime: .timedOut
        }
    }

    /// The exit code of a download that failed: as of any call, but that files are written here and not read.
    static func status(of error: HTTPError) -> ExitStatus {
        error.code == .fileFailed ? .writeFailed : ExitStatus(error)
    }
}
