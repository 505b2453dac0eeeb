import MartletTesting
import Synchronization

/// The signals of an origin for its own handler, which is created before the origin.
final class SignalBox: Sendable {
    private let known = Mutex<OriginSignals?>(nil)

    /// Sets the origin, before any request is sent.
    func use(_ origin: TestOrigin) {
        known.withLock { $0 = origin.signals }
    }

    /// Waits for a signal of the origin.
    func wait(for name: String) async throws {
        guard let signals = known.withLock({ $0 }) else { return }
        try await signals.wait(for: name, within: TestTimeouts.long)
    }

    /// Raises a signal of the origin.
    func raise(_ name: String) {
        known.withLock { $0 }?.raise(name)
    }
}
