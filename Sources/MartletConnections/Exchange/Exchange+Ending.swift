package import MartletTransport
import Synchronization

extension Exchange {
    /// Ends the exchange: the connection goes back to the pool if it can carry another, else it is closed.
    ///
    /// What is left of a body is taken up if it is small, by a task that nobody waits for; else the connection is
    /// closed.
    package func finish() {
        finish(at: nil)
    }

    /// - Parameter completion: When the response was complete, where it is.
    func finish(at completion: MonotonicTime?) {
        let (isFirst, isCancelled, writer) = state.withLock { state -> (Bool, Bool, UploadWriter?) in
            let isFirst = !state.isReleased
            state.isReleased = true
            return (isFirst, state.isCancelled, state.writer)
        }
        guard isFirst else { return }
        connection.stream.awaitBytes(1)
        // Whoever still waits to read looks again, and finds that it is over. Where it is complete, its reader knows.
        if completion == nil { connection.stream.wakeReader() }
        var isAborted = false
        if let writer, writer.outcome == nil, !writer.hasWrittenAll {
            writer.stop()
            connection.requestAborted()
            isAborted = true
        }
        // A connection with half of a request on it carries no other: nothing is taken up for its sake.
        if isCancelled || isAborted {
            lease.release(isReusable: false)
        } else if completion != nil || connection.isResponseFinished {
            lease.release(isReusable: true, at: completion)
        } else {
            abandon()
        }
    }

    /// Ends the exchange as ``finish()`` does, but waits a moment for what is left of a small body: the connection is
    /// free for the next request then, which else would open another. Many servers send a head and its body apart.
    /// - Parameter deadline: When to wait no longer.
    package func finish(waitingUntil deadline: MonotonicTime) async {
        let isDrainable = state.withLock { state in
            !state.isReleased && !state.isCancelled && !state.hasFailed && state.phase == .receivingBody
                && state.writer.map { $0.hasFinished } ?? true
        }
        if isDrainable, let payload = connection.remainingPayload, payload <= UInt64(Exchange.drainLimit) {
            _ = await connection.drain(limit: Exchange.drainLimit, until: deadline)
        }
        finish()
    }

    /// Ends the exchange for what its response is: nothing more is taken of it, however little is left.
    package func refuse() {
        state.withLock { $0.hasFailed = true }
        finish()
    }

    private static let drainLimit = 64 * 1024

    /// Gives up a body that was not read to its end.
    private func abandon() {
        guard state.withLock({ $0.phase == .receivingBody && !$0.hasFailed }),
            let payload = connection.remainingPayload,
            payload <= UInt64(Exchange.drainLimit)
        else {
            lease.release(isReusable: false)
            return
        }
        let connection = connection
        let lease = lease
        var left = Exchange.drainLimit
        if let isDrained = connection.drainReceived(limit: &left) {
            lease.release(isReusable: isDrained)
            return
        }
        let rest = left
        // Unstructured: the caller is done and must not wait for a peer. It ends after a second at the latest.
        Task {
            let deadline = MonotonicTime.now().advanced(by: .seconds(1))
            let isDrained = await connection.drain(limit: rest, until: deadline)
            lease.release(isReusable: isDrained)
        }
    }

    /// Ends every wait of this exchange with an error, for good; nothing where it has ended.
    package func cancel() {
        let (isRunning, writer, turn) = state.withLock {
            state -> (Bool, UploadWriter?, BandwidthGovernor.Wait?) in
            guard !state.isReleased else { return (false, nil, nil) }
            state.isCancelled = true
            return (true, state.writer, state.turn)
        }
        guard isRunning else { return }
        turn?.interrupt()
        writer?.stop()
        connection.stream.interrupt()
    }

    func failure(_ cause: ExchangeError.Cause) -> ExchangeError {
        let state = state.withLock { state in
            state.hasFailed = true
            return state
        }
        let wasSent = state.wasSent || (state.writer?.byteCount ?? 0) > 0
        var waited: Duration?
        if case .timedOut(let clock) = cause {
            switch clock {
            case .head: waited = clocks.head
            case .idle: waited = clocks.idle
            case .total, .poolWait, .connect: waited = nil
            }
        }
        let isCancelled: Bool
        if case .transport(.interrupted) = cause {
            isCancelled = true
        } else {
            isCancelled = state.isCancelled
        }
        var cause = cause
        if case .transport(.closed) = cause, let loss = connection.lossOfAddress { cause = .transport(loss) }
        var phase = state.phase
        if phase == .awaitingHead, let writer = state.writer, !writer.hasFinished { phase = .sending }
        return ExchangeError(
            cause: isCancelled ? .cancelled : cause, phase: phase, wasSent: wasSent, waited: waited)
    }
}
