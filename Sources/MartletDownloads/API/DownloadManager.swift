public import MartletCore
import MartletStreams
import Synchronization

/// A manager of downloads that outlive the process.
///
/// The downloads are recorded in a directory: the next manager that opens it resumes the unfinished ones. Paused
/// downloads stay paused, and failed ones failed, until they are resumed. Only one manager in any process can have the
/// directory open. ``close()`` releases it, and so does the end of the process.
///
/// The record of a download is written to the directory, accessible only by its owner, before `add(_:to:)` returns.
/// Credentials are not written: user names and passwords of URLs, the fields `Authorization`, `Proxy-Authorization`,
/// `Cookie` and `Set-Cookie`, and ``RequestOptions/authentication``. The manager holds them in memory; the closure
/// `prepare` of the initializer can add them to each run, in each process.
///
/// Releasing the manager and all handles stops the downloads like ``close()``, but without waiting.
public actor DownloadManager {
    /// A download in this process.
    struct Managed {
        var item: DownloadItem { didSet { location.update(item) } }
        let location: DownloadLocation
        let status: DownloadStatus
        var run: ManagedRun?
        /// The job of the last run, by which the received bytes are removed.
        var job: (any RunnableDownload)?
    }

    nonisolated let registry = DownloadRegistry()
    nonisolated let log = ReplayingEventBroadcaster<DownloadManagerEvent>()
    nonisolated let isAllFinished = CurrentValue(true)
    nonisolated let isClosed = CurrentValue(false)
    nonisolated let cancelledCount = Atomic(0)
    nonisolated let runs = RunGroup()
    let session: HTTPSession
    let directory: FilePath
    let store: QueueStore<DownloadItem>
    let slots: HostConnectionSlots
    let prepare: (@Sendable (inout HTTPHeaders, HTTPURL) async throws -> Void)?
    let make: DownloadFactory
    let now: @Sendable () -> MonotonicTime
    var machine: DownloadQueueMachine
    var managed: [DownloadID: Managed] = [:]
    /// The download of each target file.
    var claims: [String: DownloadID] = [:]
    /// The downloads whose latest record is not on disk.
    var unsaved: Set<DownloadID> = []
    var lastNumber: UInt64
    var lastOrder: UInt64
    /// The downloads whose first record is being written.
    var adding: [DownloadID: (item: DownloadItem, isOver: CurrentValue<Bool>)] = [:]
    var isClosing = false

    /// Opens a directory. `make` creates the jobs: each is a ``DownloadJob``, except in tests.
    package init(
        session: HTTPSession, directory: FilePath, limits: DownloadLimits = DownloadLimits(),
        prepare: (@Sendable (inout HTTPHeaders, HTTPURL) async throws -> Void)? = nil, aging: Duration = .seconds(60),
        files: any FileSystem = LinuxFileSystem(),
        now: @escaping @Sendable () -> MonotonicTime = { MonotonicTime.now() }, make: @escaping DownloadFactory
    ) async throws {
        let (store, contents) = try await QueueStore<DownloadItem>.open(directory.string, files: files)
        (self.session, self.directory, self.store) = (session, directory, store)
        (self.prepare, self.make, self.now) = (prepare, make, now)
        slots = HostConnectionSlots(limit: limits.connectionsPerHost)
        machine = DownloadQueueMachine(limits: limits, aging: aging)
        lastNumber = contents.lastNumber
        lastOrder = contents.items.last?.order ?? 0
        if limits.bandwidth != nil || limits.bandwidthPerHost != nil { limitBandwidth() }
        restore(contents)
    }

    deinit {
        runs.cancel()
        end()
    }

    // MARK: Inspection

    /// All downloads in the order of their addition, including those of earlier processes, and those that have ended
    /// and were not removed. A handle keeps the manager alive.
    public nonisolated var all: [Download] { registry.ids.compactMap { download($0) } }

    /// Returns a handle of a download, which keeps the manager alive; `nil` for an unknown or cancelled download.
    public nonisolated func download(_ id: DownloadID) -> Download? {
        registry.entry(of: id).map { entry in
            Download(
                id: id, status: entry.status,
                controller: ManagedDownload(id: id, location: entry.location, manager: self))
        }
    }

    /// Returns the states of a download (``Download/states``): for an unknown download only `.cancelled`.
    public nonisolated func states(of id: DownloadID) -> DownloadStates { status(of: id).stateSequence }

    /// Returns the progress of a download (``Download/progress``): for an unknown download one value without bytes.
    public nonisolated func progress(of id: DownloadID) -> DownloadProgressSequence { status(of: id).progressSequence }

    private nonisolated func status(of id: DownloadID) -> DownloadStatus {
        let status = registry.entry(of: id)?.status ?? DownloadStatus(.cancelled)
        if case .cancelled = status.state { status.end() }
        return status
    }

    /// The progress of all known downloads together: the current value first. A slow consumer skips values.
    ///
    /// ```swift
    /// for await total in downloads.progress { bar.set(total.fractionCompleted) }
    /// ```
    public nonisolated var progress: LatestValues<TotalDownloadProgress> { LatestValues(registry.total, \.progress) }

    /// All events in order, starting with the last 256 past ones of this process. Downloads that ended in earlier
    /// processes are in ``all``. The sequence ends when the manager is closed or released.
    public nonisolated var events: EventSequence<DownloadManagerEvent> { log.subscribe() }

    /// The last 256 events. The first events of a manager report files in the directory that are not downloads.
    package nonisolated var pastEvents: [DownloadManagerEvent] { log.pastEvents }

    /// Waits until every added download is finished, failed or cancelled. It also waits for paused downloads, and for
    /// downloads that are added before the waiting task resumes.
    ///
    /// ```swift
    /// for (id, error) in try await downloads.allFinished.failed { print(id, error) }
    /// ```
    /// - Returns: The results. A failed download is not an error here; see ``DownloadSummary/requireSuccess()``.
    /// - Throws: `CancellationError` if the task is cancelled or the manager is closed first.
    public nonisolated var allFinished: DownloadSummary {
        get async throws {
            guard await isAllFinished.becomesTrue() else { throw CancellationError() }
            return summary
        }
    }

    private nonisolated var summary: DownloadSummary {
        var summary = DownloadSummary(cancelledCount: cancelledCount.load(ordering: .relaxed))
        for id in registry.ids {
            switch registry.entry(of: id)?.status.state {
            case .finished(let result): summary.finished[id] = result
            case .failed(let error): summary.failed[id] = error
            case .cancelled, nil: continue
            case let state?: summary.unfinished[id] = state
            }
        }
        return summary
    }

    // MARK: Closing

    /// Stops the running downloads, stores the received bytes, and releases the directory. Returns when no connection
    /// and no file is open. The next manager of the directory resumes the unfinished downloads. On Ctrl-C and SIGTERM,
    /// call this and not ``pauseAll()``, after which they would stay paused.
    ///
    /// It waits for the downloads, so the closure that prepares their requests must not await it. ``all`` and the
    /// properties of its handles can still be read: a download that was running is then ``DownloadState/waiting``.
    /// - Returns: The results so far, and the unfinished downloads.
    @discardableResult public func close() async -> DownloadSummary {
        guard !isClosing else {
            await isClosed.becomesTrue()
            return summary
        }
        isClosing = true
        machine.close()
        for entry in managed.values { entry.run?.stop() }
        await runs.finish()
        await save(unsaved.sorted())
        await store.close(lastNumber: lastNumber)
        end()
        isClosed.update { true }
        return summary
    }

    private nonisolated func end() {
        registry.end()
        isAllFinished.finish()
        log.end()
    }
}

