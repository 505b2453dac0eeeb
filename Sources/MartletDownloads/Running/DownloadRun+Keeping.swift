import Glibc
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

    /// The present record; `nil` if there is nothing to record.
    private func snapshot() -> (PartFile, ResumeRecord, UInt32)? {
        let address = url.absoluteForm
        return state.withLock { state in
            let machine = state.machine
            guard let part = state.part, let plan = machine.plan, let known = machine.known else { return nil }
            let record = ResumeRecord(
                url: address, representation: known, total: plan.total, written: plan.written,
                isUnproven: machine.isUnproven, generation: machine.generation, digests: machine.digests,
                modified: machine.modified, owner: part.owner)
            return (part, record, machine.generation)
        }
    }

    /// Retains the received bytes, or the earlier ones if there are more, if another run can reuse them. Removes them
    /// otherwise.
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
        // Bytes of earlier runs remain unless another representation is proven.
        let isDoubted = state.withLock { $0.keeps && $0.machine.plan == nil && $0.machine.former != nil }
        if isDoubted, let record = part.record() {
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
        await BlockingThreadPool.shared.run { part.discard() }
        state.withLock { $0.leftByteCount = 0 }
        return nil
    }

    /// A file with all bytes, its result without the verified checksums, `Last-Modified` in seconds since 1970, the
    /// announced digests, and the name that it has already.
    private typealias Complete = (
        part: PartFile, result: DownloadResult, modified: Int64?, digests: [Checksum], name: PublishedName?
    )

    /// Returns the file, if it has all bytes.
    private func complete(_ state: borrowing State) -> Complete? {
        guard let part = state.part, let total = state.machine.plan?.total else { return nil }
        let result = DownloadResult(
            path: FilePath(part.names.target), byteCount: total, resumedByteCount: state.machine.resumedByteCount,
            receivedByteCount: state.machine.receivedByteCount, url: state.machine.place ?? url.withoutUserInfo)
        return (part, result, state.machine.modified, state.machine.digests, state.name)
    }

    /// Verifies and publishes the file.
    func finish() async throws -> DownloadResult {
        guard var file = state.withLock({ complete($0) }) else {
            throw HTTPError(.systemFailed, phase: .processingResponse, message: "the download has no file")
        }
        var wanted = options.checksum.map { [$0] } ?? []
        for digest in file.digests where !wanted.contains(digest) { wanted.append(digest) }
        if !wanted.isEmpty {
            job.status.become(.verifying)
            job.status.events.add(.verifying)
            try await verify(file.part.file, total: file.result.byteCount, wanted)
            file.result.verified = wanted
        }
        if let name = file.name { return try job.take(name, file.result) }
        try Task.checkCancellation()
        return try await job.publish(file.part, file.result, modified: file.modified, onPublication: onPublication)
    }

    /// Publishes a complete file on the worker that wrote its end. Blocks. After a failure ``finish()`` repeats it.
    func publishAtOnce() {
        guard onPublication == nil else { return }
        let file = state.withLock { state in state.keeps && state.machine.isOneComplete ? complete(state) : nil }
        guard let file, let name = try? job.publishAtOnce(file.part, file.result, modified: file.modified).name else {
            return
        }
        state.withLock { $0.name = name }
    }
}

extension HTTPError {
    /// Returns the error with another number of retained bytes; `nil` for none.
    func keeping(_ kept: UInt64?) -> HTTPError {
        guard kept != resumableByteCount else { return self }
        var error = self
        if let count = resumableByteCount, let words = error.message.firstRange(of: "; \(count) bytes are kept") {
            error.message.removeSubrange(words)
        }
        error.resumableByteCount = kept
        error.unpublishedFile = nil
        if let kept { error.message += "; \(kept) bytes are kept" }
        return error
    }
}

