import Synchronization

/// How many repetitions a session has left: each call pays in a part of one, each repetition takes out one.
final class RetryBudget: Sendable {
    /// What is there at first, so that a session with few calls has some as well.
    static let initial = 10.0
    /// What is there at most: a long quiet time does not save up for a storm.
    static let most = 100.0

    private let left = Mutex(RetryBudget.initial)

    init() {}

    /// Notes a call.
    func deposit(_ share: Double) {
        left.withLock { $0 = min($0 + max(0, share), RetryBudget.most) }
    }

    /// Takes out one repetition; `false` when there is none.
    func withdraw() -> Bool {
        left.withLock { left in
            guard left >= 1 else { return false }
            left -= 1
            return true
        }
    }
}
