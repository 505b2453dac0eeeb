import MartletClient
import MartletStorage
import MartletTransport
import Synchronization
import SystemPackage

extension DownloadRun {
    func checkpoint() async {
        guard let (part, record, epoch) = snapshot() else {
            signals.send(.checkpointed)
            return
        }
        let fault = await note(record, in: part, epoch: epoch)
        switch fault {
        case nil, .outdated: signals.send(.checkpointed)
        case .taken: signals.send(.broken(DownloadJob.busy(part.names.target), keeps: true))
        case .unsynced(let error):
            signals.send(.broken(HTTPError(storage: error, origin: url.origin.description), keeps: false))
        case .unwritten(let error):
            signals.send(.broken(HTTPError(storage: error, origin: url.origin.description), keeps: true))
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

    /// Keeps what has come, if another run can go on with it; removes it otherwise. Earlier bytes stay where they are more.
    /// - Returns: How many bytes are kept; nil for none.
    func keep() async -> UInt64? {
        let (part, keeps, count) = state.withLock {
            ($0.part, $0.keeps && $0.machine.isResumable, $0.machine.plan?.writtenCount ?? 0)
        }
        guard let part else { return nil }
        if let earlier = part.earlierByteCount, !keeps || count < earlier {
            await BlockingWorkers.shared.run { part.restoreEarlier() }
            state.withLock { $0.leftByteCount = earlier }
            return earlier
        }
        // What earlier runs left stays where nothing has proven to be another state of the file.
        let isDoubted = state.withLock { $0.keeps && $0.machine.plan == nil && $0.machine.former != nil }
        if isDoubted, let record = part.record() {
            state.withLock { $0.leftByteCount = record.writtenCount }
            return record.writtenCount
        }
        if keeps, let (_, record, epoch) = snapshot() {
            switch await note(record, in: part, epoch: epoch) {
            // What could not be synced is not to be trusted, not by another run either.
            case .unsynced: break
            // Where the one before stands, another run goes on from there.
            case .unwritten: if let record = part.record() { return record.writtenCount }
            case nil, .outdated, .taken: return count
            }
        }
        await BlockingWorkers.shared.run { part.discard() }
        state.withLock { $0.leftByteCount = 0 }
        return nil
    }

    // MARK: The end

    /// What is known of a file whose bytes are all there.
    private struct Complete {
        var part: PartFile
        /// What there is to tell of it, but for what was verified.
        var result: DownloadResult
        /// When it was written last on the server, in seconds since 1970.
        var modified: Int64?
        /// What its bytes are said to hash to.
        var digests: [Checksum]
        /// The name that it has already.
        var name: PublishedName?
    }

    /// The file, where all its bytes are there.
    private func complete(_ state: borrowing State) -> Complete? {
        guard let part = state.part, let total = state.machine.plan?.total else { return nil }
        let result = DownloadResult(
            path: FilePath(part.names.target), byteCount: total,
            resumedByteCount: state.machine.resumedByteCount,
            receivedByteCount: state.machine.receivedByteCount, verified: [],
            url: state.machine.place ?? url.withoutUserInfo)
        return Complete(
            part: part, result: result, modified: state.machine.modified, digests: state.machine.digests,
            name: state.name)
    }

    /// Verifies the file and gives it its name.
    func finish() async throws -> DownloadResult {
        guard var file = state.withLock({ complete($0) }) else {
            throw HTTPError(.systemFailed, phase: .evaluating, message: "the download has no file")
        }
        var wanted = options.checksum.map { [$0] } ?? []
        for digest in file.digests where !wanted.contains(digest) { wanted.append(digest) }
        if !wanted.isEmpty {
            job.status.become(.verifying)
            job.status.events.add(.verifying)
            try await Verification(wanted, origin: url.origin.description).check(
                file.part.file, total: file.result.byteCount, files: files)
            file.result.verified = wanted
        }
        if let name = file.name { return try job.take(name, file.result) }
        try Task.checkCancellation()
        return try await job.publish(file.part, file.result, modified: file.modified, noting: noting)
    }

    /// Gives the file its name on the worker that has written its last bytes, where it is complete and nothing is to be done
    /// before. It blocks. What fails here is done again, and told, by ``finish()``.
    func publishAtOnce() {
        guard noting == nil else { return }
        let file = state.withLock { state in
            state.keeps && state.machine.isOneComplete ? complete(state) : nil
        }
        guard let file,
            let name = try? job.publishAtOnce(file.part, file.result, modified: file.modified)
        else { return }
        state.withLock { $0.name = name }
    }
}

extension HTTPError {
    /// The same error where so many bytes are kept; nil where none are.
    func keeping(_ kept: UInt64?) -> HTTPError {
        guard kept != keptByteCount else { return self }
        var error = self
        if let count = keptByteCount, let words = error.message.firstRange(of: "; \(count) bytes are kept") {
            error.message.removeSubrange(words)
        }
        error.keptByteCount = kept
        error.keptFile = nil
        if let kept { error.message += "; \(kept) bytes are kept" }
        return error
    }
}
