import MartletCore
import Synchronization

// Carries out the machine's decisions: starts and ends runs, emits events, and writes records. Each function decides
// and emits before it first suspends. Decisions are written in their order.
extension DownloadManager {
    func restore(_ contents: QueueStore<DownloadItem>.Contents) {
        for finding in contents.findings {
            let (path, reason) = (finding.path, finding.reason)
            log.add(
                finding.isMoved
                    ? .itemQuarantined(path: path, reason: reason) : .itemSkipped(path: path, reason: reason))
        }
        var arrivals: [DownloadQueueMachine.Arrival] = []
        for item in contents.items {
            var phase = DownloadQueueMachine.Phase.waiting
            var state = DownloadState.waiting
            switch item.stage {
            case .waiting: break
            case .paused: (phase, state) = (.paused, .paused)
            case .cancelled: phase = .removing
            case .finished(let result): (phase, state) = (.finished, .finished(result))
            case .failed(let error): (phase, state) = (.failed, .failed(error))
            }
            // For observers, a download that is still to be removed was already cancelled.
            let status = manage(item, state, isVisible: phase != .removing)
            status.settleProgress(isFinished: phase != .waiting) { progress in
                progress.completedByteCount = item.completedByteCount
                progress.writtenByteCount = item.completedByteCount
                progress.totalByteCount = item.totalByteCount
                progress.resumedByteCount = item.completedByteCount
            }
            if phase == .finished { status.end() } else { take(item) }
            arrivals.append(arrival(item, phase))
        }
        apply(machine.add(arrivals, now: now()))
    }

    /// Adds a new download, whose record is on disk.
    func enter(_ item: DownloadItem) {
        _ = manage(item, .waiting)
        log.add(.added(item.id, url(of: item)))
        apply(machine.add([arrival(item, .waiting)], now: now()))
    }

    private func manage(_ item: DownloadItem, _ state: DownloadState, isVisible: Bool = true) -> DownloadStatus {
        let (id, location) = (item.id, DownloadLocation(item))
        let status = DownloadStatus(state) { [weak registry, log] event in
            if event == nil { registry?.count(id) }
            if case .retrying(let error, let delay, _)? = event {
                log.add(.retrying(id, location.url, error, after: delay))
            }
        }
        managed[item.id] = Managed(item: item, location: location, status: status)
        if isVisible { registry.add(item.id, status, location) }
        return status
    }

    private func arrival(_ item: DownloadItem, _ phase: DownloadQueueMachine.Phase) -> DownloadQueueMachine.Arrival {
        DownloadQueueMachine.Arrival(id: item.id, host: item.host, priority: item.priority, phase: phase)
    }

    func checkOpen() throws(HTTPError) {
        guard isClosing else { return }
        throw HTTPError(
            .downloadManagerClosed, phase: .preparing,
            message: "the download manager of \(directory) was closed; open it again")
    }

    /// Returns the download that a command names.
    /// - Throws: An ``HTTPError`` if the manager was closed, or no download has that number.
    func known(_ id: DownloadID) throws(HTTPError) -> Managed {
        try checkOpen()
        if let entry = managed[id] { return entry }
        throw HTTPError(.invalidRequest, phase: .preparing, message: "there is no download \(id)")
    }

    private func url(of item: DownloadItem) -> HTTPURL { item.currentURL.withoutUserInfo }

    // MARK: Effects

    func apply(_ effects: DownloadQueueMachine.Effects) {
        for id in effects.stop { managed[id]?.run?.stop() }
        for id in effects.discard { discard(id) }
        for id in effects.begin { begin(id) }
        isAllFinished.update { machine.isAllFinished }
        if effects.isAllFinished {
            log.add(.allFinished)
            if let delegate = session.configuration.delegate {
                // Unstructured, because the manager does not wait for user code.
                Task { [directory] in await delegate.backgroundFinished(in: directory) }
            }
        }
    }