/// The downloads of a ``DownloadManager`` when all were over, or when it was closed, without removed ones.
public struct DownloadSummary: Sendable, CustomStringConvertible {
    /// The complete files.
    public var finished: [DownloadID: DownloadResult] = [:]
    /// The errors of the failed downloads, also of those that failed in an earlier process and were not resumed.
    public var failed: [DownloadID: HTTPError] = [:]
    /// The states of the downloads that are not over: paused or waiting. The directory's next manager restores them.
    public var unfinished: [DownloadID: DownloadState] = [:]
    /// The number of cancelled downloads whose removal was completed since the manager was opened.
    public var cancelledCount = 0

    /// Throws an error if a download failed.
    /// - Throws: The error of the failed download that was added first.
    public func requireSuccess() throws(HTTPError) {
        if let first = failed.min(by: { $0.key < $1.key }) { throw first.value }
    }

    /// The numbers of downloads, such as `3 finished, 1 failed, 2 unfinished, 0 cancelled`.
    public var description: String {
        "\(finished.count) finished, \(failed.count) failed, \(unfinished.count) unfinished, \(cancelledCount) cancelled"
    }
}

/// An event of a ``DownloadManager``. A slow subscriber misses no event. More cases may be added: a `switch` needs a
/// default. URLs have no user info; those in a result or an error may be the ones after redirects.
public enum DownloadManagerEvent: Sendable {
    /// A download was added, and now survives the process.
    case added(DownloadID, HTTPURL)
    /// A download runs, for the first time or again.
    case began(DownloadID, HTTPURL)
    /// The file is complete.
    case finished(DownloadID, DownloadResult)
    /// The download failed; the others continue.
    case failed(DownloadID, HTTPURL, HTTPError)
    /// A transient failure; the next attempt follows after the delay (``DownloadEvent/retrying(_:after:failures:)``).
    case retrying(DownloadID, HTTPURL, HTTPError, after: Duration)
    /// The download is paused until it is resumed.
    case paused(DownloadID, HTTPURL)
    /// The download was cancelled, and nothing of it is left.
    case cancelled(DownloadID, HTTPURL)
    /// The record of a download could not be written, or its bytes could not be removed. The download continues in this
    /// process; the next process that opens the directory may find its previous state.
    case fileFailed(DownloadID, HTTPError)
    /// A file of the directory is damaged. It was moved to this path in the directory `corrupt`, and its download is no
    /// longer known. The received bytes remain next to the target.
    case itemQuarantined(path: FilePath, reason: String)
    /// A file of the directory was left in place: a newer version of Martlet wrote it, or it cannot be read now.
    case itemSkipped(path: FilePath, reason: String)
    /// Every added download is finished, failed or cancelled. Emitted each time that this happens.
    case allFinished
}

