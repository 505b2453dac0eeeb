import Synchronization

/// The outcomes of the storm's requests.
final class StormTally: Sendable {
    /// The outcome of a request.
    enum Ending: Sendable {
        /// The correct body was received.
        case good
        /// A wrong body was received without an error.
        case wrong
        /// The request failed with an error of Martlet, given by code and phase.
        case failed(String)
        /// The request failed with any other error.
        case untyped(String)
    }

    /// The counts of the outcomes.
    struct Value: Sendable {
        /// The number of all requests.
        var requests = 0
        /// The number of requests with ``Ending/good``.
        var good = 0
        /// The number of requests with ``Ending/wrong``.
        var wrong = 0
        /// The number of Martlet's errors by code and phase.
        var codes: [String: Int] = [:]
        /// The number of other errors by description.
        var untyped: [String: Int] = [:]
        /// The duration of the slowest request.
        var longest = Duration.zero
        /// The first requests that exceeded their limit, with their outcomes.
        var late: [String] = []
    }

    /// The counts, which every worker changes.
    private let state = Mutex(Value())

    /// The counts of the requests so far.
    var value: Value { state.withLock { $0 } }

    /// The maximum duration of a request.
    let bound: Duration

    init(bound: Duration) {
        self.bound = bound
    }

    /// Counts the outcome of one request.
    func ended(_ ending: Ending, _ duration: Duration, _ what: @autoclosure () -> String) {
        let late = duration > bound ? "\(SoakReport.short(duration.seconds)) s: \(what()): \(ending)" : nil
        state.withLock { value in
            if let late, value.late.count < 10 { value.late.append(late) }
            value.requests += 1
            value.longest = max(value.longest, duration)
            switch ending {
            case .good: value.good += 1
            case .wrong: value.wrong += 1
            case .failed(let code): value.codes[code, default: 0] += 1
            case .untyped(let text): value.untyped[text, default: 0] += 1
            }
        }
    }
}
