import MartletClient
import MartletStorage
import MartletTransport
import Synchronization
import SystemPackage

extension DownloadRun {
    func checkpoint() async {
        guard let (part, record, epoch) = snapshot() else {
            signal.yield(.checkpointed)
            return
        }
        let fault = await note(record, in: part, epoch: epoch)
        switch fault {
        case nil, .outdated: signal.yield(.checkpointed)
        case .taken: signal.yield(.broken(DownloadJob.busy(part.names.target), keeps: true))
        case .unsynced(let error):
            signal.yield(.broken(HTTPError(storage: error, origin: url.origin.description), keeps: false))
        case .unwritten(let error):
            signal.yield(.broken(HTTPError(storage: error, origin: url.origin.description), keeps: true))
        }
    }

    private func note(
        _ record: ResumeRecord, in part: PartFile, epoch: UInt32
    ) async -> PartFile.RecordFault? {
        await BlockingWorkers.disk.run {
            do throws(PartFile.RecordFault) {
                try part.note(record, epoch: epoch)
                return nil
            } catch {
                return error
            }
        }
    }

    /// What a record would say now; nil where there is nothing to say.
    private func snapshot() -> (PartFile, ResumeRecord, UInt32)? {
        let address = url.absoluteForm
        return state.withLock { state in
            let machine = state.machine
            guard let part = state.part, let plan = machine.plan, let known = machine.known else {
                return nil
            }
            let record = ResumeRecord(
                url: address, representation: known, total: plan.total, written: plan.written,
                isUnproven: machine.isUnproven, generation: machine.generation, digests: machine.digests,
                modified: machine.modified, owner: part.owner)
            return (part, record, machine.generation)
        }
    }

    /// Keeps what has come, if another run can go on with it; removes it otherwise.
    /// - Returns: Whether it is kept.
    func keep() async -> Bool {
        let (part, keeps) = state.withLock { ($0.part, $0.keeps && $0.machine.isResumable) }
        guard let part else { return false }
        if keeps, let (_, record, epoch) = snapshot() {
            switch await note(record, in: part, epoch: epoch) {
            // What could not be synced is not to be trusted, not by another run either.
            case .unsynced: break
            // Where the one before stands, another run goes on from there.
            case .unwritten: if part.record() != nil { return true }
            case nil, .outdated, .taken: return true
            }
        }
        await BlockingWorkers.shared.run { part.discard() }
        state.withLock { $0.isDiscarded = true }
        return false
    }

    // MARK: The end

    /// Verifies the file and gives it its name.
    func finish() async throws -> DownloadResult {
        let (part, machine, name) = state.withLock { ($0.part, $0.machine, $0.name) }
        guard let file = part, let total = machine.plan?.total else {
            throw HTTPError(.systemFailed, phase: .evaluating, message: "the download has no file")
        }
        var wanted = options.checksum.map { [$0] } ?? []
        for digest in machine.digests where !wanted.contains(digest) { wanted.append(digest) }
        if !wanted.isEmpty {
            job.status.become(.verifying)
            job.status.events.add(.verifying)
            try await Verification(wanted, origin: url.origin.description).check(
                file.file, total: total, files: files)
        }
        let result = result(file, machine, total: total, verified: wanted)
        if let name { return try job.take(name, result) }
        try Task.checkCancellation()
        return try await job.publish(file, result, modified: machine.modified, noting: noting)
    }

    private func result(
        _ file: PartFile, _ machine: DownloadMachine, total: UInt64, verified: [Checksum]
    ) -> DownloadResult {
        DownloadResult(
            path: FilePath(file.names.target), byteCount: total, resumedByteCount: machine.resumedByteCount,
            receivedByteCount: machine.receivedByteCount, verified: verified,
            url: machine.place ?? job.url.withoutUserInfo)
    }

    /// Gives the file its name on the worker that has written its last bytes, where it is complete and nothing is to be done
    /// before. It blocks. What fails here is done again, and told, by ``finish()``.
    func publishAtOnce() {
        guard noting == nil else { return }
        let found = state.withLock { state -> (PartFile, DownloadMachine)? in
            guard let part = state.part, state.keeps, state.machine.isOneComplete else { return nil }
            return (part, state.machine)
        }
        guard let (part, machine) = found, let total = machine.plan?.total else { return }
        let result = result(part, machine, total: total, verified: [])
        guard let name = try? job.publishAtOnce(part, result, modified: machine.modified) else { return }
        state.withLock { $0.name = name }
    }
}

extension HTTPError {
    /// The same error where nothing could be kept after all.
    var withoutKeptBytes: HTTPError {
        var error = self
        if let count = keptByteCount, let words = error.message.firstRange(of: "; \(count) bytes are kept") {
            error.message.removeSubrange(words)
        }
        error.keptByteCount = nil
        error.keptFile = nil
        return error
    }
}
