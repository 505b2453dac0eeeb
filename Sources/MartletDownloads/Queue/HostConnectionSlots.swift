package import MartletCore
import Synchronization

/// Connection slots: a limited number for each host and port, assigned in FIFO order.
/// A slot counts a connection that downloads may have open: it is acquired before a connection is requested, and
/// released when the connection is closed or free for others.
package final class HostConnectionSlots: Sendable {
    private struct Host {
        var count = 0
        /// The waiters in FIFO order.
        var waiters: [(number: UInt64, waiter: Waiter<Bool>)] = []
    }

    private struct State {
        var limit: Int
        /// The hosts by name and port.
        var hosts: [String: Host] = [:]
        var lastNumber: UInt64 = 0

        /// Acquires a slot if one is free and there are no waiters.
        mutating func tryAcquire(_ name: String) -> Bool {
            let host = hosts[name] ?? Host()
            guard host.waiters.isEmpty, host.count < limit else { return false }
            hosts[name, default: Host()].count += 1
            return true
        }

        /// Assigns free slots to waiters, and removes a host without acquired slots and waiters.
        mutating func serve(_ name: String) -> [Waiter<Bool>] {
            guard var host = hosts[name] else { return [] }
            let served = host.waiters.prefix(max(0, limit - host.count)).map(\.waiter)
            host.count += served.count
            host.waiters.removeFirst(served.count)
            hosts[name] = host.count == 0 && host.waiters.isEmpty ? nil : host
            return served
        }
    }

    /// The lock on the slots, used by all downloads.
    private let state: Mutex<State>

    /// Creates slots for a number of connections to each host, at least 1.
    package init(limit: Int) { state = Mutex(State(limit: max(1, limit))) }

    private static func name(_ origin: HTTPURL.Origin) -> String { "\(origin.host):\(origin.port)" }

    /// Changes the number of slots of each host. Open connections stay; new slots are assigned to waiters immediately.
    package func setLimit(_ limit: Int) {
        let served = state.withLock { state -> [Waiter<Bool>] in
            state.limit = max(1, limit)
            return Array(state.hosts.keys).flatMap { state.serve($0) }
        }
        for waiter in served { waiter.resume(returning: true) }
    }

    /// Waits for a slot of an origin in FIFO order, and acquires it.
    /// - Throws: `CancellationError` when the task is cancelled; no slot is acquired then.
    package func acquire(_ origin: HTTPURL.Origin) async throws(CancellationError) {
        let name = HostConnectionSlots.name(origin)
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let isAcquired = await withTaskCancellationHandler {
            await suspend { (waiter: Waiter<Bool>) in
                let isAcquired = state.withLock { state -> Bool? in
                    // The cancellation handler does not find a waiter that is not queued yet.
                    if Task.isCancelled { return false }
                    if state.tryAcquire(name) { return true }
                    state.hosts[name, default: Host()].waiters.append((number, waiter))
                    return nil
                }
                if let isAcquired { waiter.resume(returning: isAcquired) }
            }
        } onCancel: {
            let waiter = state.withLock { state -> Waiter<Bool>? in
                guard let index = state.hosts[name]?.waiters.firstIndex(where: { $0.number == number }) else {
                    return nil
                }
                return state.hosts[name]?.waiters.remove(at: index).waiter
            }
            waiter?.resume(returning: false)
        }
        guard isAcquired else { throw CancellationError() }
    }

    /// Acquires a slot if one is free and there are no waiters.
    package func tryAcquire(_ origin: HTTPURL.Origin) -> Bool {
        state.withLock { $0.tryAcquire(HostConnectionSlots.name(origin)) }
    }

    /// Releases a slot. Has no effect if none is acquired.
    package func release(_ origin: HTTPURL.Origin) {
        let name = HostConnectionSlots.name(origin)
        let served = state.withLock { state -> [Waiter<Bool>] in
            guard let count = state.hosts[name]?.count, count > 0 else { return [] }
            state.hosts[name]?.count = count - 1
            return state.serve(name)
        }
        for waiter in served { waiter.resume(returning: true) }
    }

    /// Returns the number of acquired slots of a host.
    package func count(_ origin: HTTPURL.Origin) -> Int {
        state.withLock { $0.hosts[HostConnectionSlots.name(origin)]?.count ?? 0 }
    }

    package var waitingCount: Int { state.withLock { $0.hosts.values.reduce(0) { $0 + $1.waiters.count } } }

    /// The number of hosts with an acquired slot or a waiter.
    package var hostCount: Int { state.withLock { $0.hosts.count } }
}

/// The connection slot of a transfer: that of the host of its current request, to which a redirect may have led. While
/// a transfer waits for a slot it has none, so that transfers never wait for each other.
final class ConnectionSlot: Sendable {
    /// The error of a transfer that does not wait for a slot.
    struct NoneFree: Error {}

    private struct State {
        /// The origin of the slot; `nil` without a slot.
        var origin: HTTPURL.Origin?
        var isOver = false
    }

    private let slots: HostConnectionSlots
    private let mayWait: Bool
    /// The lock on the state, used by the transfer and by the stage of its call.
    private let state = Mutex(State())

    init(_ slots: HostConnectionSlots, mayWait: Bool) { (self.slots, self.mayWait) = (slots, mayWait) }

    /// The origin of the slot; `nil` without a slot.
    var origin: HTTPURL.Origin? { state.withLock { $0.origin } }

    /// Releases the slot of another origin, and acquires one of this origin.
    /// - Throws: ``NoneFree``; `CancellationError` when the task is cancelled. The transfer has no slot then.
    func move(to origin: HTTPURL.Origin) async throws {
        guard self.origin != origin else { return }
        release()
        if mayWait { try await slots.acquire(origin) } else if !slots.tryAcquire(origin) { throw NoneFree() }
        // The call may have ended without waiting for this.
        let (surplus, isOver) = state.withLock { state -> (HTTPURL.Origin?, Bool) in
            if state.isOver { return (origin, true) }
            defer { state.origin = origin }
            return (state.origin, false)
        }
        if let surplus { slots.release(surplus) }
        if isOver { throw CancellationError() }
    }

    /// Releases the slot at the end of the transfer, which then gets no other one.
    func end() {
        state.withLock { $0.isOver = true }
        release()
    }

    private func release() {
        if let origin = state.withLock({ $0.origin.take() }) { slots.release(origin) }
    }
}

/// The option of a call whose requests need the slot of a transfer.
enum ConnectionSlotKey: StageKey {
    static var defaultValue: ConnectionSlot? { nil }
    static var position: StagePosition { .cache }

    static func isActive(_ slot: ConnectionSlot?) -> Bool { slot != nil }

    static func stage(for call: Call, _ progress: CallProgress) -> (any CallStage)? {
        call[ConnectionSlotKey.self].map { ConnectionSlotStage(slot: $0, progress: progress) }
    }
}

/// A stage that acquires the slot of each request's host before the connection is opened.
private struct ConnectionSlotStage: CallStage {
    let slot: ConnectionSlot
    let progress: CallProgress

    func answer(_ call: Call, _ next: CallNext) async throws -> StreamedResponse {
        let origin = call.url.origin
        if slot.origin != origin {
            try await progress.userCode.run("the wait for a connection slot", .preparing) {
                try await slot.move(to: origin)
            }
        }
        return try await next(call)
    }
}
