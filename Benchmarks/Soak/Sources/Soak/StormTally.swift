import Synchronization

/// How the requests of the storm ended.
final class StormTally: Sendable {
    /// How one of them ended.
    enum Ending: Sendable {
        /// With the right body.
        case good
        /// With another body, and no error.
        case wrong
        /// With an error of Martlet's: its code and phase.
        case failed(String)
        /// With any other error.
        case untyped(String)
    }

    /// The counts.
    struct Value: Sendable {
        /// All requests.
        var requests = 0
        /// Those that ended ``Ending/good``.
        var good = 0
        /// Those that ended ``Ending/wrong``.
        var wrong = 0
        /// The errors of Martlet's, by code and phase.
        var codes: [String: Int] = [:]
        /// The other errors.
        var untyped: [String: Int] = [:]
        /// What the slowest one took.
        var longest = Duration.zero
        /// The first few that took longer than they may: what each was, and how it ended.
        var late: [String] = []
    }

    /// Guards the counts; every worker changes them.
    private let state = Mutex(Value())

    /// The counts so far.
    var value: Value { state.withLock { $0 } }

    /// What a request may take.
    private let bound: Duration

    init(bound: Duration) {
        self.bound = bound
    }

    /// Counts one.
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
