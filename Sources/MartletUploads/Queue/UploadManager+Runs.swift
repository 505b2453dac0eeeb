import MartletCore
import MartletDownloads

// Carries out the decisions of the queue: starts and ends runs, and writes records.
extension UploadManager {
    func restore(_ items: [UploadItem]) {
        var arrivals: [DownloadQueueMachine.Arrival] = []
        for item in items {
            let (phase, state): (DownloadQueueMachine.Phase, UploadState) =
                switch item.stage {
                case .waiting: (.waiting, .waiting)
                case .paused: (.paused, .paused)
                case .cancelled: (.removing, .cancelled)
                case .finished(let result): (.finished, .finished(result))
                case .failed(let error): (.failed, .failed(error))
                }
            manage(item, state)
            if phase == .finished { managed[item.id]?.status.end() }
            arrivals.append(arrival(item, phase))
        }
        apply(machine.add(arrivals, now: now()))
    }

    func manage(_ item: UploadItem, _ state: UploadState) {
        let (id, progressByUpload) = (item.id, progressByUpload)
        let status = UploadStatus(state, UploadProgress(item)) { progress in
            progressByUpload.change { $0[id] = progress }
        }
        managed[id] = Managed(item: item, status: status)
    }

    func arrival(_ item: UploadItem, _ phase: DownloadQueueMachine.Phase) -> DownloadQueueMachine.Arrival {
        DownloadQueueMachine.Arrival(
            id: item.id.queued, host: item.host,
            priority: DownloadPriority(rawValue: Int(item.options.priority.rawValue)) ?? .normal, phase: phase)
    }

    func forget(_ id: UploadID) {
        managed.removeValue(forKey: id)?.status.end()
        progressByUpload.change { $0[id] = nil }
    }

    func apply(_ effects: DownloadQueueMachine.Effects) {
        for id in effects.stop { managed[UploadID(id)]?.run?.cancel() }
        for id in effects.discard { discard(UploadID(id)) }
        for id in effects.begin { begin(UploadID(id)) }
        isAllFinished.update { machine.isAllFinished }
    }

    private func begin(_ id: UploadID) {
        guard var entry = managed[id] else { return }
        entry.runNumber += 1
        entry.recordNumber = 0
        entry.isSettled = CurrentValue(false)
        entry.status.become(.running)
        let number = entry.runNumber
        // The manager is not retained, so that its release ends the runs.
        let order = UploadRun.Order(
            item: entry.item, session: session, status: entry.status, prepare: prepare
        ) { [weak self] checkpoint, recordNumber, isUrgent in
            guard let self else { throw CancellationError() }
            try await self.record(id, number, checkpoint, recordNumber, isUrgent)
        }
        managed[id] = entry
        // Unstructured, so that a run can be cancelled alone. The child of the group awaits it.
        follow(id, Task { try await UploadRun(order).run() }) { manager, result in await manager.end(id, result) }
    }

    private func discard(_ id: UploadID) {
        // The record says that the upload was cancelled, so the next manager discards it.
        guard !isClosing, let entry = managed[id] else { return }
        let order = UploadRun.Order(
            item: entry.item, session: session, status: entry.status, prepare: prepare, record: { _, _, _ in })
        // Unstructured like a run, so that ``close()`` can cancel it.
        let run = Task<UploadResult, any Error> {
            await UploadRun(order).discard()
            throw CancellationError()
        }
        follow(id, run) { manager, _ in await manager.discarded(id) }
    }

    /// Stores the task of an upload, and handles its end.
    private func follow(
        _ id: UploadID, _ run: Task<UploadResult, any Error>,
        onEnd: @escaping @Sendable (UploadManager, Result<UploadResult, any Error>) async -> Void
    ) {
        managed[id]?.run = run
        // The manager is not retained, so that its release ends the runs; the store is, for the directory's lock.
        runs.add { [weak self, store] in
            let result = await withTaskCancellationHandler {
                await run.result
            } onCancel: {
                run.cancel()
            }
            if let self { await onEnd(self, result) }
            withExtendedLifetime(store) {}
        }
    }

