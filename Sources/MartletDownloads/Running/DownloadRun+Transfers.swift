import Glibc
import MartletCore
import Synchronization

extension DownloadRun {
    /// Sends a request and handles its response.
    /// - Parameters:
    ///   - mayWait: Whether it waits for a connection slot; otherwise it ends if none is free.
    ///   - onLargeBody: Called before a body that is not that of a small file is received.
    /// - Returns: The outcome; `nil` if the program has cancelled the call of the transfer.
    func transfer(
        _ request: DownloadRequest, _ control: TransferControl, mayWait: Bool, onLargeBody: () -> Void
    ) async -> DownloadMachine.TransferOutcome? {
        let slot = job.slots.map { ConnectionSlot($0, mayWait: mayWait) }
        defer { slot?.end() }
        do {
            // Before the call starts, whose timeouts do not include the wait.
            try await slot?.move(to: request.url.origin)
            state.withLock { $0.metrics.requestCount += 1 }
            let httpRequest = try job.request(request)
            var requestOptions = job.requestOptions(for: request)
            if let slot { requestOptions[ConnectionSlotKey.self] = slot }
            return try await session.streamDetailed(
                httpRequest, to: job.address(of: request), options: requestOptions, control: control, kind: .download
            ) { response in try await self.receive(request, response, onLargeBody: onLargeBody) }
        } catch is ConnectionSlot.NoneFree { return .crowded } catch let error as HTTPError {
            return .failed(error)
        } catch let error as StorageError {
            return .failed(failure(error))
        } catch is CancellationError {
            // If neither the run nor its task was cancelled, the program has cancelled this call, and so the download.
            let isCurrent = state.withLock { $0.transfers[request.id]?.control === control }
            return isCurrent && !Task.isCancelled ? nil : .cancelled
        } catch {
            // Not reported as a cancellation, after which the bytes would be requested again and again.
            return .failed(
                HTTPError(
                    .systemFailed, phase: .preparing, message: "\(error)", method: .get, url: request.url,
                    underlying: error))
        }
    }

    /// The maximum length of a body that needs neither records nor more connections: 64 KiB.
    private static let smallByteCount: UInt64 = 64 << 10

    private func receive(
        _ request: DownloadRequest, _ response: DetailedResponse, onLargeBody: () -> Void
    ) async throws -> DownloadMachine.TransferOutcome {
        let responseHead = DownloadResponseHead(
            response.head, byteCount: response.body.expectedContentLength, url: response.url, now: Int64(time(nil)))
        let (action, end, effects, destination) = state.withLock { state in
            let (action, end, effects) = state.machine.responseReceived(request.id, responseHead, now: .now())
            if case .take(let passing, let comparing, let restartsTransfer) = action {
                if restartsTransfer { state.restartedGeneration = state.machine.generation }
                state.transfers[request.id]?.handledByteCount = passing + comparing
                state.metrics.connectionCount = max(state.metrics.connectionCount, state.machine.receiving.count)
            }
            return (action, end, effects, state.destination)
        }
        post(effects)
        if responseHead.byteCount.map({ $0 > DownloadRun.smallByteCount }) ?? true { onLargeBody() }
        guard case .take(let passing, let comparing, _) = action else {
            if case .rejected(var error, .fail)? = end, error.code == .unacceptableStatus {
                error.exchange = await response.withBeginning()
                return .rejected(error, .fail)
            }
            // A short body is read to its end, which keeps the connection reusable.
            if responseHead.byteCount.map({ $0 > 65_536 }) ?? true { response.body.reject() }
            return end ?? .cancelled
        }
        let opening = opening(for: responseHead, destination)
        let sink = SegmentSink(
            request.id, of: self, files: files, passing: passing, comparing: comparing,
            at: request.range?.lowerBound ?? 0, announced: responseHead.byteCount, opening: opening)
        do { try await response.body.copy(into: sink, expected: responseHead.byteCount) } catch {
            // The received part of a broken response is unusable if it differs.
            if sink.progress.differs { return .differs }
            throw sink.progress.failure ?? error
        }
        let progress = sink.progress
        if let failure = progress.failure { throw failure }
        // The sink opens the file with the first bytes: an empty body has none.
        if progress.file == nil { _ = try await BlockingThreadPool.shared.run { Result { try opening() } }.get() }
        if let announced = responseHead.byteCount, announced != progress.consumed { response.body.reject() }
        if progress.differs { return .differs }
        if progress.exceedsLimit {
            let expected = state.withLock { $0.machine.expectedByteCount }
            if let expected, expected < UInt64(clamping: options.byteLimit.bytes) {
                // Only this URL has failed: another one may have the right file.
                return .rejected(
                    HTTPError(
                        .representationChanged, phase: .receivingBody,
                        message: "the file is longer than \(expected) bytes", wasSent: true, method: .get,
                        url: request.url), .fail)
            }
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
    private func opening(for responseHead: DownloadResponseHead, _ destination: Destination)
        -> @Sendable () throws -> PartFile
    {
        return {
            let part = try self.opening.withLock { _ in
                if let present = self.state.withLock({ $0.part }) { return present }
                let part = try self.job.open(proposed: responseHead)
                // Stored before any step can fail, so that every end of the run handles it.
                self.state.withLock { $0.part = part }
                return part
            }
            if destination.isRestarted {
                try part.renew(
                    epoch: destination.epoch, expecting: destination.total,
                    keepsEarlier: self.options.resumption != .restart)
            }
            return part
        }
    }
}
