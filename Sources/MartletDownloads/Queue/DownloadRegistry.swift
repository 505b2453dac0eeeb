import Synchronization

/// The downloads that can be seen of a manager, by their numbers, for whoever looks from outside of it.
final class DownloadRegistry: Sendable {
    private struct State {
        var statuses: [DownloadID: DownloadStatus] = [:]
        var isEnded = false
    }

    /// Guards the above: the manager, and whoever looks.
    private let state = Mutex(State())

    /// All numbers, those first that were added first.
    var ids: [DownloadID] { state.withLock { $0.statuses.keys.sorted() } }

    /// What can be seen of a download.
    func status(of id: DownloadID) -> DownloadStatus? { state.withLock { $0.statuses[id] } }

    /// Adds a download.
    func add(_ id: DownloadID, _ status: DownloadStatus) {
        let isEnded = state.withLock { state in
            state.statuses[id] = status
            return state.isEnded
        }
        if isEnded { status.end() }
    }

    /// Takes a download away, of which nothing more will be heard.
    func remove(_ id: DownloadID) {
        let status = state.withLock { $0.statuses.removeValue(forKey: id) }
        status?.end()
    }

    /// Ends all that can be seen: what is not over will go on another time.
    func end() {
        let statuses = state.withLock { state in
            state.isEnded = true
            return state.statuses.values
        }
        for status in statuses {
            switch status.state {
            case .running, .verifying: status.become(.waiting)
            case .waiting, .paused, .finished, .failed, .cancelled: break
            }
            status.end()
        }
    }
}
