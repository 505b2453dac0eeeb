package import MartletTransport
package import MartletWire
import Synchronization

extension Exchange {
    /// Ends the exchange: the connection goes back to the pool if it can carry another, else it is closed.
    ///
    /// What is left of a body is taken up if it is small, by a task that nobody waits for; else the connection is
    /// closed.
    package func finish() { finish(at: nil) }

    /// - Parameters:
    ///   - completion: When the response was complete, where it is.
    ///   - trailers: The fields behind it then.
    func finish(at completion: MonotonicTime?, trailers: FieldBlock? = nil) {
        let (standing, phase, writer) = state.withLock { state in
            if let completion { (state.timeline.bodyReceived, state.trailers) = (completion, trailers) }
            return (state.release(isComplete: completion != nil), state.phase, state.writer)
        }
        guard let standing else { return }
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
        if standing == .cancelled || isAborted {
            lease.release(isReusable: false)
        } else if completion != nil || connection.isResponseFinished {
            lease.release(isReusable: true, at: completion)
        } else if standing == .running, phase == .receivingBody {
            abandon()
        } else {
            lease.release(isReusable: false)
        }
    }

    /// Ends the exchange as ``finish()`` does, but waits a moment for what is left of a small body: the connection is
    /// free for the next request then, which else would open another. Many servers send a head and its body apart.
    /// - Parameter deadline: When to wait no longer.
    package func finish(waitingUntil deadline: MonotonicTime) async {
        if state.withLock({ $0.isReceivingOnly }), let payload = connection.remainingPayload,
            payload <= UInt64(Exchange.drainLimit)
        {
            _ = await connection.drain(limit: Exchange.drainLimit, until: deadline)
        }
        finish()
    }

    /// Ends the exchange for what its response is: nothing more is taken of it, however little is left.
    package func refuse() {
        state.withLock { $0.fail() }
        finish()
    }

    private static let drainLimit = 64 * 1024

    /// Gives up a body that was not read to its end.
    private func abandon() {
        guard let payload = connection.remainingPayload, payload <= UInt64(Exchange.drainLimit) else {
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
            (state.cancel(), state.writer, state.turn)
        }
        guard isRunning else { return }
        turn?.interrupt()
        writer?.stop()
        connection.stream.interrupt()
    }