    private func begin(_ id: DownloadID) {
        guard let entry = managed[id] else { return }
        let run = ManagedRun()
        managed[id]?.run = run
        entry.status.become(.running)
        log.add(.began(id, url(of: entry.item)))
        let order = ManagedRun.Order(
            plan: entry.item.plan, movedURLs: entry.item.movedURLs, status: entry.status, slots: slots,
            prepare: prepare, make: make, named: { [weak self] path in await self?.name(id, path) },
            onPublication: { [weak self] publication in
                // Without the manager the record cannot be written: end the run, which the next manager resumes.
                guard let self else { throw CancellationError() }
                await self.note(id, run, publication)
            })
        // The manager is not retained, so that its release ends the runs; the store is, for the directory's lock.
        runs.add { [weak self, store] in
            let outcome = await run.run(order)
            await self?.end(id, run, outcome)
            withExtendedLifetime(store) {}
        }
    }

    private func discard(_ id: DownloadID) {
        guard let entry = managed[id] else { return }
        let job = entry.job ?? make(entry.item.plan, entry.status, slots)
        // The received bytes may be recorded with any of the URLs.
        if entry.job == nil { for url in entry.item.movedURLs { job.move(to: url) } }
        runs.add { [weak self, store] in
            var fileError: HTTPError?
            do throws(HTTPError) { try await job.discard() } catch { fileError = error }
            await self?.discarded(id, fileError)
            withExtendedLifetime(store) {}
        }
    }

    // MARK: Reports of runs

    private func name(_ id: DownloadID, _ path: FilePath) async {
        guard managed[id]?.item.path == nil else { return }
        managed[id]?.item.path = path
        if let item = managed[id]?.item { take(item) }
        await save([id])
    }

    /// Writes the record of a complete file before the file gets its name. After a failure the run continues.
    private func note(_ id: DownloadID, _ run: ManagedRun, _ publication: PublicationRecord?) async {
        guard managed[id]?.run === run else { return }
        managed[id]?.item.publication = publication
        await save([id])
    }

    private func end(_ id: DownloadID, _ run: ManagedRun, _ outcome: ManagedRun.Outcome) async {
        defer { run.settle() }
        guard let entry = managed[id], entry.run === run else { return }
        let progress = entry.status.progress.value
        managed[id]?.run = nil
        managed[id]?.job = run.job
        managed[id]?.item.completedByteCount = progress.completedByteCount
        managed[id]?.item.totalByteCount = progress.totalByteCount
        if let path = run.job?.path { managed[id]?.item.path = path }
        var isQueued = false
        let effects = machine.end(id, outcome.machineOutcome, now: now())
        switch (machine.phase(of: id), outcome) {
        case (.recording, .finished(let result)):
            managed[id]?.item.stage = .finished(result)
            managed[id]?.item.publication = nil
            managed[id]?.item.path = result.path
            managed[id]?.item.completedByteCount = result.byteCount
            managed[id]?.item.totalByteCount = result.byteCount
            apply(effects)
            // Written before it is reported: otherwise the download could appear unfinished after a kill.
            await save([id])
            reportFinished(id, result)
            return
        case (.failed, .failed(let error)): reportFailed(id, error)
        case (.failed, _):
            let message = "a call of the download was cancelled, or its session was invalidated; resume it"
            reportFailed(id, HTTPError(.systemFailed, phase: .processingResponse, message: message))
        case (.paused, _): reportPaused(id)
        case (.waiting, _), (.running, _):
            entry.status.become(.waiting)
            isQueued = true
        default: break
        }
        apply(effects)
        if !isQueued || isClosing { await save([id]) }
    }

    private func discarded(_ id: DownloadID, _ fileError: HTTPError?) async {
        if let fileError { log.add(.fileFailed(id, fileError)) }
        do throws(HTTPError) { try await store.remove(id.number) } catch { log.add(.fileFailed(id, error)) }
        guard let entry = managed[id] else { return }
        let effects = machine.discarded(id)
        entry.status.settleProgress { $0 = DownloadProgress() }
        entry.status.events.add(.cancelled)
        cancelledCount.add(1, ordering: .relaxed)
        log.add(.cancelled(id, url(of: entry.item)))
        entry.status.become(.cancelled)
        forget(entry.item)
        entry.status.end()
        apply(effects)
    }

