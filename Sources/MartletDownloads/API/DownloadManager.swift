import MartletURL
import MartletCaching
public import MartletCore
import MartletStreams
public import MartletConnections
package import MartletStorage
package import MartletTransport
public import SystemPackage

/// Many downloads, which outlive the process.
///
/// They belong to a directory: whoever opens it next goes on with those that were not over, where they stopped. Paused ones
/// stay paused, and failed ones failed, until they are resumed. One manager at a time has a directory, in one process;
/// ``close()`` lets others have it, and so does the end of the process, however it comes.
///
/// What is known of a download is written to the directory, for its owner alone, before ``add(_:to:options:priority:)``
/// returns. Credentials are not: user names and passwords of URLs, the fields `Authorization`, `Proxy-Authorization`, `Cookie`
/// and `Set-Cookie`, and ``MartletCore/RequestOptions/authentication``. They last as long as the manager; a closure given to
/// the initialiser adds them at each run, in each process.
///
/// Letting go of the manager and of all handles stops the downloads, as ``close()`` does, without waiting.
public actor DownloadManager {
    /// What is known of a download in this process.
    struct Managed {
        var item: DownloadItem { didSet { place.update(item) } }
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
        get async throws { guard await isAllFinished.becomesTrue() else { throw CancellationError() } }
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

/// What happens to the downloads of a ``DownloadManager``. None is ever left out for a slow subscriber. More may be added: a
/// `switch` needs a default.
public enum DownloadManagerEvent: Sendable {
    /// It was added, and survives the process from here on.
    case added(DownloadID)
    /// It runs, for the first time or again.
    case began(DownloadID)
    /// Its file is there.
    case finished(DownloadID, DownloadResult)
    /// It failed; the others go on.
    case failed(DownloadID, HTTPError)
    /// It is paused, and stays so until it is resumed.
    case paused(DownloadID)
    /// It was cancelled, and nothing of it is left.
    case cancelled(DownloadID)
    /// What is known of it could not be written, or what has come of it could not be removed. It goes on in this process;
    /// the next one that opens the directory may find it as it was before.
    case fileFailed(DownloadID, HTTPError)
    /// A file of the directory is damaged: it is in its folder `corrupt` now, at this path, and its download is not known any
    /// more. What had come of it lies beside its target.
    case itemSetAside(path: FilePath, reason: String)
    /// A file of the directory cannot be used and was left as it is: a newer version of Martlet wrote it, or it cannot be
    /// read at the moment.
    case itemLeftAlone(path: FilePath, reason: String)
    /// Every download that was added is finished, has failed or was cancelled. It comes once each time that this happens.
    case allFinished
}

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
    /// It is over without the file, for this run. What has come is kept where ``MartletCore/HTTPError/keptByteCount`` says so.
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

/// How much a ``DownloadManager`` does at once. Numbers below 1 count as 1.
public struct DownloadLimits: Hashable, Sendable, Codable {
    /// How many files are downloaded at once; 3 by default.
    public var files: Int
    /// How many of them from one host; 2 by default. A host is a name and a port here, and for the connections.
    public var perHost: Int
    /// How many connections downloads have to one host, all together; 6 by default, as browsers have. It keeps many files
    /// of many segments from looking like an attack.
    public var connectionsPerHost: Int
    /// How fast all bodies of the session may come together; `nil`, the default, for what the session's configuration says.
    public var bandwidth: BandwidthRate?
    /// How fast all bodies of the session may come from one host, whatever its ports; `nil`, the default, for what the
    /// session's configuration says.
    public var bandwidthPerHost: BandwidthRate?

    /// Limits; see the properties for what they are by default.
    public init(
        files: Int = 3, perHost: Int = 2, connectionsPerHost: Int = 6, bandwidth: BandwidthRate? = nil,
        bandwidthPerHost: BandwidthRate? = nil
    ) {
        self.files = files
        self.perHost = perHost
        self.connectionsPerHost = connectionsPerHost
        self.bandwidth = bandwidth
        self.bandwidthPerHost = bandwidthPerHost
    }
}

extension SessionConfiguration {
    /// The defaults, for transfers that belong to a directory rather than to whoever waits for them: no clock ends a call
    /// because the whole of it takes long, or because others are before it.
    ///
    /// What outlives the process is the work of ``DownloadManager/background(directory:configuration:limits:prepare:)``.
    public static var background: SessionConfiguration {
        var configuration = SessionConfiguration.default
        configuration.timeouts.total = nil
        configuration.timeouts.poolWait = nil
        // What reconnecting costs is nothing to them, so that a network that comes back slowly is waited for.
        configuration.timeouts.connect = .seconds(30)
        return configuration
    }
}
