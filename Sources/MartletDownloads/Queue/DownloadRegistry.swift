package import MartletCore
import Synchronization

/// The visible downloads of a manager by their numbers, for access from outside of its actor.
final class DownloadRegistry: Sendable {
    /// The visible part of a download.
    struct Entry: Sendable {
        var status: DownloadStatus
        var location: DownloadLocation
        /// The part of the download in the total.
        fileprivate var counted: TotalDownloadProgress.Part?
    }

    private struct State {
        var entries: [DownloadID: Entry] = [:]
        var sums = TotalDownloadProgress.Sums()
        /// The number of changes of the sums.
        var changeCount: UInt64 = 0
        var isEnded = false
    }

    /// The total with the number of its change. Observers see only changes of the progress.
    struct Total: Equatable, Sendable {
        var progress = TotalDownloadProgress()
        var number: UInt64 = 0

        static func == (left: Total, right: Total) -> Bool { left.progress == right.progress }
    }

    /// The progress of all downloads together.
    let total = CurrentValue(Total())
    /// The lock on the state, used by the manager and observers.
    private let state = Mutex(State())

    /// All numbers in ascending order.
    var ids: [DownloadID] { state.withLock { $0.entries.keys.sorted() } }

    func entry(of id: DownloadID) -> Entry? { state.withLock { $0.entries[id] } }

    func add(_ id: DownloadID, _ status: DownloadStatus, _ location: DownloadLocation) {
        let isEnded = state.withLock { state in
            state.entries[id] = Entry(status: status, location: location)
            return state.isEnded
        }
        if isEnded { status.end() }
        count(id)
    }

    /// Removes a download and ends its status.
    func remove(_ id: DownloadID) {
        let entry = replace { state in
            let entry = state.entries.removeValue(forKey: id)
            state.sums.replace(entry?.counted, by: nil)
            return entry
        }
        entry?.status.end()
    }

    /// Counts the progress and the state of a download. They are read under the lock, so that the last change counts.
    func count(_ id: DownloadID) {
        replace { state in
            guard let entry = state.entries[id] else { return }
            let part = TotalDownloadProgress.Part(entry.status.progress.value, entry.status.state)
            state.sums.replace(entry.counted, by: part)
            state.entries[id]?.counted = part
        }
    }

    /// Changes the sums, and then the total, unless a later change came first.
    private func replace<Value: Sendable>(_ change: (inout State) -> Value) -> Value {
        let (value, new) = state.withLock { state in
            let value = change(&state)
            state.changeCount += 1
            return (value, Total(progress: state.sums.progress, number: state.changeCount))
        }
        total.change { if new.number > $0.number { $0 = new } }
        return value
    }

    /// Ends the status of all downloads. Running ones become waiting, because a later manager resumes them.
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
        total.finish()
    }
}

/// The download of one file, as a manager runs it: any number of times.
package protocol RunnableDownload: Sendable {
    /// Runs until the file is complete. Cancelling the task retains the received bytes and throws `CancellationError`.
    /// - Parameter onPublication: Writes the record of the complete file, before the file gets its name.
    /// - Throws: An ``HTTPError``; `CancellationError`; errors of `onPublication`.
    func run(onPublication: DownloadJob.PublicationHandler?) async throws -> DownloadResult
    /// Changes the URL for the next run.
    func move(to url: HTTPURL)
    /// Changes the maximum rate immediately.
    func setBandwidth(_ rate: BandwidthRate?)
    /// Removes the received bytes. The download must not be running.
    func discard() async throws(HTTPError)
    /// The path of the file, once it is known.
    var path: FilePath? { get }
}

/// Creates the job of a download.
package typealias DownloadFactory =
    @Sendable (DownloadJob.Plan, DownloadStatus, HostConnectionSlots) -> any RunnableDownload

/// The source and the target of a managed download, for observers.
final class DownloadLocation: Sendable {
    /// The lock on the item, used by the manager and observers.
    private let item: Mutex<DownloadItem>

    init(_ item: DownloadItem) { self.item = Mutex(item) }

    func update(_ item: DownloadItem) { self.item.withLock { $0 = item } }

    var url: HTTPURL { item.withLock { $0.currentURL.withoutUserInfo } }
    var target: DownloadTarget { item.withLock { $0.target } }
    var options: DownloadOptions { item.withLock { $0.options } }
    /// The path of the file, once it is known.
    var path: FilePath? { item.withLock { $0.file } }
}
