public import MartletCore

// The commands of a manager. A command that coincides with the end of a download is decided in one order: a complete file is
// finished, whatever was requested; a cancelled download is removed unless it is finished; a failure is one even if a pause was
// requested.
extension DownloadManager {
    // MARK: Adding

    /// Adds a download to a file, whose directory must exist; otherwise as with a ``DownloadTarget``.
    @discardableResult
    public func add(
        _ target: some HTTPTarget, to path: some FilePathConvertible,
        options: DownloadOptions = DownloadOptions(), priority: DownloadPriority = .normal
    ) async throws -> DownloadID {
        try await add(target, to: .file(path), options: options, priority: priority)
    }

    /// Adds a download, which starts when it is its turn. When this returns, it survives the process; when this throws, nothing
    /// of it is left.
    ///
    /// - Parameters:
    ///   - url: the URL of the file, or a GET request whose header fields are added to those of the options.
    ///   - target: the target; a relative path starts at the current working directory.
    ///   - options: the options.
    ///   - priority: the priority among the waiting downloads.
    /// - Returns: The identifier, stable across processes.
    /// - Throws: An ``HTTPError``: `.invalidURL`; `.invalidHeader`; `.invalidRequest` if the options have a closure that cannot
    ///   be written, and for a request that is not a GET;
    ///   `.alreadyInProgress` if another unfinished download of this manager has the same file; `.diskFull` or `.fileFailed` if
    ///   its record cannot be written; `.sessionInvalidated` when the manager was closed. `CancellationError` when the task was
    ///   cancelled before.
    @discardableResult
    public func add(
        _ url: some HTTPTarget, to target: DownloadTarget, options: DownloadOptions = DownloadOptions(),
        priority: DownloadPriority = .normal
    ) async throws -> DownloadID {
        var options = options
        let place = try options.take(url)
        try checkOpen()
        try Task.checkCancellation()
        guard lastNumber < .max, lastOrder < .max else {
            throw HTTPError(.fileFailed, phase: .preparing, message: "the directory has no number left")
        }
        let absolute = try HTTPError.storing { () throws(StorageError) -> DownloadTarget in
            switch target.place {
            case .file(let path): .file(FilePath(try WorkingDirectory.absolute(path.string)))
            case .directory(let path): .directory(FilePath(try WorkingDirectory.absolute(path.string)))
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
                method: .get, url: place)
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

    /// Stops a download and stores the received bytes. It stays paused, in other processes too, until it is resumed. Has no
    /// effect on one that is over.
    ///
    /// Returns when no connection and no file of it is open and the pause is on disk; earlier when the task is cancelled, which
    /// does not undo the pause.
    public func pause(_ id: DownloadID) async { await pause([id]) }

    /// Resumes a paused or failed download, at the end of the queue. Has no effect on one that waits or runs.
    ///
    /// - Parameters:
    ///   - id: the download.
    ///   - url: the new URL of the file, such as a freshly signed one; `nil` for the previous one. Received bytes are reused if
    ///     the validators are the same there. If the download runs, its next run uses the URL.
    /// - Throws: An ``HTTPError``: `.invalidURL`; `.invalidRequest` if the download is finished, was cancelled or is unknown;
    ///   `.sessionInvalidated` when the manager was closed.
    public func resume(_ id: DownloadID, from url: String? = nil) async throws {
        try await resume(id, at: try url.map { try HTTPSession.url($0) })
    }

    /// Cancels a download, and removes the received bytes and its record. A complete file stays, and so does its record. Returns
    /// when that is done; earlier when the task is cancelled, which does not undo the cancellation.
    public func cancel(_ id: DownloadID) async {
        guard !isClosing, let status = managed[id]?.status else { return }
        let old = machine.phase(of: id)
        let effects = machine.cancel(id, now: now())
        if old != machine.phase(of: id) {
            apply(effects)
            await save([id])
        }
        for await state in status.stateSequence {
            switch state {
            case .finished, .cancelled: return
            case .waiting, .running, .verifying, .paused, .failed: continue
            }
        }
    }

    /// Forgets a finished or failed download. The received bytes of a failed one remain beside its target, and a later download
    /// to it finds them.
    /// - Throws: An ``HTTPError``: `.invalidRequest` if the download is not over, or unknown; `.fileFailed` if its record cannot
    ///   be removed, so that the next manager finds it; `.sessionInvalidated` when the manager was closed.
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

    /// Changes the priority of a download among the waiting ones. One that runs continues.
    public func setPriority(_ priority: DownloadPriority, of id: DownloadID) async {
        guard !isClosing, managed[id] != nil else { return }
        machine.setPriority(priority, of: id)
        managed[id]?.item.priority = priority
        await save([id])
    }

    /// Changes the maximum rate of a download, immediately and for later runs; `nil` for the rate that the other limits allow.
    public func setBandwidth(_ rate: BandwidthRate?, of id: DownloadID) async {
        guard !isClosing, managed[id] != nil else { return }
        managed[id]?.item.options.bandwidth = rate
        managed[id]?.run?.setBandwidth(rate)
        await save([id])
    }

    // MARK: All downloads

    /// Pauses all downloads that wait or run, as ``pause(_:)`` does; none starts meanwhile.
    public func pauseAll() async { await pause(managed.keys.sorted()) }

    /// Resumes all paused downloads in the order in which they were added. Failed ones remain failed.
    public func resumeAll() async {
        guard !isClosing else { return }
        let paused = managed.keys.sorted().filter { id in
            let phase = machine.phase(of: id)
            return phase == .paused || phase == .stopping(.pause)
        }
        await save(paused.filter { resumeNow($0, at: nil) })
    }

    /// Changes the limits. Running downloads continue; if there is room now, others start immediately. Rates apply immediately.
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
