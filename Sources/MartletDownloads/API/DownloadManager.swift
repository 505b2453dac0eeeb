public import MartletClient
import MartletConnections
package import MartletStorage
package import MartletTransport
package import SystemPackage

/// Many downloads, which outlive the process.
///
/// They belong to a directory: whoever opens it next goes on with those that were not over, where they stopped. Paused ones
/// stay paused, and failed ones failed, until they are resumed. One manager at a time has a directory, in one process;
/// ``close()`` lets others have it, and so does the end of the process, however it comes.
///
/// What is known of a download is written to the directory, for its owner alone, before ``add(_:to:options:priority:)``
/// returns. Credentials are not: user names and passwords of URLs, the fields `Authorization`, `Proxy-Authorization`, `Cookie`
/// and `Set-Cookie`, and ``MartletClient/RequestOptions/authentication``. They last as long as the manager; a closure given to
/// the initialiser adds them at each run, in each process.
///
/// Letting go of the manager and of all handles stops the downloads, as ``close()`` does, without waiting.
public actor DownloadManager {
    /// What is known of a download in this process.
    struct Managed {
        var item: DownloadItem {
            didSet { place.update(item) }
        }
        let place: DownloadPlace
        let status: DownloadStatus
        /// The present run.
        var run: ManagedRun?
        /// What ran last, which knows what there is to remove.
        var job: (any DownloadRunning)?
    }

    nonisolated let registry = DownloadRegistry()
    nonisolated let log = EventLog<DownloadManagerEvent>()
    /// Whether all are over.
    nonisolated let isAllFinished = NewestValue(true)
    nonisolated let isClosed = NewestValue(false)
    nonisolated let runs = RunGroup()
    let session: HTTPSession
    let store: DownloadStore
    let slots: HostConnectionSlots
    let prepare: (@Sendable (inout HTTPFields, HTTPURL) async throws -> Void)?
    let make: DownloadFactory
    let now: @Sendable () -> MonotonicTime
    var machine: DownloadQueueMachine
    var managed: [DownloadID: Managed] = [:]
    /// Which download is about which file.
    var claims: [String: DownloadID] = [:]
    /// Those of which the disk does not know the newest.
    var unsaved: Set<DownloadID> = []
    var limits: DownloadLimits
    var lastNumber: UInt64
    var lastOrder: UInt64
    var isClosing = false

    /// Opens a directory with something other than ``DownloadJob`` to run downloads.
    package init(
        session: HTTPSession, directory: FilePath, limits: DownloadLimits = DownloadLimits(),
        prepare: (@Sendable (inout HTTPFields, HTTPURL) async throws -> Void)? = nil,
        ageing: Duration = .seconds(60), files: any FileSystem = LinuxFileSystem(),
        now: @escaping @Sendable () -> MonotonicTime = { MonotonicTime.now() },
        make: @escaping DownloadFactory
    ) async throws {
        let (store, contents) = try await DownloadStore.open(directory.string, files: files)
        self.session = session
        self.store = store
        self.limits = limits
        self.prepare = prepare
        self.make = make
        self.now = now
        slots = HostConnectionSlots(limit: limits.connectionsPerHost)
        machine = DownloadQueueMachine(limits: limits, ageing: ageing)
        lastNumber = contents.lastNumber
        lastOrder = contents.items.last?.order ?? 0
        if limits.bandwidth != nil || limits.bandwidthPerHost != nil { limitBandwidth() }
        restore(contents)
    }

    deinit {
        runs.cancel()
        registry.end()
        isAllFinished.finish()
        log.end()
    }

    // MARK: Looking

    /// The downloads that are known, those first that were added first: also those that are over, until they are removed.
    public nonisolated var downloads: [DownloadID] { registry.ids }

    /// A handle of a download; `nil` for one that is not known, as one that was cancelled. Who holds it holds the manager.
    public nonisolated func download(_ id: DownloadID) -> Download? {
        registry.entry(of: id).map { entry in
            Download(
                id: id, status: entry.status,
                controller: ManagedDownload(id: id, place: entry.place, manager: self))
        }
    }

    /// What a download is doing: its present state, then each newer one (``Download/states``). Of one that is not known, it
    /// is `.cancelled` alone.
    public nonisolated func states(of id: DownloadID) -> DownloadStates {
        let status = registry.entry(of: id)?.status ?? DownloadStatus(.cancelled)
        if case .cancelled = status.state { status.end() }
        return DownloadStates(source: status.states)
    }

    /// What happens, in order, beginning with the last 256 events that have happened. The stream ends with the manager.
    public nonisolated var events: EventSequence<DownloadManagerEvent> { log.subscribe() }

    /// What has happened, the last 256 events: to begin with, what was found in the directory that is no download.
    package nonisolated var pastEvents: [DownloadManagerEvent] { log.pastEvents }

    /// Waits until every download that was added is finished, has failed or was cancelled; at once where that is so. Paused
    /// ones are waited for. Who is awake too late, when others have been added, waits for these as well.
    /// - Throws: `CancellationError` when the task is cancelled, or the manager is closed before.
    public nonisolated var allFinished: Void {
        get async throws {
            guard await isAllFinished.becomesTrue() else { throw CancellationError() }
        }
    }

    // MARK: The end

    /// Stops the downloads that run, keeping what has come of them, and lets others have the directory. Returns when no
    /// connection and no file is open any more. Those that are not over go on with the next manager of the directory.
    ///
    /// It waits for the downloads, so it must not be awaited by the closure that prepares their requests.
    public func close() async {
        guard !isClosing else {
            await isClosed.becomesTrue()
            return
        }
        isClosing = true
        machine.close()
        for entry in managed.values { entry.run?.stop() }
        await runs.finish()
        await save(unsaved.sorted())
        await store.close(lastNumber: lastNumber)
        registry.end()
        isAllFinished.finish()
        log.end()
        isClosed.update { true }
    }
}
