import MartletClient
import MartletTransport

extension DownloadStatus {
    /// Ends what is told of the download: it can no longer change.
    func end() {
        progress.finish()
        states.finish()
        events.end()
    }

    /// Says how far the download has come, while no run says it.
    /// - Parameter isFinished: Whether a run is over, rather than one to come.
    func settleProgress(isFinished: Bool = true, _ change: (inout DownloadProgress) -> Void = { _ in }) {
        var value = progress.value
        change(&value)
        value.isFinished = isFinished
        value.bytesPerSecond = 0
        value.connectionCount = 0
        value.stalled = .zero
        let settled = value
        progress.update { settled }
    }
}