/// An event of a download. A slow subscriber misses no event.
public enum DownloadEvent: Sendable {
    /// A run started, and reuses that many bytes of earlier runs.
    case started(resumedByteCount: UInt64)
    /// The received bytes can no longer be used, and the file is fetched from its start.
    case restarted(RestartReason)
    /// A transient failure; the next attempt follows after the delay. `failures` counts since the last new byte.
    case retrying(HTTPError, after: Duration, failures: Int)
    /// The download uses one of its URLs for the first time (``DownloadOptions/mirrors``). The URL has no user info.
    case urlUsed(HTTPURL)
    /// A request to one of several URLs failed. The URL is not used for a while, or not again.
    case urlFailed(HTTPURL, HTTPError)
    /// All bytes are received and are compared with the checksums.
    case verifying
    /// The file is complete and has its name.
    case finished(DownloadResult)
    /// This run failed. Received bytes are retained if ``HTTPError/resumableByteCount`` is set.
    case failed(HTTPError)
    /// The download was paused, and the received bytes are retained.
    case paused
    /// The download was cancelled.
    case cancelled

    /// The reason why a download was restarted.
    public enum RestartReason: String, Hashable, Sendable, Codable {
        /// The file on the server has changed.
        case changed
        /// The server does not send parts of the file, or not the requested ones.
        case rangesRejected
        /// Nothing shows that the received bytes still belong to the file.
        case notResumable
        /// The last 64 KiB of the received bytes differ from those of the server.
        case overlapDiffers
        /// The file is fetched from another URL, which may have another file, or from only one URL, because the bytes
        /// of several did not match the checksum.
        case otherURL
    }
}

/// The limits of a ``DownloadManager`` (see ``DownloadManager/setLimits(_:)``). Numbers below 1 count as 1, except
/// ``concurrentFiles``.
///
/// ```swift
/// let limits = DownloadLimits(concurrentFiles: 4, bandwidth: .bytesPerSecond(500_000))
/// ```
///
/// A rate replaces that of the session's ``BandwidthLimits``. ``DownloadOptions/bandwidth`` is the rate of one
/// download. The lowest rate that applies to a transfer counts.
public struct DownloadLimits: Hashable, Sendable, Codable {
    /// The maximum number of concurrent downloads; 3 by default. With 0 none starts, for programs that list or change
    /// the stored downloads; then ``DownloadManager/allFinished`` waits until ``DownloadManager/setLimits(_:)`` raises
    /// it.
    public var concurrentFiles: Int
    /// The maximum number of concurrent downloads from one host (name and port); 2 by default.
    public var perHost: Int
    /// The maximum number of connections to one host; 6 by default, so that many segments do not look like an attack.
    public var connectionsPerHost: Int
    /// The maximum rate of all response bodies together; `nil` (the default) for that of the session.
    public var bandwidth: BandwidthRate?
    /// The maximum rate of all response bodies of one host on all ports; `nil` (the default) for that of the session.
    public var bandwidthPerHost: BandwidthRate?

    /// Creates limits; the properties document the defaults.
    public init(
        concurrentFiles: Int = 3, perHost: Int = 2, connectionsPerHost: Int = 6, bandwidth: BandwidthRate? = nil,
        bandwidthPerHost: BandwidthRate? = nil
    ) {
        (self.concurrentFiles, self.perHost) = (concurrentFiles, perHost)
        self.connectionsPerHost = connectionsPerHost
        (self.bandwidth, self.bandwidthPerHost) = (bandwidth, bandwidthPerHost)
    }
}

extension SessionConfiguration {
    /// The configuration for background transfers: no total timeout, and no timeout for the wait for a connection.
    ///
    /// Transfers outlive the process with ``DownloadManager/background(directory:configuration:limits:prepare:)`` only.
    public static var background: SessionConfiguration {
        var configuration = SessionConfiguration.default
        configuration.timeouts.total = nil
        configuration.timeouts.poolWait = nil
        // Long transfers can wait for a network that returns slowly.
        configuration.timeouts.connect = .seconds(30)
        return configuration
    }
}