    func failure(_ cause: ExchangeError.Cause) -> ExchangeError {
        let state = state.withLock { state in
            state.fail()
            return state
        }
        let wasSent = state.timeline.sentByteCount > 0 || (state.writer?.byteCount ?? 0) > 0
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

// What is known of an exchange, while it runs and behind its end.
extension Exchange {
    /// The clocks in force.
    var clocks: ExchangeClocks {
        guard let total = state.withLock({ $0.totalDeadline }) else { return givenClocks }
        var clocks = givenClocks
        clocks.totalDeadline = total
        return clocks
    }

    /// Has the rest of it end by another total clock: that of a call that takes it over.
    package func adopt(totalDeadline: MonotonicTime) { state.withLock { $0.totalDeadline = totalDeadline } }

    /// Whether the exchange is over: it was finished, or its response is complete.
    package var isFinished: Bool { state.withLock { $0.isReleased } }

    /// Notes that a closure gets the body, which may take as long as it likes.
    package func closureBegins() { if !isFinished { connection.use = .closure } }

    /// When the parts of the exchange happened, and how many bytes moved.
    package var timeline: ExchangeTimeline {
        state.withLock { state in
            var timeline = state.timeline
            timeline.sentByteCount += state.writer?.byteCount ?? 0
            return timeline
        }
    }

    /// The interim responses that came before the final head (RFC 9110 §15.2).
    package var interimResponses: [ResponseHead] { state.withLock { $0.interim } }

    /// The fields that came behind a chunked body, once it is complete; never merged into the head (RFC 9110 §6.5).
    package var trailers: FieldBlock? { state.withLock { $0.trailers } }

    /// Whether a byte of the response has come.
    package var hasReceivedAnyByte: Bool { connection.hasReceivedAnyByte }
}

extension Exchange {
    /// Whether a direction is held to a limit now.
    package func isHeldBack(_ direction: TransferDirection) -> Bool { pace?.isActive(direction) ?? false }

    /// Waits until some of the body may be read; the idle clock stands meanwhile, the total clock goes on.
    ///
    /// What is granted and not read then is given back by ``giveBack(_:)``.
    /// - Returns: How many of the bytes wanted may be read now, at least 1.
    package func allowance(of wanted: Int) async throws(ExchangeError) -> Int {
        guard let pace, isHeldBack(.down) else { return wanted }
        let turn = BandwidthGovernor.Wait()
        let isCancelled = state.withLock { state in
            state.turn = turn
            return state.isCancelled
        }
        if isCancelled { throw failure(.cancelled) }
        let outcome = await pace.governor.take(
            wanted, .down, in: pace.lane, by: turn, until: clocks.totalDeadline)
        state.withLock { $0.turn = nil }
        switch outcome {
        case .value(let count): return count
        case .timedOut: throw failure(.timedOut(.total))
        case .interrupted: throw failure(.cancelled)
        }
    }

    /// Gives back what was granted by ``allowance(of:)`` and not read.
    package func giveBack(_ count: Int) {
        pace?.governor.giveBack(count, .down, in: pace?.lane ?? BandwidthLane())
    }

    /// Whether the transfer is paused.
    package var isPaused: Bool { gate?.isPaused ?? false }
}

/// The part of a body that was read before anybody asked for it.
final class BodyAhead: Sendable {
    let bytes: [UInt8]
    /// The error that ended the reading.
    let failure: ExchangeError.Cause?

    init(_ bytes: [UInt8], failure: ExchangeError.Cause?) {
        self.bytes = bytes
        self.failure = failure
    }
}

extension Exchange {
    /// The longest body that is read ahead, in bytes.
    package static let readAheadLimit = 64 * 1024

    /// Reads what is left of a short body into memory, so that the connection is free while the program decides about the
    /// response. ``tryReadBody(into:)`` then gives the bytes, and after them whatever is still to come.
    ///
    /// - Parameter deadline: When to wait no longer; `nil` to take only what has arrived.
    package func readAhead(until deadline: MonotonicTime?) async {
        guard state.withLock({ $0.ahead == nil && $0.isReceivingOnly }), gate?.isPaused != true,
            !isHeldBack(.down)
        else { return }
        let bound = connection.payloadByteCountBound
        guard bound <= Exchange.readAheadLimit || bound == .max else { return }
        var bytes: [UInt8] = []
        var failure: ExchangeError.Cause?
        do throws(ExchangeError) {
            reading: while bytes.count < Exchange.readAheadLimit {
                let room = max(1, min(8192, bound, Exchange.readAheadLimit - bytes.count))
                let piece = try readBodyAtOnce(upTo: room)
                bytes += piece
                if isFinished { break }
                if piece.isEmpty {
                    guard let deadline, MonotonicTime.now() < deadline else { break reading }
                    do throws(TransportError) {
                        try await connection.stream.waitUntilReadable(until: deadline)
                    } catch {
                        // Whatever ended the wait ends the next attempt as well, but for the deadline.
                        break reading
                    }
                }
            }
        } catch {
            failure = error.cause
        }
        guard !bytes.isEmpty || failure != nil else { return }
        let ahead = BodyAhead(bytes, failure: failure)
        state.withLock { ($0.ahead, $0.aheadOffset) = (ahead, 0) }
        hasReadAhead.store(true, ordering: .releasing)
    }

    /// Keeps the connection out of its pool's limits while code of the program runs; `nil` when it has been given back.
    package func exemption() -> Exemption? { isFinished ? nil : Exemption(lease, loop: loop) }
}
