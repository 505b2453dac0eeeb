package import MartletCore
import Synchronization

/// The visible downloads of a manager by their numbers, for access from outside of its actor.
final class DownloadRegistry: Sendable {
    /// The visible part of a download.
    struct Entry: Sendable {
        var status: DownloadStatus
        var place: DownloadLocation
    }

    private struct State {
        var entries: [DownloadID: Entry] = [:]
        var isEnded = false
    }

    /// Guards the above: the manager, and observers.
    private let state = Mutex(State())

    /// All numbers in ascending order.
    var ids: [DownloadID] { state.withLock { $0.entries.keys.sorted() } }

    /// The entry of a download.
    func entry(of id: DownloadID) -> Entry? { state.withLock { $0.entries[id] } }

    /// Adds a download.
    func add(_ id: DownloadID, _ status: DownloadStatus, _ place: DownloadLocation) {
        let isEnded = state.withLock { state in
            state.entries[id] = Entry(status: status, place: place)
            return state.isEnded
        }
        if isEnded { status.end() }
    }

    /// Removes a download and ends its status.
    func remove(_ id: DownloadID) {
        let entry = state.withLock { $0.entries.removeValue(forKey: id) }
        entry?.status.end()
    }

    /// Ends the status of all downloads. Running ones become waiting, since a later manager resumes them.
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

/// The download of one file, as a manager runs it: any number of times.
package protocol RunnableDownload: Sendable {
    /// Runs until the file is complete. Cancelling the task keeps the received bytes and throws `CancellationError`.
    /// - Parameter noting: receives the note of the file before it gets its name; returns when the note is on disk.
    /// - Throws: An ``HTTPError``; `CancellationError`; errors of `noting`.
    func run(noting: DownloadJob.Noting?) async throws -> DownloadResult
    /// Changes the URL for the next run.
    func move(to url: HTTPURL)
    /// Changes the maximum rate immediately.
    func setBandwidth(_ rate: BandwidthRate?)
    /// Removes the received bytes; not while it runs.
    func discard() async throws
    /// The path of the file, once it is known.
    var path: FilePath? { get }
}

/// Creates the job of a download.
package typealias DownloadFactory =
    @Sendable (DownloadJob.Plan, DownloadStatus, HostConnectionSlots) -> any RunnableDownload

/// The source and the target of a managed download, for observers.
final class DownloadLocation: Sendable {
    /// Guards the item: the manager, and observers.
    private let item: Mutex<DownloadItem>

    init(_ item: DownloadItem) { self.item = Mutex(item) }

    /// Replaces the item.
    func update(_ item: DownloadItem) { self.item.withLock { $0 = item } }

    var url: HTTPURL { item.withLock { $0.place.withoutUserInfo } }
    var target: DownloadTarget { item.withLock { $0.target } }
    /// The path of the file, once it is known.
    var path: FilePath? { item.withLock { $0.file } }
}
