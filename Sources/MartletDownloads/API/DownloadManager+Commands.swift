public import MartletCore

// The commands of a manager. If a command coincides with the end of a run, the outcome of the run takes precedence over
// a pause. A download that is being cancelled is removed, unless its file is already complete.
extension DownloadManager {
    // MARK: Adding

    /// The action for a download that the manager already has.
    public enum DuplicatePolicy: Hashable, Sendable {
        /// Adding throws if the manager has an unfinished download with the same target file.
        case fail
        /// Nothing is added if the manager has a download with the same URL and target in any state, or an unfinished
        /// one with the same target file. Its identifier is returned, and it keeps its options and its priority.
        /// A finished download whose file no longer exists is removed, and the new one is added. Fragments and
        /// signatures of URLs are not compared. A new ``DownloadOptions/checksum`` is an error unless the existing
        /// download has the same one, or its file was compared with it.
        case existing
    }

    /// Adds a download to a file whose directory must exist. Otherwise like the function with a ``DownloadTarget``.
    @discardableResult public func add(
        _ target: some HTTPTarget, to path: some FilePathConvertible, options: DownloadOptions = DownloadOptions(),
        priority: DownloadPriority = .normal, ifPresent policy: DuplicatePolicy = .fail
    ) async throws -> DownloadID {
        try await add(target, to: .file(path), options: options, priority: priority, ifPresent: policy)
    }

    /// Adds a download to the queue. When this returns, it survives the process. After an error nothing is stored.
    ///
    /// - Parameters:
    ///   - url: The URL of the file, or a GET request whose header fields are added to those of the options.
    ///   - target: The target; a relative path is resolved against the working directory.
    ///   - options: The options. Those of an existing download that is returned do not change.
    ///   - priority: The priority among the waiting downloads.
    ///   - policy: The action for a download that the manager already has; ``DuplicatePolicy/fail`` by default. With
    ///     ``DuplicatePolicy/existing`` a program may add all of its downloads at each start.
    /// - Returns: The identifier, stable across processes.
    /// - Throws: An ``HTTPError``: `.invalidURL`; `.invalidHeader`; `.invalidRequest` for options with a closure, for a
    ///   request that is not a GET, and if an existing download has another checksum or none; `.alreadyInProgress` if
    ///   another unfinished download has the same file; `.diskFull` or `.fileFailed` if the record cannot be written;
    ///   `.downloadManagerClosed`. `CancellationError` if the task was cancelled before the download was stored.
    @discardableResult public func add(
        _ url: some HTTPTarget, to target: DownloadTarget, options: DownloadOptions = DownloadOptions(),
        priority: DownloadPriority = .normal, ifPresent policy: DuplicatePolicy = .fail
    ) async throws -> DownloadID {
        var options = options
        let address = try options.take(url).withoutFragment
        try checkOpen()
        try Task.checkCancellation()
        let absolute = try HTTPError.storing { () throws(StorageError) -> DownloadTarget in
            switch target.kind {
            case .file(let path): .file(FilePath(try WorkingDirectory.absolute(path.string)))
            case .directory(let path): .directory(FilePath(try WorkingDirectory.absolute(path.string)))
            }
        }
        var item = DownloadItem(id: DownloadID(0), order: 0, url: address, target: absolute)
        item.options = options
        item.priority = priority
        if policy == .existing, let id = try await existing(item) { return id }
        guard lastNumber < .max, lastOrder < .max else {
            throw HTTPError(.fileFailed, phase: .preparing, message: "all download numbers are used")
        }
        if let claim = item.claim, let other = claims[claim] {
            let phase = machine.phase(of: other)
            let message =
                phase == .removing || phase == .stopping(.cancel)
                ? "download \(other) of \(claim) is being cancelled; await cancel first"
                : "download \(other) already has the file \(claim); resume, cancel or remove it, "
                    + "or add with ifPresent: .existing"
            throw HTTPError(.alreadyInProgress, phase: .preparing, message: message, method: .get, url: address)
        }
        lastNumber += 1
        lastOrder += 1
        (item.id, item.order) = (DownloadID(lastNumber), lastOrder)
        take(item)
        let addition = (item: item, isOver: CurrentValue(false))
        adding[item.id] = addition
        defer {
            adding[item.id] = nil
            addition.isOver.update { true }
        }
        do throws(HTTPError) { try await store.add(item) } catch {
            release(item)
            throw error
        }
        enter(item)
        return item.id
    }

    /// Returns the download that an item would duplicate, if any. Waits while such a download is being added, and
    /// removes finished ones whose files no longer exist.
    private func existing(_ item: DownloadItem) async throws -> DownloadID? {
        let (unsigned, claim) = (SignedURL.unsigned(item.url.absoluteForm), item.claim)
        while let addition = claim.flatMap({ claims[$0] }).flatMap({ adding[$0] })
            ?? adding.values.first(where: { $0.item.isSameTransfer(as: item, at: unsigned) })
        {
            await addition.isOver.becomesTrue()
            try Task.checkCancellation()
        }
        try checkOpen()
        let holder = claim.flatMap { claims[$0] }
        let found = managed.values.map(\.item).filter { other in
            switch machine.phase(of: other.id) {
            case .removing, .stopping(.cancel), nil: false
            case .finished, .recording: other.isSameTransfer(as: item, at: unsigned)
            case .waiting, .running, .stopping, .paused, .failed:
                other.id == holder || other.isSameTransfer(as: item, at: unsigned)
            }
        }.sorted { $0.id < $1.id }
        for other in found {
            guard case .finished(let result) = other.stage, await store.isMissing(result.path) else { continue }
            if machine.phase(of: other.id) == .finished { try await remove(other.id) }
            return try await existing(item)
        }
        guard let first = found.first, let checksum = item.options.checksum else { return found.first?.id }
        if let match = found.first(where: { $0.verifies(checksum) }) { return match.id }
        let stored = first.options.checksum.map { "the checksum \($0)" } ?? "no checksum"
        throw HTTPError(
            .invalidRequest, phase: .preparing,
            message: "download \(first.id) of this URL or file was added with \(stored), so that \(checksum) would not "
                + "be verified; cancel or remove it, and add it again", method: .get, url: item.url)
    }

