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
                signal.yield(.ended(question.id, .crowded))
                return
            }
        } catch {
            signal.yield(.ended(question.id, .cancelled))
            return
        }
        defer { job.slots.giveBack(origin) }
        var end: DownloadMachine.End
        do {
            let request = try job.request(question)
            end = try await session.streamDetailed(
                request, to: question.url, options: job.requestOptions, control: control
            ) { response in
                try await self.receive(question, response)
            }
        } catch let error as HTTPError {
            end = .failed(error)
        } catch let error as StorageError {
            end = .failed(HTTPError(storage: error, origin: origin.description))
        } catch is CancellationError {
            end = .cancelled
        } catch {
            // Nothing that failed may count as called off: it would be asked for again and again.
            end = .failed(
                HTTPError(
                    .systemFailed, phase: .preparing, message: "\(error)", origin: origin.description,
                    underlying: error))
        }
        signal.yield(.ended(question.id, end))
    }

    private func receive(
        _ question: DownloadQuestion, _ response: DetailedResponse
    ) async throws -> DownloadMachine.End {
        let facts = AnswerFacts(
            response.head, byteCount: response.body.announcedByteCount, url: response.url,
            now: Int64(time(nil)))
        let (reception, end, effects) = state.withLock {
            $0.machine.answered(question.id, facts, now: MonotonicTime.now())
        }
        if !effects.isEmpty { signal.yield(.effects(effects)) }
        guard case .take(let passing, let comparing, let beginsAnew) = reception else {
            if !isShort(facts.byteCount) { response.body.refuse() }
            return end ?? .cancelled
        }
        let part = try await preparedPart(for: facts, beginsAnew: beginsAnew)
        let sink = SegmentSink(
            question.id, of: self, to: part, files: files, passing: passing, comparing: comparing,
            at: question.range?.lowerBound ?? 0, announced: facts.byteCount)
        do {
            try await response.body.pour(into: sink, expected: facts.byteCount)
        } catch {
            // An answer that broke off is of no use where what came of it differs.
            if sink.differs { return .differs }
            throw error
        }
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

    /// The part file, which begins anew where it should.
    private func preparedPart(for facts: AnswerFacts, beginsAnew: Bool) async throws -> PartFile {
        let (present, total, epoch) = state.withLock {
            ($0.part, $0.machine.plan?.total, $0.machine.generation)
        }
        var part: PartFile
        if let present {
            part = present
        } else {
            part = try await job.openPart(proposed: facts)
            state.withLock { $0.part = part }
        }
        guard beginsAnew else { return part }
        let file = part
        do throws(StorageError) {
            try await BlockingWorkers.shared.run { () throws(StorageError) in
                try file.renew(epoch: epoch, expecting: total)
            }
        } catch {
            throw HTTPError(storage: error, origin: url.origin.description)
        }
        return part
    }
}