    /// Notes a checkpoint of a run, unless it noted a later one, and writes the latest one to disk if it is urgent.
    private func record(
        _ id: UploadID, _ run: UInt64, _ checkpoint: UploadMachine.Checkpoint, _ number: UInt64, _ isUrgent: Bool
    ) async throws {
        guard let entry = managed[id], entry.runNumber == run else { throw CancellationError() }
        if number > entry.recordNumber {
            managed[id]?.recordNumber = number
            managed[id]?.item.checkpoint = checkpoint
        }
        if isUrgent { try await save(id) }
    }

    private func end(_ id: UploadID, _ result: Result<UploadResult, any Error>) async {
        guard let entry = managed[id] else { return }
        defer { entry.isSettled.update { true } }
        managed[id]?.run = nil
        let outcome: DownloadQueueMachine.Outcome
        var state = UploadState.waiting
        switch result {
        case .success(let result): (outcome, state) = (.finished, .finished(result))
        case .failure(is CancellationError):
            outcome = .stopped
            let message = "a call of the upload was cancelled, or its session was invalidated; resume it"
            state = .failed(HTTPError(.systemFailed, phase: .processingResponse, message: message))
        case .failure(let error):
            outcome = .failed
            state = .failed(
                error as? HTTPError
                    ?? HTTPError(.systemFailed, phase: .processingResponse, message: "\(error)", underlying: error))
        }
        let effects = machine.end(id.queued, outcome, now: now())
        let phase = machine.phase(of: id.queued)
        switch (phase, state) {
        case (.recording, .finished(let result)):
            managed[id]?.item.stage = .finished(result)
            managed[id]?.item.checkpoint.offset = result.byteCount
        case (.failed, .failed(let error)): managed[id]?.item.stage = .failed(error)
        default: break
        }
        apply(effects)
        // Written before it is reported: otherwise the upload could appear unfinished after a kill.
        try? await save(id)
        let acknowledged = managed[id]?.item.checkpoint.offset ?? 0
        entry.status.change { ($0.completedByteCount, $0.acknowledgedByteCount) = (acknowledged, acknowledged) }
        switch phase {
        case .recording:
            entry.status.become(state)
            entry.status.end()
            apply(machine.recorded(id.queued))
        // Another command may have changed the state during the write.
        case .failed where machine.phase(of: id.queued) == .failed: entry.status.become(state)
        case .paused where machine.phase(of: id.queued) == .paused: entry.status.become(.paused)
        case .waiting where machine.phase(of: id.queued) == .waiting: entry.status.become(.waiting)
        default: break
        }
    }

    private func discarded(_ id: UploadID) async {
        guard !isClosing else { return }
        try? await store.remove(id.number)
        let effects = machine.discarded(id.queued)
        managed[id]?.status.become(.cancelled)
        forget(id)
        apply(effects)
    }

    /// Writes the record of an upload.
    func save(_ id: UploadID) async throws {
        guard var item = managed[id]?.item else { return }
        switch machine.phase(of: id.queued) {
        case .waiting, .running, .stopping(.again): item.stage = .waiting
        case .paused, .stopping(.pause): item.stage = .paused
        case .removing, .stopping(.cancel): item.stage = .cancelled
        case .recording, .failed, .finished: break
        case nil: return
        }
        managed[id]?.isUnsaved = true
        let error = await store.save([item])[item.number]
        managed[id]?.isUnsaved = error != nil
        if let error { throw error }
    }
}

extension UploadID {
    /// The identifier in the queue.
    var queued: DownloadID { DownloadID(number) }

    init(_ queued: DownloadID) { self.init(queued.number) }
}

extension DownloadLimits {
    init(_ limits: UploadLimits) { self.init(concurrentFiles: limits.concurrentFiles, perHost: limits.perHost) }
}
