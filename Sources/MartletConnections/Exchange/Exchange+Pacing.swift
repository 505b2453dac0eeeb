package import MartletTransport
import Synchronization

// Transfers that are paused, limited in bandwidth, or waiting for user code.
extension Exchange {
    package var isPaused: Bool { gate?.isPaused ?? false }

    /// Waits while the transfer is paused. The total timeout continues to run.
    package func waitWhilePaused() async throws(ExchangeError) {
        if let gate, gate.isPaused {
            await gate.waitWhilePaused(until: clocks.totalDeadline, on: loop)
            let now = MonotonicTime.now()
            let isCancelled = state.withLock { state in
                if state.phase == .awaitingHead { state.headResumed = now }
                return state.isCancelled
            }
            if isCancelled { throw failure(.cancelled) }
        }
        try checkTotalTimeout()
    }

    /// A wait would check the total timeout, but a reader that always finds bytes never waits.
    private func checkTotalTimeout() throws(ExchangeError) {
        let deadline = clocks.totalDeadline
        if deadline != .distantFuture, MonotonicTime.now() >= deadline { throw failure(.timedOut(.total)) }
    }

    /// Restarts the waits of a transfer that is resumed after a pause, during which the idle timeout was suspended.
    package func transferResumed() {
        guard !isFinished else { return }
        connection.stream.wakeReader()
        connection.stream.wakeWriter()
    }

    package func isHeldBack(_ direction: TransferDirection) -> Bool { pace?.limiter.isActive(direction) ?? false }

    /// Waits until some of the body may be read. The idle timeout is suspended; the total timeout continues to run.
    /// Granted bytes that are not read are returned by ``giveBack(_:)``.
    /// - Returns: The number of bytes that may be read now, at least 1.
    package func allowance(of wanted: Int) async throws(ExchangeError) -> Int {
        guard let pace, isHeldBack(.down) else { return wanted }
        let turn = BandwidthLimiter.Wait()
        let isCancelled = state.withLock { state in
            state.turn = turn
            return state.isCancelled
        }
        if isCancelled { throw failure(.cancelled) }
        let outcome = await pace.limiter.take(wanted, .down, in: pace.scope, by: turn, until: clocks.totalDeadline)
        state.withLock { $0.turn = nil }
        switch outcome {
        case .value(let count): return count
        case .timedOut: throw failure(.timedOut(.total))
        case .interrupted: throw failure(.cancelled)
        }
    }

    /// Returns bytes that were granted by ``allowance(of:)`` and not read.
    package func giveBack(_ count: Int) { if let pace { pace.limiter.giveBack(count, .down, in: pace.scope) } }

    /// Records that a closure receives the body; its duration is not limited.
    package func closureBegins() { if !isFinished { connection.use = .closure } }

    /// Records that the program holds the body, which it may read at any time.
    package func holdBegins() { if !isFinished { connection.use = .held } }

    /// Exempts the connection from its pool's limits while user code runs; `nil` if it has been returned.
    package func exemption() -> Exemption? { isFinished ? nil : Exemption(lease, loop: loop) }

    /// The bytes of the request that were sent after its head: those of the body and of its framing.
    package var sentBodyByteCount: UInt64 {
        state.withLock { state in
            let sent = state.timeline.sentByteCount + (state.writer?.byteCount ?? 0)
            return sent - min(sent, UInt64(state.headByteCount))
        }
    }
}

/// Pauses a transfer; queried before each write and each read. A paused transfer reads nothing, so that the TCP window
/// stops the peer (RFC 9293 §3.8.6).
package protocol TransferPauseGate: AnyObject, Sendable {
    var isPaused: Bool { get }

    /// Waits until the transfer is not paused, the transfer or the task is cancelled, or the deadline passes.
    func waitWhilePaused(until deadline: MonotonicTime, on loop: EventLoop) async
}

/// The number of bytes of a fast body that are awaited together.
///
/// A reader that keeps up with a fast sender is woken for every packet, and waking costs more than copying the bytes.
/// If the last quarter of a megabyte came fast, the socket wakes its reader only for a batch of bytes (`SO_RCVLOWAT`).
/// A short timeout ends this when bytes come more slowly, so that they are not delayed.
struct ReceiveLowWaterMachine: Sendable {
    /// The number of bytes that must arrive within ``longestWindow`` to start batches.
    static let windowByteCount: UInt64 = 256 * 1024
    /// The maximum time for ``windowByteCount``, in nanoseconds: 64 MiB/s and more count as fast.
    private static let longestWindow: UInt64 = 4_000_000
    /// The number of bytes in a batch.
    static let batchByteCount = 512 * 1024
    /// The maximum delay of received bytes. One such delay ends batches until a window is fast again.
    static let maximumDelay = Duration.milliseconds(10)