extension DownloadRun {
    /// Sends a request and handles its response.
    /// - Parameter mayWait: whether it waits for a connection slot; otherwise it ends if none is free.
    func transfer(_ question: DownloadRequest, _ control: TransferControl, mayWait: Bool) async {
        let origin = question.url.origin
        do throws(CancellationError) {
            if mayWait {
                try await job.slots?.acquire(origin)
            } else if job.slots?.tryAcquire(origin) == false {
                signals.send(.ended(question.id, .crowded))
                return
            }
        } catch {
            signals.send(.ended(question.id, .cancelled))
            return
        }
        defer { job.slots?.release(origin) }
        state.withLock { $0.metrics.requestCount += 1 }
        var end: DownloadMachine.TransferOutcome
        do {
            let request = try job.request(question)
            end = try await session.streamDetailed(
                request, to: question.url, options: job.requestOptions(for: question), control: control, kind: .download
            ) { response in try await self.receive(question, response) }
        } catch let error as HTTPError { end = .failed(error) } catch let error as StorageError {
            end = .failed(failure(error))
        } catch is CancellationError {
            // Neither the run nor its task was cancelled: the program has cancelled this call, and so also the
            // download.
            let isCurrent = state.withLock { $0.transfers[question.id]?.control === control }
            if isCurrent, !Task.isCancelled { return signals.close() }
            end = .cancelled
        } catch {
            // Not treated as a cancellation, after which the bytes would be requested repeatedly.
            end = .failed(
                HTTPError(
                    .systemFailed, phase: .preparing, message: "\(error)", method: .get, url: question.url,
                    underlying: error))
        }
        signals.send(.ended(question.id, end))
    }

    private func receive(_ question: DownloadRequest, _ response: DetailedResponse) async throws
        -> DownloadMachine.TransferOutcome
    {
        let facts = DownloadResponseHead(
            response.head, byteCount: response.body.expectedContentLength, url: response.url, now: Int64(time(nil)))
        let (reception, end, effects, place) = state.withLock { state in
            let (reception, end, effects) = state.machine.answered(question.id, facts, now: MonotonicTime.now())
            if case .take(let passing, let comparing, let restartsTransfer) = reception {
                if restartsTransfer { state.restartedGeneration = state.machine.generation }
                state.transfers[question.id]?.handledByteCount = passing + comparing
                state.metrics.connectionCount = max(state.metrics.connectionCount, state.machine.receiving.count)
            }
            return (reception, end, effects, state.place)
        }
        if !effects.isEmpty { signals.send(.effects(effects)) }
        guard case .take(let passing, let comparing, _) = reception else {
            if case .rejected(var error, .fail)? = end, error.code == .unacceptableStatus {
                error.exchange = await response.withBeginning()
                return .rejected(error, .fail)
            }
            // A short body is read to its end, which keeps the connection reusable.
            if facts.byteCount.map({ $0 > 65_536 }) ?? true { response.body.reject() }
            return end ?? .cancelled
        }
        let opening = opening(for: facts, place)
        let sink = SegmentSink(
            question.id, of: self, files: files, passing: passing, comparing: comparing,
            at: question.range?.lowerBound ?? 0, announced: facts.byteCount, opening: opening)
        do { try await response.body.copy(into: sink, expected: facts.byteCount) } catch {
            // The received part of a broken response is unusable if it differs.
            if sink.progress.differs { return .differs }
            throw sink.progress.failure ?? error
        }
        let progress = sink.progress
        if let failure = progress.failure { throw failure }
        // The sink opens the file with the first bytes: an empty body has none.
        if progress.file == nil { _ = try await BlockingThreadPool.shared.run { Result { try opening() } }.get() }
        if let announced = facts.byteCount, announced != progress.consumed { response.body.reject() }
        if progress.differs { return .differs }
        if progress.exceedsLimit {
            return .rejected(
                HTTPError(
                    .bodyTooLarge, phase: .receivingBody,
                    message: "the file is longer than the limit of \(options.byteLimit.bytes) bytes", wasSent: true,
                    method: .get, url: url), .fail)
        }
        return .finished
    }

    /// Returns a closure that opens the part file if it is not open, and empties it if the download restarts. It
    /// blocks. Of several transfers, only the first opens or empties the file.
    private func opening(for facts: DownloadResponseHead, _ place: Place) -> @Sendable () throws -> PartFile {
        return {
            let part = try self.opening.withLock { _ in
                if let present = self.state.withLock({ $0.part }) { return present }
                let part = try self.job.open(proposed: facts)
                // Stored before any step can fail, so that every end of the run handles it.
                self.state.withLock { $0.part = part }
                return part
            }
            if place.isRestarted {
                try part.renew(
                    epoch: place.epoch, expecting: place.total, keepsEarlier: self.options.resumption != .restart)
            }
            return part
        }
    }
}
