import MartletCore
import MartletCache
import MartletConnections
import MartletTransport
import MartletWire

/// One who takes part in a shared transfer, as long as it is there.
final class FlightMember: Sendable {
    let flight: CacheFlight
    let number: UInt64

    init(_ flight: CacheFlight, _ number: UInt64) {
        self.flight = flight
        self.number = number
    }

    deinit { leave() }

    /// No longer takes part.
    func leave() { flight.leave(number) }

    /// No longer takes part, once what is left of a small body has come, so that it is stored and its connection can carry
    /// another request. What does not come in time is waited for a second more, behind the caller's back.
    /// - Parameters:
    ///   - deadline: When the caller waits no longer.
    ///   - control: That of the caller, whose cancel ends the waiting.
    func leave(waitingUntil deadline: MonotonicTime, for control: TransferControl) async {
        while let waiter = flight.ending(for: number) {
            control.begin(.pausing(waiter))
            let outcome = await waiter.wait(until: deadline, on: flight.loop)
            if control.isCancelled { break }
            guard case .timedOut = outcome else { continue }
            // Unstructured: the caller is done and must not wait for a peer. It ends after a second at the latest.
            Task {
                let deadline = MonotonicTime.now().advanced(by: .seconds(1))
                while let waiter = flight.ending(for: number) {
                    if case .timedOut = await waiter.wait(until: deadline, on: flight.loop) { break }
                }
                leave()
            }
            return
        }
        leave()
    }

    /// Takes all of the body, and no part of it sooner where it is short.
    func collect() { flight.collect(number) }

    /// What has come of a body that is taken as a whole, and was not given out.
    var collected: [UInt8] { flight.collected(number) }

    /// Waits for what comes of the request; a cancel ends it at once, and so does the call's total clock.
    /// - Throws: ``HTTPError``, or `CancellationError`.
    func landing(for call: Call, _ control: TransferControl) async throws -> CacheFlight.Landing {
        while true {
            let waiter = OneShot<Void>()
            if let landing = flight.landing(for: number, waiter) { return landing }
            try await FlightMember.wait(
                waiter, for: call, control, on: flight.loop, until: .distantFuture, .awaitingHead)
        }
    }

    /// The next bytes of the body; `nil` at the end.
    /// - Throws: ``HTTPError``, or `CancellationError`.
    func next(for call: Call, _ control: TransferControl, until patience: MonotonicTime) async throws
        -> [UInt8]?
    {
        while true {
            switch flight.next(number) {
            case .bytes(let bytes): return bytes
            case .end: return nil
            case .failed(let error): throw error
            case .stored(let writer, let offset):
                let read = await BlockingWorkers.shared.run {
                    try? writer.read(at: offset, limit: 256 * 1024)
                }
                if control.isCancelled { throw CancellationError() }
                guard let bytes = read, !bytes.isEmpty else {
                    flight.noteUnreadable()
                    throw CachedBody.damage(call)
                }
                flight.advance(number, by: bytes.count)
                return bytes
            case .wait(let waiter):
                try await FlightMember.wait(
                    waiter, for: call, control, on: flight.loop, until: patience, .receivingBody)
            }
        }
    }

    private static func wait(
        _ waiter: OneShot<Void>, for call: Call, _ control: TransferControl, on loop: EventLoop,
        until patience: MonotonicTime, _ phase: HTTPError.Phase
    ) async throws {
        control.begin(.pausing(waiter))
        let outcome = await waiter.wait(until: min(call.totalDeadline, patience), on: loop)
        if control.isCancelled { throw CancellationError() }
        guard case .timedOut = outcome else { return }
        let isTotal = MonotonicTime.now() >= call.totalDeadline
        throw HTTPError(
            .timedOut, phase: phase,
            message: "the \(isTotal ? "total" : "idle") clock ran out while the cache waited for the server",
            wasSent: true, origin: call.url.origin.description, clock: isTotal ? .total : .idle,
            elapsed: MonotonicTime.now().since(call.start))
    }
}

/// How a call wants its transfer made: who joins another's has that one's clocks, rate and place in the queue.
struct FlightPace: Hashable {
    /// The clocks but the total one, which each call has for itself.
    private let timeouts: Timeouts
    private let bandwidth: BandwidthLimit
    /// The number of the calls that are under one limit with it.
    private let bandwidthGroup: UInt64?
    private let priority: RequestPriority
    private let order: WaitingOrder

    /// That of a call.
    init(_ call: Call) {
        let options = call.options
        var timeouts = call.timeouts
        timeouts.total = nil
        self.timeouts = timeouts
        bandwidth = options.bandwidth
        bandwidthGroup = options.bandwidthGroup?.number
        priority = options.priority ?? call.settings.configuration.priority
        order = options.order ?? call.settings.configuration.order
    }
}

/// Up to which size pieces of a body are gathered into one, in bytes: a server may send them byte by byte, and each would
/// cost as much as a large one.
private let gatheredByteCount = 16 * 1024

extension RangeReplaceableCollection
where Element == [UInt8], Self: BidirectionalCollection & MutableCollection {
    /// Adds a piece, to the last one where both are small.
    mutating func gather(_ bytes: [UInt8]) {
        guard !isEmpty else { return append(bytes) }
        let last = index(before: endIndex)
        if self[last].count + bytes.count <= gatheredByteCount { self[last] += bytes } else { append(bytes) }
    }
}
