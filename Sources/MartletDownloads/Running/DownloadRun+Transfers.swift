import Glibc
import MartletCore
import Synchronization

extension DownloadRun {
    /// Sends a request and handles its response.
    /// - Parameter mayWait: Whether it waits for a connection slot; otherwise it ends if none is free.
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
            // If neither the run nor its task was cancelled, the program has cancelled this call, and so the download.
            let isCurrent = state.withLock { $0.transfers[question.id]?.control === control }
            if isCurrent, !Task.isCancelled { return signals.close() }
            end = .cancelled
        } catch {
            // Not a cancellation, after which the bytes would be requested repeatedly.
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

    /// Returns a closure that opens the part file, and empties it if the download restarts, unless another transfer has
    /// done so. It blocks.
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
