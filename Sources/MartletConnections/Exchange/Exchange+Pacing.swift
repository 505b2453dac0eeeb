package import MartletTransport
import Synchronization

// A transfer that is paused, held to a limit of bandwidth, or held up by code of the program.
extension Exchange {
    package var isPaused: Bool { gate?.isPaused ?? false }

    /// Waits while the transfer is paused; the total clock goes on meanwhile.
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

    /// A wait would check the total clock, but a reader that always finds bytes never waits.
    private func checkTotalTimeout() throws(ExchangeError) {
        let deadline = clocks.totalDeadline
        if deadline != .distantFuture, MonotonicTime.now() >= deadline { throw failure(.timedOut(.total)) }
    }

    /// Restarts the waits of a transfer that is resumed after a pause: the idle clock stood meanwhile.
    package func transferResumed() {
        guard !isFinished else { return }
        connection.stream.wakeReader()
        connection.stream.wakeWriter()
    }

    package func isHeldBack(_ direction: TransferDirection) -> Bool { pace?.governor.isActive(direction) ?? false }

    /// Waits until some of the body may be read; the idle clock stands meanwhile, the total clock goes on. Bytes that
    /// are granted and not read are given back by ``giveBack(_:)``.
    /// - Returns: The number of bytes that may be read now, at least 1.
    package func allowance(of wanted: Int) async throws(ExchangeError) -> Int {
        guard let pace, isHeldBack(.down) else { return wanted }
        let turn = BandwidthLimiter.Wait()
        let isCancelled = state.withLock { state in
            state.turn = turn
            return state.isCancelled
        }
        if isCancelled { throw failure(.cancelled) }
        let outcome = await pace.governor.take(wanted, .down, in: pace.lane, by: turn, until: clocks.totalDeadline)
        state.withLock { $0.turn = nil }
        switch outcome {
        case .value(let count): return count
        case .timedOut: throw failure(.timedOut(.total))
        case .interrupted: throw failure(.cancelled)
        }
    }

    /// Gives back bytes that were granted by ``allowance(of:)`` and not read.
    package func giveBack(_ count: Int) { if let pace { pace.governor.giveBack(count, .down, in: pace.lane) } }

    /// Records that a closure gets the body, which may take as long as it likes.
    package func closureBegins() { if !isFinished { connection.use = .closure } }

    /// Records that the program holds the body, which it may read at any time.
    package func holdBegins() { if !isFinished { connection.use = .held } }

    /// Keeps the connection out of its pool's limits while code of the program runs; `nil` if it has been given back.
    package func exemption() -> Exemption? { isFinished ? nil : Exemption(lease, loop: loop) }

    /// The bytes of the request that were sent after its head: those of the body and of its framing.
    package var sentBodyByteCount: UInt64 {
        state.withLock { state in
            let sent = state.timeline.sentByteCount + (state.writer?.byteCount ?? 0)
            return sent - min(sent, UInt64(state.headByteCount))
        }
    }
}

/// Pauses a transfer; queried before each write and each read. A paused transfer reads nothing, so that the peer is
/// held by the TCP window (RFC 9293 §3.8.6).
package protocol TransferPauseGate: AnyObject, Sendable {
    var isPaused: Bool { get }

    /// Returns when the transfer is not paused, or it or the task was cancelled, or the deadline has passed.
    func waitWhilePaused(until deadline: MonotonicTime, on loop: EventLoop) async
}

/// The number of bytes of a fast body that are awaited together.
///
/// A reader that keeps up with a fast sender is woken for every packet, and waking costs more than copying the bytes.
/// If the last quarter of a megabyte came fast, the socket is asked to wake its reader only for so many bytes
/// (`SO_RCVLOWAT`). A short clock beside it ends that when bytes come more slowly, so that they are not held back.
struct ReceiveLowWaterMachine: Sendable {
    /// The number of bytes that must come in ``longestWindow`` to be awaited together.
    static let windowByteCount: UInt64 = 256 * 1024
    /// In nanoseconds: 64 MiB/s and more count as fast.
    private static let longestWindow: UInt64 = 4_000_000
    /// The number of bytes that are awaited together.
    static let batchByteCount = 512 * 1024
    /// The maximum time for which bytes are held back: one such wait ends batches until a window was fast again.
    static let maximumDelay = Duration.milliseconds(10)

    private var windowStart: (bytes: UInt64, instant: MonotonicTime)?
    /// Whether batches are awaited.
    private var isBatching = false

    /// Returns the number of bytes to wait for.
    /// - Parameters:
    ///   - received: The number of bytes of the body that have come.
    ///   - remaining: The number of bytes that must still come; `nil` if it is not known.
    mutating func waitBegins(received: UInt64, remaining: UInt64?, now: MonotonicTime) -> Int {
        if let start = windowStart {
            let count = received &- start.bytes
            if count >= ReceiveLowWaterMachine.windowByteCount {
                let window = now.nanoseconds &- start.instant.nanoseconds
                // In proportion: one reading may take in several windows.
                isBatching =
                    window / (count / ReceiveLowWaterMachine.windowByteCount) <= ReceiveLowWaterMachine.longestWindow
                windowStart = (received, now)
            }
        } else {
            windowStart = (received, now)
        }
        // The last bytes must not be waited for as part of a batch that never fills.
        if let remaining, remaining < UInt64(2 * ReceiveLowWaterMachine.batchByteCount) { isBatching = false }
        return isBatching ? ReceiveLowWaterMachine.batchByteCount : 1
    }

    /// Notes that the batch did not come in time.
    mutating func waitTimedOut() { self = ReceiveLowWaterMachine() }
}

/// Decides when a lone request waits for its response awake.
///
/// A thread that goes to sleep is woken again some ten to thirty microseconds late. If a session has one request at a
/// time and its responses come sooner than that, as from the same machine, watching the socket for that long is
/// quicker, and costs no more processor time than sleeping and being woken does. Each wait that was in vain makes the
/// next one rarer, so that a server farther away sees one in a thousand.
package final class AdaptiveSpinWait: Sendable {
    /// The maximum duration of a wait.
    fileprivate static let limit = Duration.microseconds(60)
    private static let mostSkipped = 1024

    /// The number of requests until the next try.
    private let left = Atomic<Int>(0)
    /// The number of requests that are skipped after the next failure.
    private let skipped = Atomic<Int>(1)

    /// Creates the rule of one session, whose next request tries.
    package init() {}

    /// Whether this request is one to try with. Counts it.
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
    /// Waits a few microseconds for bytes, without giving up its thread.
    /// - Returns: Whether bytes have come.
    package func arrives(within wait: AdaptiveSpinWait) -> Bool {
        let end = MonotonicTime.now().advanced(by: AdaptiveSpinWait.limit)
        var hasArrived = false
        repeat { hasArrived = connection.stream.looksReadable() } while !hasArrived && MonotonicTime.now() < end
        wait.ended(inTime: hasArrived)
        return hasArrived
    }
}

/// The clocks of an exchange, as instants and spans.
package struct ExchangeTimeouts: Sendable {
    /// The time in which the final head must come once the request is sent; `nil` for no limit.
    package var head: Duration?
    /// The time in which a byte must move, either way; `nil` for no limit.
    package var idle: Duration?
    /// The end of the whole call.
    package var totalDeadline: MonotonicTime

    package init(head: Duration? = nil, idle: Duration? = nil, totalDeadline: MonotonicTime = .distantFuture) {
        self.head = head
        self.idle = idle
        self.totalDeadline = totalDeadline
    }

    /// The deadline of a wait that begins now, and the clock it belongs to.
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
