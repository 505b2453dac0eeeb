import MartletURL
package import MartletCore
package import MartletConnections
import Synchronization
package import SystemPackage

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

/// What a manager asks of a download: one file, as often as it is run.
package protocol DownloadRunning: Sendable {
    /// Runs until the file is there. Cancelling the task keeps what has come and throws `CancellationError`.
    /// - Parameter noting: Told what is to be known of the file before it gets its name; returns when that is on the disk.
    /// - Throws: An ``HTTPError``; `CancellationError`; what `noting` throws.
    func run(noting: DownloadJob.Noting?) async throws -> DownloadResult
    /// Says where the file is now, before the next run.
    func move(to url: HTTPURL)
    /// Changes how fast it may go, at once.
    func setBandwidth(_ rate: BandwidthRate?)
    /// Removes what has come; not while it runs.
    func discard() async throws
    /// The file's name, once it is known.
    var path: FilePath? { get }
}

/// Makes what runs a download.
package typealias DownloadFactory =
    @Sendable (DownloadJob.Plan, DownloadStatus, any ConnectionSlots) -> any DownloadRunning

/// Where a managed download comes from and goes to, for those who look.
final class DownloadPlace: Sendable {
    /// Guards the item: the manager, and whoever looks.
    private let item: Mutex<DownloadItem>

    init(_ item: DownloadItem) { self.item = Mutex(item) }

    /// Takes up what has changed.
    func update(_ item: DownloadItem) { self.item.withLock { $0 = item } }

    var url: HTTPURL { item.withLock { $0.place.withoutUserInfo } }
    var target: DownloadTarget { item.withLock { $0.target } }
    /// The file's name, once it is known.
    var path: FilePath? {
        item.withLock { item in
            if case .file(let path) = item.target { return item.path ?? path }
            return item.path
        }
    }
}
