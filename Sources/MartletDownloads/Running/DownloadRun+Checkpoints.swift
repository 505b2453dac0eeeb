import MartletCore
import Synchronization

extension DownloadRun {
    func checkpoint() async {
        guard let (part, record, epoch) = snapshot() else {
            signals.send(.checkpointed)
            return
        }
        switch await note(record, in: part, epoch: epoch) {
        case nil, .outdated: signals.send(.checkpointed)
        case .taken: signals.send(.broken(DownloadJob.targetInUseError(part.names.target), keeps: true))
        case .unsynced(let error): signals.send(.broken(failure(error), keeps: false))
        case .unwritten(let error): signals.send(.broken(failure(error), keeps: true))
        }
    }

    private func note(_ record: ResumeRecord, in part: PartFile, epoch: UInt32) async -> PartFile.RecordError? {
        await BlockingThreadPool.disk.run {
            do throws(PartFile.RecordError) {
                try part.note(record, epoch: epoch)
                return nil
            } catch { return error }
        }
    }

    /// Returns the record of the current bytes; `nil` if there is nothing to record.
    private func snapshot() -> (PartFile, ResumeRecord, UInt32)? {
        let address = url.absoluteForm
        return state.withLock { state in
            let machine = state.machine
            guard let part = state.part, let plan = machine.plan, let known = machine.known else { return nil }
            let record = ResumeRecord(
                url: address, representation: known, total: plan.total, written: plan.written,
                isUnproven: machine.isUnproven, generation: machine.generation, digests: machine.digests,
                modified: machine.modified, owner: part.owner, sources: machine.recordedSources)
            return (part, record, machine.generation)
        }
    }

    /// Retains the received bytes, or more earlier ones, if another run can reuse them; otherwise removes them.
    /// - Returns: The number of retained bytes; `nil` for none.
    func keep() async -> UInt64? {
        let (part, keeps, count) = state.withLock {
            ($0.part, $0.keeps && $0.machine.isResumable, $0.machine.plan?.writtenCount ?? 0)
        }
        guard let part else { return nil }
        if let earlier = part.earlierByteCount, !keeps || count < earlier {
            await BlockingThreadPool.shared.run { part.restoreEarlier() }
            state.withLock { $0.leftByteCount = earlier }
            return earlier
        }
        // Recorded bytes remain unless another representation is proven. Those that this run cannot reuse, because of
        // its URL or its options, remain until it replaces them.
        let isUntouched = !keeps && !part.isReplaced && options.resumption != .restart
        let remain = state.withLock {
            $0.keeps && (isUntouched || $0.machine.plan == nil && $0.machine.former != nil)
        }
        if remain, let record = part.record() {
            guard job.isValid(record) else { return nil }
            state.withLock { $0.leftByteCount = record.writtenCount }
            return record.writtenCount
        }
        if keeps, let (_, record, epoch) = snapshot() {
            switch await note(record, in: part, epoch: epoch) {
            // Another run must not trust bytes that could not be synced.
            case .unsynced: break
            // Another run resumes from the previous record, if there is one.
            case .unwritten: if let record = part.record() { return record.writtenCount }
            case nil, .outdated, .taken: return count
            }
        }
        await BlockingThreadPool.shared.run { _ = try? part.discard() }
        state.withLock { $0.leftByteCount = 0 }
        return nil
    }

    /// A file with all bytes, its result without the verified checksums, `Last-Modified` in seconds since 1970, and the
    /// announced digests.
    private typealias Complete = (part: PartFile, result: DownloadResult, modified: Int64?, digests: [Checksum])

    /// Returns the file, if it has all bytes.
    private func complete(_ state: borrowing State) -> Complete? {
        guard let part = state.part, let total = state.machine.plan?.total else { return nil }
        var result = DownloadResult(
            path: FilePath(part.names.target), byteCount: total, resumedByteCount: state.machine.resumedByteCount,
            receivedByteCount: state.machine.receivedByteCount, url: state.machine.resultURL)
        result.contentType = state.machine.contentType
        return (part, result, state.machine.modified, state.machine.digests)
    }

    /// Verifies and publishes the file.
    func finish() async throws -> DownloadResult {
        if let (name, result) = state.withLock({ $0.published }) { return try job.take(name, result) }
        guard var file = state.withLock({ complete($0) }) else {
            throw HTTPError(.systemFailed, phase: .processingResponse, message: "the download has no file")
        }
        var wanted = options.checksum.map { [$0] } ?? []
        for digest in file.digests where !wanted.contains(digest) { wanted.append(digest) }
        if wanted.isEmpty, job.requiresDigest { throw missingDigest }
        if !wanted.isEmpty {
            try await verify(file.part.file, total: file.result.byteCount, wanted)
            file.result.verified = wanted
        }
        try Task.checkCancellation()
        return try await job.publish(file.part, file.result, modified: file.modified, onPublication: onPublication)
    }

    /// Publishes a complete file without a checksum on the worker that wrote its end. Blocks. After a failure
    /// ``finish()`` publishes it.
    func publishAtOnce() {
        guard onPublication == nil, !job.requiresDigest else { return }
        let file = state.withLock { state in state.keeps && state.machine.isOneComplete ? complete(state) : nil }
        guard let file, let name = try? job.publishAtOnce(file.part, file.result, modified: file.modified).name else {
            return
        }
        state.withLock { $0.published = (name, file.result) }
    }
}

extension HTTPError {
    /// Returns the error with another number of retained bytes; `nil` for none.
    func keeping(_ kept: UInt64?) -> HTTPError {
        guard kept != resumableByteCount else { return self }
        var error = self
        error.resumableByteCount = kept
        error.unpublishedFile = nil
        return error
    }
}
