import Synchronization

/// The number of retries that a session may still make. Each call adds a fraction of one, and each retry subtracts one.
final class RetryBudget: Sendable {
    /// The initial amount, so that a session with few calls has some retries as well.
    static let initial = 10.0
    /// The maximum amount: a long quiet period does not allow many retries in a short time.
    static let maximum = 100.0

    private let left = Mutex(RetryBudget.initial)

    /// Adds the share of one call.
    func deposit(_ share: Double) { left.withLock { $0 = min($0 + max(0, share), RetryBudget.maximum) } }

    /// Withdraws one retry. With `isUsed` as `false`, it only checks for one. Returns `false` if none is left.
    func withdraw(isUsed: Bool) -> Bool {
        left.withLock { left in
            guard left >= 1 else { return false }
            if isUsed { left -= 1 }
            return true
        }
    }
}