    private func reportFinished(_ id: DownloadID, _ result: DownloadResult) {
        guard let entry = managed[id] else { return }
        entry.status.settleProgress { $0.complete(result.byteCount) }
        entry.status.report(.finished(result), .finished(result))
        entry.status.end()
        release(entry.item)
        managed[id]?.job = nil
        log.add(.finished(id, result))
        apply(machine.recorded(id))
    }

    private func reportFailed(_ id: DownloadID, _ error: HTTPError) {
        guard let entry = managed[id] else { return }
        managed[id]?.item.stage = .failed(error)
        entry.status.settleProgress()
        entry.status.report(.failed(error), .failed(error))
        log.add(.failed(id, url(of: entry.item), error))
    }

    private func reportPaused(_ id: DownloadID) {
        guard let entry = managed[id] else { return }
        entry.status.settleProgress()
        entry.status.report(.paused, .paused)
        log.add(.paused(id, url(of: entry.item)))
    }

    // MARK: Commands

    func pause(_ ids: [DownloadID]) async {
        guard !isClosing else { return }
        let waiting = ids.filter { machine.phase(of: $0) == .waiting }
        let (paused, effects) = machine.pause(ids, now: now())
        for id in waiting { reportPaused(id) }
        apply(effects)
        let runs = paused.compactMap { managed[$0]?.run }
        await save(paused)
        for run in runs { await run.settled() }
    }

    func resume(_ id: DownloadID, at url: HTTPURL?) async throws {
        _ = try known(id)
        guard resumeNow(id, at: url) else {
            throw HTTPError(
                .invalidRequest, phase: .preparing, message: "download \(id) is finished, or being cancelled")
        }
        await save([id])
    }

    /// Resumes a download without writing its record.
    /// - Returns: Whether the download can continue.
    func resumeNow(_ id: DownloadID, at url: HTTPURL?) -> Bool {
        guard var entry = managed[id] else { return false }
        let old = machine.phase(of: id)
        if let url { entry.item.move(to: url) }
        guard let effects = machine.resume(id, host: url.map { _ in entry.item.host }, now: now()) else { return false }
        if old == .paused || old == .failed {
            lastOrder = lastOrder == .max ? .max : lastOrder + 1
            entry.item.order = lastOrder
            entry.item.stage = .waiting
            entry.status.settleProgress(isFinished: false)
            entry.status.become(.waiting)
        }
        managed[id]?.item = entry.item
        apply(effects)
        return true
    }

    func limitBandwidth() {
        var rates = session.configuration.bandwidth
        rates.total.download = machine.limits.bandwidth ?? rates.total.download
        rates.perHost.download = machine.limits.bandwidthPerHost ?? rates.perHost.download
        session.setBandwidthLimits(rates)
    }

    // MARK: Records

    /// Claims the file of a download.
    func take(_ item: DownloadItem) { if let claim = item.claim, claims[claim] == nil { claims[claim] = item.id } }

    /// Releases the file of a download.
    func release(_ item: DownloadItem) {
        var unnamed = item
        unnamed.path = nil
        for claim in [item.claim, unnamed.claim].compactMap({ $0 }) where claims[claim] == item.id {
            claims[claim] = nil
        }
    }

    func forget(_ item: DownloadItem) {
        managed[item.id] = nil
        unsaved.remove(item.id)
        registry.remove(item.id)
        release(item)
    }

    /// Writes the records of downloads. A failure is reported, and retried with the next change and on ``close()``.
    func save(_ ids: [DownloadID]) async {
        let items = ids.compactMap { snapshot($0) }
        let fileErrors = await store.save(items)
        for item in items where managed[item.id] != nil {
            if let fileError = fileErrors[item.number] {
                unsaved.insert(item.id)
                log.add(.fileFailed(item.id, fileError))
            } else {
                unsaved.remove(item.id)
            }
        }
    }

    private func snapshot(_ id: DownloadID) -> DownloadItem? {
        guard var item = managed[id]?.item else { return nil }
        switch machine.phase(of: id) {
        case .waiting, .running, .stopping(.again): item.stage = .waiting
        case .paused, .stopping(.pause): item.stage = .paused
        case .removing, .stopping(.cancel): item.stage = .cancelled
        case .recording, .failed, .finished: break
        case nil: return nil
        }
        return item
    }
}
