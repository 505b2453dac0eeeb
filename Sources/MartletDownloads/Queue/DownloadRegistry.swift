import Synchronization

/// The downloads that can be seen of a manager, by their numbers, for whoever looks from outside of it.
final class DownloadRegistry: Sendable {
    /// What is known of one.
    struct Entry: Sendable {
        var status: DownloadStatus
        var place: DownloadPlace
    }

    private struct State {
        var entries: [DownloadID: Entry] = [:]
        var isEnded = false
    }

    /// Guards the above: the manager, and whoever looks.
    private let state = Mutex(State())

    /// All numbers, those first that were added first.
    var ids: [DownloadID] { state.withLock { $0.entries.keys.sorted() } }

    /// What can be seen of a download.
    func entry(of id: DownloadID) -> Entry? { state.withLock { $0.entries[id] } }

    /// Adds a download.
    func add(_ id: DownloadID, _ status: DownloadStatus, _ place: DownloadPlace) {
        let isEnded = state.withLock { state in
            state.entries[id] = Entry(status: status, place: place)
            return state.isEnded
        }
        if isEnded { status.end() }
    }

    /// Takes a download away, of which nothing more will be heard.
    func remove(_ id: DownloadID) {
        let entry = state.withLock { $0.entries.removeValue(forKey: id) }
        entry?.status.end()
    }

    /// Ends all that can be seen: what is not over will go on another time.
    func end() {
        let statuses = state.withLock { state in
            state.isEnded = true
            return state.entries.values.map(\.status)
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