    private var windowStart: (bytes: UInt64, instant: MonotonicTime)?
    /// Whether batches are awaited.
    private var isBatching = false

    /// Returns the number of bytes to wait for.
    /// - Parameters:
    ///   - received: The number of received bytes of the body.
    ///   - remaining: The number of bytes that are still expected; `nil` if it is not known.
    mutating func waitBegins(received: UInt64, remaining: UInt64?, now: MonotonicTime) -> Int {
        if let start = windowStart {
            let count = received &- start.bytes
            if count >= ReceiveLowWaterMachine.windowByteCount {
                let window = now.nanoseconds &- start.instant.nanoseconds
                // In proportion, since one read may span several windows.
                isBatching =
                    window / (count / ReceiveLowWaterMachine.windowByteCount) <= ReceiveLowWaterMachine.longestWindow
                windowStart = (received, now)
            }
        } else {
            windowStart = (received, now)
        }
        // The last bytes must not wait for a batch that never fills.
        if let remaining, remaining < UInt64(2 * ReceiveLowWaterMachine.batchByteCount) { isBatching = false }
        return isBatching ? ReceiveLowWaterMachine.batchByteCount : 1
    }

    /// Records that the batch did not arrive in time.
    mutating func waitTimedOut() { self = ReceiveLowWaterMachine() }
}

/// Decides when a single request spins while it waits for its response.
///
/// A sleeping thread wakes ten to thirty microseconds late. If a session has one request at a time and responses arrive
/// sooner (for example from the same machine), polling the socket is faster. It costs no more processor time than
/// sleeping and waking. Each failed poll makes the next one rarer, down to one in a thousand requests for a distant
/// server.
package final class AdaptiveSpinWait: Sendable {
    /// The maximum duration of a wait.
    fileprivate static let limit = Duration.microseconds(60)
    private static let mostSkipped = 1024
    /// The number of requests until the next attempt.
    private let left = Atomic<Int>(0)
    /// The number of requests that are skipped after the next failure.
    private let skipped = Atomic<Int>(1)

    /// Creates the state of one session, whose next request spins.
    package init() {}

    /// Whether this request spins. Counts the request.
    package func isDue() -> Bool {
        let left = left.load(ordering: .relaxed)
        if left == 0 { return true }
        self.left.store(left - 1, ordering: .relaxed)
        return false
    }

    func ended(inTime: Bool) {
        let skipped = inTime ? 1 : min(skipped.load(ordering: .relaxed) * 2, AdaptiveSpinWait.mostSkipped)
        self.skipped.store(skipped, ordering: .relaxed)
        if !inTime { left.store(skipped, ordering: .relaxed) }
    }
}

extension Exchange {
    /// Waits a few microseconds for bytes, without releasing its thread.
    /// - Returns: Whether bytes have arrived.
    package func arrives(within wait: AdaptiveSpinWait) -> Bool {
        let end = MonotonicTime.now().advanced(by: AdaptiveSpinWait.limit)
        var hasArrived = false
        repeat { hasArrived = connection.stream.looksReadable() } while !hasArrived && MonotonicTime.now() < end
        wait.ended(inTime: hasArrived)
        return hasArrived
    }
}

/// The timeouts of an exchange, as instants and durations.
package struct ExchangeTimeouts: Sendable {
    /// The maximum time from the sent request to the final head; `nil` for no limit.
    package var head: Duration?
    /// The maximum time without a transferred byte in either direction; `nil` for no limit.
    package var idle: Duration?
    /// The end of the whole call.
    package var totalDeadline: MonotonicTime

    package init(head: Duration? = nil, idle: Duration? = nil, totalDeadline: MonotonicTime = .distantFuture) {
        self.head = head
        self.idle = idle
        self.totalDeadline = totalDeadline
    }

    /// The deadline of a wait that starts now, and the timeout that it belongs to.
    func deadline(_ span: Duration?, _ clock: ExchangeError.Clock, from now: MonotonicTime = MonotonicTime.now()) -> (
        MonotonicTime, ExchangeError.Clock
    ) {
        guard let span else { return (totalDeadline, .total) }
        let instant = now.advanced(by: span)
        return instant < totalDeadline ? (instant, clock) : (totalDeadline, .total)
    }
}

/// The times of an exchange's steps, and the numbers of bytes.
package struct ExchangeTimeline: Sendable {
    /// The time before the first byte of the request was written.
    package var sendingBegan: MonotonicTime?
    /// The time after the last byte of the request was written.
    package var requestSent: MonotonicTime?
    /// The time at which the final head was received.
    package var headReceived: MonotonicTime?
    /// The time at which the body was complete.
    package var bodyReceived: MonotonicTime?
    /// Bytes written: head, framing and body.
    package var sentByteCount: UInt64 = 0
    /// Bytes of the body received, before any content coding is decoded.
    package var receivedBodyByteCount: UInt64 = 0

    package init() {}
}
