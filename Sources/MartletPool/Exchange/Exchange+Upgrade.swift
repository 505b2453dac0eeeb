package import MartletTransport
import Synchronization

// The connection after a 101 (RFC 9110 §7.8): a stream of bytes in both directions, which the exchange owns until it is
// finished, and which is never reused. One task may read while another one writes.
extension Exchange {
    /// The maximum number of bytes of one read.
    private static let upgradedReadLimit = 64 * 1024

    private enum UpgradedRead {
        case bytes([UInt8])
        case end
        case wouldBlock
    }

    /// Waits until the request is sent completely. No byte of the new protocol may be sent before its end, and no
    /// timeout of the call applies after it.
    /// - Throws: The error of a request that cannot be completed.
    package func beginUpgrade() async throws(ExchangeError) {
        if let writer = state.withLock({ $0.writer }) {
            guard await writer.waitUntilEnded(until: timeouts.totalDeadline) else { throw failure(.timedOut(.total)) }
            switch writer.outcome {
            case .failed(let cause): throw failure(cause)
            case .stopped, nil: throw failure(.cancelled)
            case .finished: break
            }
        }
        adopt(totalDeadline: .distantFuture)
    }

    /// Waits for bytes of the peer, and reads them. Nothing is read ahead, so that the TCP window slows the peer down.
    /// - Parameter maximum: The maximum number of bytes; less than 1 counts as 1, and more than 64 KiB as 64 KiB.
    /// - Returns: At least one byte; `nil` after the peer has ended its direction.
    /// - Throws: `.timedOut(.idle)` at the deadline, `.cancelled` in a cancelled task: no byte is lost, and the next
    ///   read may succeed. `.cancelled` also after the end of the exchange.
    package func readUpgraded(upTo maximum: Int, until deadline: MonotonicTime) async throws(ExchangeError) -> [UInt8]?
    {
        let room = min(max(1, maximum), Exchange.upgradedReadLimit)
        while true {
            try checkUpgraded()
            switch try tryReadUpgraded(upTo: room) {
            case .bytes(let bytes): return bytes
            case .end:
                guard let reset = state.withLock({ $0.upgradeReset }) else { return nil }
                throw upgradeFailure(.transport(reset))
            case .wouldBlock: try await waitUpgraded(for: .read, until: deadline)
            }
        }
    }

    private func tryReadUpgraded(upTo room: Int) throws(ExchangeError) -> UpgradedRead {
        var step = HTTP1Connection.BodyStep.wait
        var bytes: [UInt8] = []
        bytes.reserveCapacity(room)
        bytes.append(addingCapacity: room) { output in
            unsafe output.withUnsafeMutableBufferPointer { buffer, count in
                let target = unsafe ReceiveTarget(UnsafeMutableRawBufferPointer(buffer))
                // Under the exchange's own lock, like the read of a body.
                step = state.withLock { state -> HTTP1Connection.BodyStep in
                    if state.isReleased || state.isCancelled { return .failure(.cancelled) }
                    return connection.stepBody(into: target)
                }
                if case .bytes(let received, _) = step { count = received }
            }
        }
        switch step {
        case .bytes(let count, _):
            state.withLock { $0.timeline.receivedBodyByteCount += UInt64(count) }
            return .bytes(bytes)
        case .end, .closed: return .end
        case .wait: return .wouldBlock
        case .failure(let cause): throw upgradeFailure(cause)
        }
    }

    /// Writes all of the bytes.
    /// - Throws: `.timedOut(.idle)` at the deadline, `.cancelled` in a cancelled task or after the end of the exchange.
    ///   A part of the bytes may have been sent, so no other bytes may follow.
    package func writeUpgraded(_ bytes: [UInt8], until deadline: MonotonicTime) async throws(ExchangeError) {
        var offset = 0
        while offset < bytes.count {
            try checkUpgraded()
            let count: Int
            do throws(TransportError) { count = try connection.stream.write(bytes, from: offset) } catch {
                if case .system(let reason) = error, reason.isReset { state.withLock { $0.upgradeReset = error } }
                throw upgradeFailure(.transport(error))
            }
            offset += count
            state.withLock { $0.timeline.sentByteCount += UInt64(count) }
            if count == 0 { try await waitUpgraded(for: .write, until: deadline) }
        }
    }

    /// Ends the writing direction: the peer reads the end, over TLS a `close_notify`, and may still send.
    /// - Throws: Like ``writeUpgraded(_:until:)``.
    package func endUpgradedWriting(until deadline: MonotonicTime) async throws(ExchangeError) {
        while true {
            try checkUpgraded()
            connection.stream.shutdownWriting()
            guard connection.stream.hasPendingEnd else { return }
            try await waitUpgraded(for: .write, until: deadline)
        }
    }

    /// Throws if the task is cancelled, or the exchange is over.
    private func checkUpgraded() throws(ExchangeError) {
        if Task.isCancelled || state.withLock({ $0.isReleased || $0.isCancelled }) { throw upgradeError(.cancelled) }
    }

    /// Waits until another attempt may succeed. Cancelling the task ends the wait like a success.
    private func waitUpgraded(for direction: Readiness.Direction, until deadline: MonotonicTime)
        async
        throws(ExchangeError)
    {
        let stream = connection.stream
        let error = await withTaskCancellationHandler { () async -> TransportError? in
            do throws(TransportError) {
                switch direction {
                case .read: try await stream.waitUntilReadable(until: deadline)
                case .write: try await stream.waitUntilWritable(until: deadline)
                }
                return nil
            } catch { return error }
        } onCancel: {
            switch direction {
            case .read: stream.wakeReader()
            case .write: stream.wakeWriter()
            }
        }
        switch error {
        case nil: break
        case .timedOut: throw upgradeError(.timedOut(.idle))
        case let error?: throw upgradeFailure(.transport(error))
        }
    }

    /// Returns the error of one operation, after which the connection is as before.
    private func upgradeError(_ cause: ExchangeError.Cause) -> ExchangeError {
        ExchangeError(cause: cause, phase: .upgraded, wasSent: true)
    }

    /// Records the failure of the connection. Closing it on this side is not a failure.
    private func upgradeFailure(_ cause: ExchangeError.Cause) -> ExchangeError {
        failure(state.withLock { $0.isReleased } ? .cancelled : cause)
    }
}
