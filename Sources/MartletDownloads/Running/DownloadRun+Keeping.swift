import Glibc
import MartletCaching
import MartletCore
import MartletStreams
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

    private func note(_ record: ResumeRecord, in part: PartFile, epoch: UInt32) async -> PartFile.RecordFault?
    {
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
        guard let file, let name = try? job.publishAtOnce(file.part, file.result, modified: file.modified)
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

extension DownloadRun {
    /// Asks one question and takes its answer.
    /// - Parameter mayWait: Whether it waits for a place for its connection; else it does without where there is none.
    func transfer(_ question: DownloadQuestion, _ control: TransferControl, mayWait: Bool) async {
        let origin = question.url.origin
        do throws(CancellationError) {
            if mayWait {
                try await job.slots.take(origin)
            } else if !job.slots.takeAtOnce(origin) {
                signals.send(.ended(question.id, .crowded))
                return
            }
        } catch {
            signals.send(.ended(question.id, .cancelled))
            return
        }
        defer { job.slots.giveBack(origin) }
        var end: DownloadMachine.End
        do {
            let request = try job.request(question)
            end = try await session.streamDetailed(
                request, to: question.url, options: job.requestOptions(for: question), control: control
            ) { response in try await self.receive(question, response) }
        } catch let error as HTTPError { end = .failed(error) } catch let error as StorageError {
            end = .failed(HTTPError(storage: error, origin: url.origin.description))
        } catch is CancellationError {
            end = .cancelled
        } catch {
            // Nothing that failed may count as called off: it would be asked for again and again.
            end = .failed(
                HTTPError(
                    .systemFailed, phase: .preparing, message: "\(error)", origin: origin.description,
                    underlying: error))
        }
        signals.send(.ended(question.id, end))
    }

    private func receive(
        _ question: DownloadQuestion, _ response: DetailedResponse
    ) async throws -> DownloadMachine.End {
        let facts = AnswerFacts(
            response.head, byteCount: response.body.announcedByteCount, url: response.url,
            now: Int64(time(nil)))
        let (reception, end, effects, place) = state.withLock { state in
            let (reception, end, effects) = state.machine.answered(
                question.id, facts, now: MonotonicTime.now())
            if case .take(_, _, beginsAnew: true) = reception { state.begunAnew = state.machine.generation }
            return (reception, end, effects, state.place)
        }
        if !effects.isEmpty { signals.send(.effects(effects)) }
        guard case .take(let passing, let comparing, _) = reception else {
            if !isShort(facts.byteCount) { response.body.refuse() }
            return end ?? .cancelled
        }
        let opening = opening(for: facts, place)
        let sink = SegmentSink(
            question.id, of: self, files: files, passing: passing, comparing: comparing,
            at: question.range?.lowerBound ?? 0, announced: facts.byteCount, opening: opening)
        do {
            try await response.body.pour(into: sink, expected: facts.byteCount)
        } catch {
            // An answer that broke off is of no use where what came of it differs.
            if sink.differs { return .differs }
            throw sink.failure ?? error
        }
        if let failure = sink.failure { throw failure }
        // Where no byte came, nothing was written.
        if !sink.isOpen { _ = try await BlockingWorkers.shared.run { Result { try opening() } }.get() }
        if !sink.isWhole, facts.byteCount != nil { response.body.refuse() }
        if sink.differs { return .differs }
        if sink.exceedsLimit {
            return .refused(
                HTTPError(
                    .bodyTooLarge, phase: .receivingBody,
                    message: "the file is longer than the limit of \(options.byteLimit.bytes) bytes",
                    wasSent: true, origin: url.origin.description), .fail)
        }
        return .finished
    }

    /// Whether what is left of a body is read, for the sake of its connection.
    private func isShort(_ byteCount: UInt64?) -> Bool { byteCount.map { $0 <= 65_536 } ?? false }

    /// What opens the part file, where it is not open, and has it begin anew where it should. It blocks. Of several transfers
    /// the first does it, whichever that is.
    private func opening(for facts: AnswerFacts, _ place: Place) -> @Sendable () throws -> PartFile {
        return {
            let part = try self.opening.withLock { _ in
                if let present = self.state.withLock({ $0.part }) { return present }
                let part = try self.job.open(proposed: facts)
                // Known before anything of it can fail, so that whatever ends the run deals with it.
                self.state.withLock { $0.part = part }
                return part
            }
            if place.isAnew {
                try part.renew(
                    epoch: place.epoch, expecting: place.total,
                    keepsEarlier: self.options.resumption != .restart)
            }
            return part
        }
    }
}
