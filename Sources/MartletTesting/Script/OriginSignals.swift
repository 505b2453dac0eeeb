import MartletTransport
import Synchronization

/// Named events between a test and its origin, so that both keep an order without sleeping.
///
/// A signal stays raised: who waits for it later returns at once.
public final class OriginSignals: Sendable {
    private struct State {
        var raised: Set<String> = []
        var waiters: [String: [OneShot<Void>]] = [:]
    }

    private let state = Mutex(State())

    init() {}

    /// Raises a signal and resumes everyone who waits for it.
    public func raise(_ name: String) {
        let waiters = state.withLock { state in
            state.raised.insert(name)
            return state.waiters.removeValue(forKey: name) ?? []
        }
        for waiter in waiters { waiter.fulfil(()) }
    }

    /// Whether a signal was raised.
    public func isRaised(_ name: String) -> Bool {
        state.withLock { $0.raised.contains(name) }
    }

    /// Waits for a signal.
    /// - Throws: ``OriginError/timedOut(waitingFor:)`` after the limit, `CancellationError`.
    public func wait(for name: String, within limit: Duration = .seconds(120)) async throws {
        let loop = try EventLoop.shared.get()
        let event = OneShot<Void>()
        let isRaised = state.withLock { state in
            if state.raised.contains(name) { return true }
            state.waiters[name, default: []].append(event)
            return false
        }
        if isRaised { return }
        let outcome = await event.waitUnlessCancelled(
            until: MonotonicTime.now().advanced(by: limit), on: loop)
        switch outcome {
        case .value: return
        case .interrupted, .timedOut:
            state.withLock { state in
                state.waiters[name]?.removeAll { $0 === event }
            }
            if case .interrupted = outcome { throw CancellationError() }
            throw OriginError.timedOut(waitingFor: "the signal \(name)")
        }
    }
}
