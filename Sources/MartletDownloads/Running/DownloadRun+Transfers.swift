import Glibc
import MartletClient
import MartletStorage
import MartletTransport
import Synchronization

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
            ) { response in
                try await self.receive(question, response)
            }
        } catch let error as HTTPError {
            end = .failed(error)
        } catch let error as StorageError {
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
