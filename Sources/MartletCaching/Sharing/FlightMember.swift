import MartletCore
import MartletCache
import Synchronization

/// The membership of a call in a shared transfer. Releasing this object ends the membership.
final class FlightMember: Sendable {
    /// The next piece of the body.
    enum Piece {
        case bytes([UInt8])
        /// Bytes that have to be read back from the store, from this offset.
        case stored(ResponseWriter, at: UInt64)
        case end
        case failed(any Error)
        case wait(OneShot<Void>)
    }

    /// The maximum size of the rest of an unwanted body, in bytes, that is received to reuse its connection.
    private static let drainLimit: UInt64 = 64 * 1024

    let flight: CacheFlight
    let number: UInt64

    init(_ flight: CacheFlight, _ number: UInt64) { (self.flight, self.number) = (flight, number) }

    deinit { leave() }

    /// Whether the member joined before the head was received.
    var wasEarly: Bool { flight.state.withLock { $0.readers[number]?.wasEarly == true } }

    /// Whether the transfer has removed the member, because it was too slow for the others.
    var isDetached: Bool { flight.state.withLock { $0.detached.contains(number) } }

    // MARK: Leaving

    func leave() { flight.leave(number) }

    /// Leaves the transfer once the rest of a small body is received, so that the body is stored and the connection can
    /// be reused. After the deadline the rest is awaited in the background, for a second.
    func leave(waitingUntil deadline: MonotonicTime, for control: TransferControl) async {
        while let waiter = ending() {
            control.begin(.pausing(waiter))
            let outcome = await waiter.wait(until: deadline, on: flight.loop)
            if control.isCancelled { break }
            guard case .timedOut = outcome else { continue }
            // Unstructured, since the caller must not wait for a peer. It ends after a second at the latest.
            Task {
                let deadline = MonotonicTime.now().advanced(by: .seconds(1))
                while let waiter = ending() {
                    if case .timedOut = await waiter.wait(until: deadline, on: flight.loop) { break }
                }
                leave()
            }
            return
        }
        leave()
    }

    /// Starts a wait for the end of the exchange; `nil` if it has ended, or if the rest of the body is too large.
    func ending() -> OneShot<Void>? {
        flight.state.withLock { state in
            let announced = state.transfer?.0.network.expectedContentLength
            let left = announced.map { $0 - min($0, state.received) } ?? state.received
            guard state.readers[number] != nil, !state.isOver, state.end == nil, left <= FlightMember.drainLimit else {
                return nil
            }
            state.readers[number]?.isCollecting = false
            return state.wait(of: number)
        }
    }

    // MARK: Reading

    /// Makes the member wait for the whole body if its length is known and short, instead of reading parts of it.
    func collect() {
        flight.state.withLock { state in
            guard state.readers[number] != nil else { return }
            state.readers[number]?.isCollecting = true
            if case .brief(let byteCount) = state.holding, !state.isWhole { state.holding = .gathered(byteCount) }
        }
        flight.wakePump()
    }

    /// The bytes held of a body that the member collects as a whole; empty if it has read any of them.
    var collected: [UInt8] {
        flight.state.withLock { state in
            guard let reader = state.readers[number], reader.isCollecting, reader.offset == 0, state.holding.isBrief,
                state.start == 0
            else { return [] }
            return Array(state.chunks.joined())
        }
    }

    /// Waits for the outcome of the request.
    /// - Throws: ``HTTPError`` at the total timeout; `CancellationError`.
    func outcome(for call: Call, _ control: TransferControl) async throws -> CacheFlight.Outcome {
        while true {
            let waiter = OneShot<Void>()
            let outcome = flight.state.withLock { state -> CacheFlight.Outcome? in
                if case .decided(let outcome) = state.stage { return outcome }
                state.readers[number]?.waiter = waiter
                return nil
            }
            if let outcome { return outcome }
            try await wait(waiter, for: call, control, until: .distantFuture, .awaitingHead)
        }
    }

    /// Returns the next bytes of the body; `nil` at the end.
    /// - Throws: ``HTTPError``, or `CancellationError`.
    func next(for call: Call, _ control: TransferControl, until deadline: MonotonicTime) async throws -> [UInt8]? {
        while true {
            switch piece() {
            case .bytes(let bytes): return bytes
            case .end: return nil
            case .failed(let error): throw error
            case .stored(let writer, let offset):
                let read = try await call.reading(control, until: deadline, on: flight.loop) {
                    try? writer.read(at: offset, limit: 256 * 1024)
                }
                if control.isCancelled { throw CancellationError() }
                guard let bytes = read, !bytes.isEmpty else {
                    // New requests may join only while memory has the whole body: this part of the disk's copy is lost.
                    flight.state.withLock { if $0.admission == .open { $0.admission = .whileHeld } }
                    throw CachedBody.damage(call)
                }
                flight.state.withLock { state in
                    state.readers[number]?.offset += UInt64(bytes.count)
                    flight.trim(&state)
                }
                flight.wakePump()
                return bytes
            case .wait(let waiter): try await wait(waiter, for: call, control, until: deadline, .receivingBody)
            }
        }
    }

    /// Returns the next piece of the body, which then counts as read.
    func piece() -> Piece {
        defer { flight.wakePump() }
        return flight.state.withLock { state -> Piece in
            guard let reader = state.readers[number] else {
                let isDetached = state.detached.contains(number)
                return .failed(isDetached ? FlightMember.tooSlow : CancellationError())
            }
            let offset = reader.offset
            if reader.isCollecting, state.holding.isBrief, state.continues { return .wait(state.wait(of: number)) }
            if offset < state.start {
                guard let writer = state.writer, offset < state.stored else { return .failed(FlightMember.lost) }
                return .stored(writer, at: offset)
            }
            var position = state.start
            for chunk in state.chunks {
                let end = position + UInt64(chunk.count)
                if offset < end {
                    state.readers[number]?.offset = end
                    flight.trim(&state)
                    let skipped = Int(offset - position)
                    // A piece that still grows is copied here: if a reader shared its storage, appending would copy it.
                    let isSettled = !state.holding.isGathered || state.end != nil
                    return .bytes(skipped == 0 && isSettled ? chunk : Array(chunk[skipped...]))
                }
                position = end
            }
            switch state.end {
            case .complete: return .end
            case .failed(let error): return .failed(error)
            case nil: return state.continues ? .wait(state.wait(of: number)) : .end
            }
        }
    }

    private func wait(
        _ waiter: OneShot<Void>, for call: Call, _ control: TransferControl, until deadline: MonotonicTime,
        _ phase: HTTPError.Phase
    ) async throws {
        control.begin(.pausing(waiter))
        let began = MonotonicTime.now()
        let outcome = await waiter.wait(until: min(call.totalDeadline, deadline), on: flight.loop)
        if control.isCancelled { throw CancellationError() }
        guard case .timedOut = outcome else { return }
        let isTotal = MonotonicTime.now() >= call.totalDeadline
        throw call.timedOut(
            phase, "while the cache waited for the server", sentCount: call.requestCount,
            timeout: isTotal ? .total : .idle, since: isTotal ? nil : began)
    }

    /// The error of a reader that was too slow. A call that has delivered nothing yet repeats its request.
    private static let tooSlow = HTTPError(
        .cachedBodyCorrupted, phase: .receivingBody,
        message: "the body was read too slowly: the bytes between this reader and faster ones cannot be stored")

    /// The error of a reader whose next bytes are neither in memory nor in the store.
    private static let lost = HTTPError(
        .cachedBodyCorrupted, phase: .receivingBody, message: "the stored part of the body cannot be read")
}
