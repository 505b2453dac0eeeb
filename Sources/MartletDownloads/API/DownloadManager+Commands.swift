import MartletURL
import MartletCaching
import MartletCore
import MartletHosts
import MartletStorage
public import MartletConnections
public import SystemPackage

// What can be asked of a manager. What is asked at the same time as a download ends is decided in one order: a file that is
// there is finished, whatever was asked; what was to be cancelled is removed unless it is finished; a failure is one, though
// it was to be paused.
extension DownloadManager {
    // MARK: Adding

    /// Adds a download to a file of that name, whose folder must exist; all else as with a ``DownloadTarget``.
    @discardableResult
    public func add(
        _ url: String, to path: FilePath, options: DownloadOptions = DownloadOptions(),
        priority: DownloadPriority = .normal
    ) async throws -> DownloadID { try await add(url, to: .file(path), options: options, priority: priority) }

    /// Adds a download, which begins when it is its turn. When this returns, it survives the process; when this throws,
    /// there is nothing of it.
    ///
    /// - Parameters:
    ///   - url: Where the file is.
    ///   - target: Where it goes; a relative path begins at the folder that the process works in now.
    ///   - options: How it is downloaded.
    ///   - priority: Its place among those that wait.
    /// - Returns: What it is known by, in other processes too.
    /// - Throws: An ``HTTPError``: `.invalidURL`; `.invalidRequest` where the options have a closure that cannot be written;
    ///   `.alreadyInProgress` where another download of this manager that is not finished is about the same file; `.diskFull`
    ///   or `.fileFailed` where it cannot be written down; `.sessionInvalidated` when the manager was closed.
    ///   `CancellationError` when the task was cancelled before.
    @discardableResult
    public func add(
        _ url: String, to target: DownloadTarget, options: DownloadOptions = DownloadOptions(),
        priority: DownloadPriority = .normal
    ) async throws -> DownloadID {
        let place = try HTTPURL(downloading: url)
        try checkOpen()
        try Task.checkCancellation()
        guard lastNumber < .max, lastOrder < .max else {
            throw HTTPError(.fileFailed, phase: .preparing, message: "the directory has no number left")
        }
        let absolute = try HTTPError.storing { () throws(StorageError) -> DownloadTarget in
            switch target {
            case .file(let path): .file(FilePath(try WorkingFolder.absolute(path.string)))
            case .folder(let path): .folder(FilePath(try WorkingFolder.absolute(path.string)))
            }
        }
        var item = DownloadItem(
            id: DownloadID(lastNumber + 1), order: lastOrder + 1, url: place, target: absolute)
        item.options = options
        item.priority = priority
        if let claim = item.claim, let other = claims[claim] {
            throw HTTPError(
                .alreadyInProgress, phase: .preparing,
                message: "download \(other) is about \(claim) already; resume, cancel or remove it",
                origin: place.origin.description)
        }
        lastNumber += 1
        lastOrder += 1
        take(item)
        do throws(HTTPError) {
            try await store.add(item)
        } catch {
            release(item)
            throw error
        }
        enter(item)
        return item.id
    }

    // MARK: One download

    /// Stops a download, keeping what has come. It stays paused, in other processes too, until it is resumed. Nothing where it
    /// is over.
    ///
    /// Returns when no connection and no file of it is open any more, and it is written down that it is paused; earlier when
    /// the task is cancelled, which does not take the pause back.
    public func pause(_ id: DownloadID) async { await pause([id]) }

    /// Lets a paused or failed download go on, at the end of the line. Nothing where it waits or runs.
    ///
    /// - Parameters:
    ///   - id: Which one.
    ///   - url: Where the file is now, such as a freshly signed URL; `nil` for where it was. What has come is kept where the
    ///     validators are the same there. Where the download runs, its next run begins there.
    /// - Throws: An ``HTTPError``: `.invalidURL`; `.invalidRequest` where the download is finished, was cancelled or is not
    ///   known; `.sessionInvalidated` when the manager was closed.
    public func resume(_ id: DownloadID, from url: String? = nil) async throws {
        var place: HTTPURL?
        if let url { place = try HTTPURL(downloading: url) }
        try await resume(id, at: place)
    }

    /// Ends a download and removes what has come of it, and all that is known of it. A file that is complete stays, and so
    /// does what is known of it. Returns when that is done; earlier when the task is cancelled, which does not take the
    /// cancellation back.
    public func cancel(_ id: DownloadID) async {
        guard !isClosing, let status = managed[id]?.status else { return }
        let old = machine.phase(of: id)
        let effects = machine.cancel(id, now: now())
        if old != machine.phase(of: id) {
            apply(effects)
            await save([id])
        }
        for await state in DownloadStates(source: status.states) {
            switch state {
            case .finished, .cancelled: return
            case .waiting, .running, .verifying, .paused, .failed: continue
            }
        }
    }

    /// Forgets a download that is finished or has failed. What came of a failed one stays beside its target, and is found by
    /// a later download to it.
    /// - Throws: An ``HTTPError``: `.invalidRequest` where the download is not over, or not known; `.fileFailed` where its file
    ///   in the directory cannot be removed, so that the next manager finds it; `.sessionInvalidated` when the manager was
    ///   closed.
    public func remove(_ id: DownloadID) async throws {
        try checkOpen()
        guard let entry = managed[id], machine.remove(id) else {
            throw HTTPError(
                .invalidRequest, phase: .preparing,
                message: managed[id] == nil ? "there is no download \(id)" : "download \(id) is not over")
        }
        forget(entry.item)
        if let fault = await store.remove(id) { throw fault }
    }

    /// Changes the place of a download among those that wait. One that runs goes on.
    public func setPriority(_ priority: DownloadPriority, of id: DownloadID) async {
        guard !isClosing, managed[id] != nil else { return }
        machine.setPriority(priority, of: id)
        managed[id]?.item.priority = priority
        await save([id])
    }

    /// Changes how fast a download may go, at once and in later runs; `nil` for as fast as the other limits allow.
    public func setBandwidth(_ rate: BandwidthRate?, of id: DownloadID) async {
        guard !isClosing, managed[id] != nil else { return }
        managed[id]?.item.options.bandwidth = rate
        managed[id]?.run?.setBandwidth(rate)
        await save([id])
    }

    // MARK: All downloads

    /// Pauses all downloads that wait or run, as ``pause(_:)`` does; none begins meanwhile.
    public func pauseAll() async { await pause(managed.keys.sorted()) }

    /// Lets all paused downloads go on, in the order in which they were added. Failed ones stay as they are.
    public func resumeAll() async {
        guard !isClosing else { return }
        var resumed: [DownloadID] = []
        for id in managed.keys.sorted() {
            switch machine.phase(of: id) {
            case .paused, .stopping(.pause): if resumeNow(id, at: nil) { resumed.append(id) }
            default: continue
            }
        }
        await save(resumed)
    }

    /// Changes how much is done at once. Those that run go on; where there is room now, others begin at once. Rates act at
    /// once.
    public func setLimits(_ limits: DownloadLimits) {
        guard !isClosing else { return }
        let old = self.limits
        self.limits = limits
        if (old.bandwidth, old.bandwidthPerHost) != (limits.bandwidth, limits.bandwidthPerHost) {
            limitBandwidth()
        }
        slots.setLimit(limits.connectionsPerHost)
        apply(machine.setLimits(limits, now: now()))
    }
}
