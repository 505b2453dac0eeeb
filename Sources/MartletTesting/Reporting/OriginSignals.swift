import MartletTransport
import Synchronization

/// Named events that synchronize a test and its origin without sleeping.
///
/// A signal stays raised: later waits for it return immediately.
public final class OriginSignals: Sendable {
    private let raised = AwaitableState<Set<String>>([])

    /// Creates signals that are not raised, for a handler and its test.
    public init() {}

    /// Raises a signal and resumes all its waiters.
    public func raise(_ name: String) { raised.update { _ = $0.insert(name) } }

    /// Whether a signal was raised.
    public func isRaised(_ name: String) -> Bool { raised.read { $0.contains(name) } }

    /// Waits for a signal.
    /// - Throws: ``OriginError/timedOut(waitingFor:)`` after the limit, `CancellationError`.
    public func wait(for name: String, within limit: Duration = .seconds(120)) async throws {
        guard try await raised.wait(within: limit, until: { $0.contains(name) }) else {
            throw OriginError.timedOut(waitingFor: "the signal \(name)")
        }
    }
}

/// A shared state. Tasks can wait until it meets a condition.
final class AwaitableState<State: Sendable>: Sendable {
    private struct Contents {
        var state: State
        var waiters: [Int: (isMet: @Sendable (State) -> Bool, event: OneShot<Void>)] = [:]
        var lastWaiter = 0
    }

    private let contents: Mutex<Contents>

    init(_ state: State) { contents = Mutex(Contents(state: state)) }

    func read<Value: Sendable>(_ body: (State) -> Value) -> Value { contents.withLock { body($0.state) } }

    /// Changes the state, and resumes the waiters whose conditions it then meets.
    func update<Value: Sendable>(_ change: (inout State) -> Value) -> Value {
        let (value, met) = contents.withLock { contents -> (Value, [OneShot<Void>]) in
            let value = change(&contents.state)
            if contents.waiters.isEmpty { return (value, []) }
            let met = contents.waiters.filter { $0.value.isMet(contents.state) }
            for key in met.keys { contents.waiters.removeValue(forKey: key) }
            return (value, met.values.map(\.event))
        }
        for event in met { event.fulfill(()) }
        return value
    }

    /// Waits until a condition is met.
    /// - Returns: `false` after the limit.
    /// - Throws: `CancellationError`; the error of the event loop.
    func wait(within limit: Duration, until isMet: @escaping @Sendable (State) -> Bool) async throws -> Bool {
        let event = OneShot<Void>()
        let key = contents.withLock { contents -> Int? in
            if isMet(contents.state) { return nil }
            contents.lastWaiter += 1
            contents.waiters[contents.lastWaiter] = (isMet, event)
            return contents.lastWaiter
        }
        guard let key else { return true }
        defer { contents.withLock { _ = $0.waiters.removeValue(forKey: key) } }
        let loop = try EventLoop.shared.get()
        switch await event.waitUnlessCancelled(until: MonotonicTime.now().advanced(by: limit), on: loop) {
        case .value: return true
        case .interrupted: throw CancellationError()
        case .timedOut: return false
        }
    }
}