    // MARK: One download

    /// Stops a download, stores the received bytes and closes its connections and files. It stays paused in later
    /// processes. Has no effect on a download that is over. Cancelling the task ends only the wait.
    public func pause(_ id: DownloadID) async { await pause([id]) }

    /// Resumes a paused or failed download, at the end of the queue. Has no effect on one that waits or runs.
    ///
    /// - Parameter url: The new URL of the file, such as a freshly signed one; `nil` for the previous one. Received
    ///   bytes are reused if the file's validators are the same there. If the download runs, its next run uses the URL.
    /// - Throws: An ``HTTPError``: `.invalidURL`; `.invalidRequest` if the download is finished, was cancelled or is
    ///   unknown; `.downloadManagerClosed` when the manager was closed.
    public func resume(_ id: DownloadID, from url: String? = nil) async throws {
        try await resume(id, at: try url.map { try HTTPSession.url($0) })
    }

    /// Cancels a download, and removes its received bytes and its record. Has no effect on a finished one. Cancelling
    /// the task ends only the wait.
    public func cancel(_ id: DownloadID) async {
        guard !isClosing, let status = managed[id]?.status else { return }
        let old = machine.phase(of: id)
        let effects = machine.cancel(id, now: now())
        if old != machine.phase(of: id) {
            apply(effects)
            await save([id])
        }
        for await state in status.stateSequence where state.isFinal { return }
    }

    /// Removes a finished or failed download from the list. A later download of the file can reuse the received bytes.
    /// - Throws: An ``HTTPError``: `.invalidRequest` if the download is not over, or unknown; `.fileFailed` if its
    ///   record cannot be removed, so that the next manager lists the download again; `.downloadManagerClosed`.
    public func remove(_ id: DownloadID) async throws {
        let entry = try known(id)
        guard machine.remove(id) else {
            throw HTTPError(.invalidRequest, phase: .preparing, message: "download \(id) is not over")
        }
        forget(entry.item)
        try await store.remove(id.number)
    }

    /// Changes the priority of a download among the waiting ones. A running download continues.
    /// - Throws: An ``HTTPError``: `.invalidRequest` for an unknown download; `.downloadManagerClosed`.
    public func setPriority(_ priority: DownloadPriority, of id: DownloadID) async throws {
        _ = try known(id)
        machine.setPriority(priority, of: id)
        managed[id]?.item.priority = priority
        await save([id])
    }

    /// Changes the maximum rate of a download, immediately and for later runs; `nil` for no separate limit.
    /// - Throws: The errors of ``setPriority(_:of:)``.
    public func setBandwidth(_ rate: BandwidthRate?, of id: DownloadID) async throws {
        _ = try known(id)
        managed[id]?.item.options.bandwidth = rate
        managed[id]?.run?.setBandwidth(rate)
        await save([id])
    }

    // MARK: All downloads

    /// Pauses all waiting and running downloads, like ``pause(_:)``. They stay paused in later processes. On Ctrl-C or
    /// SIGTERM call ``close()`` instead: the next process then resumes the downloads.
    public func pauseAll() async { await pause(managed.keys.sorted()) }

    /// Resumes all paused downloads in the order of their addition. Failed ones remain failed.
    public func resumeAll() async { await resumeAll { $0 == .paused || $0 == .stopping(.pause) } }

    /// Resumes all failed downloads in the order of their addition, also those that failed in an earlier process.
    public func retryFailed() async { await resumeAll { $0 == .failed } }

    private func resumeAll(_ isWanted: (DownloadQueueMachine.Phase) -> Bool) async {
        guard !isClosing else { return }
        let wanted = managed.keys.sorted().filter { machine.phase(of: $0).map(isWanted) == true }
        await save(wanted.filter { resumeNow($0, at: nil) })
    }

    /// Removes all finished downloads from the list. Their files stay.
    /// - Throws: The errors of ``remove(_:)``.
    public func removeFinished() async throws {
        for id in managed.keys.sorted() where machine.phase(of: id) == .finished { try await remove(id) }
    }

    /// Changes the limits. Running downloads continue, at the new rates; if slots become free, others start.
    public func setLimits(_ limits: DownloadLimits) {
        guard !isClosing else { return }
        let old = machine.limits
        let effects = machine.setLimits(limits, now: now())
        if (old.bandwidth, old.bandwidthPerHost) != (limits.bandwidth, limits.bandwidthPerHost) { limitBandwidth() }
        slots.setLimit(limits.connectionsPerHost)
        apply(effects)
    }
}
