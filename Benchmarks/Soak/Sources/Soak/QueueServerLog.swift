import Martlet
import MartletTesting
import Synchronization

/// A server that records the effects by key, and can trigger an action at a moment of a request.
final class QueueServerLog: Sendable {
    /// A moment in the processing of a request.
    enum Moment: CaseIterable, Sendable {
        /// The moment after the arrival and before the effect.
        case before
        /// The moment after the effect and before the response.
        case during
        /// The moment during the response.
        case after
    }

    private struct State {
        var effects: [String: Int] = [:]
        var order: [String] = []
        var repetitions = 0
        var countdown = 0
        var moment = Moment.before
        var strike: (@Sendable () -> Void)?
    }

    /// The state, shared by the server's connections and its readers.
    private let state = Mutex(State())

    /// Sets an action for a moment of the request that follows `count` others.
    func strike(at moment: Moment, after count: Int, _ strike: (@Sendable () -> Void)?) {
        state.withLock { state in
            (state.moment, state.countdown, state.strike) = (moment, count + 1, strike)
        }
    }

    /// Processes a request and returns its response.
    func take(_ request: OriginRequest) async throws -> OriginResponse {
        reach(.before)
        let body = try await request.collectText()
        let key = request.headers["Idempotency-Key"] ?? "none"
        state.withLock { state in
            guard state.effects[key] == nil else {
                state.repetitions += 1
                return
            }
            state.effects[key] = 1
            state.order.append(body)
        }
        reach(.during)
        reach(.after)
        return .text("taken")
    }

    private func reach(_ moment: Moment) {
        let strike = state.withLock { state -> (@Sendable () -> Void)? in
            guard state.moment == moment, state.countdown > 0 else { return nil }
            state.countdown -= 1
            return state.countdown == 0 ? state.strike.take() : nil
        }
        guard let strike else { return }
        // After this moment the response is in transit or was sent.
        if moment == .after { Task { strike() } } else { strike() }
    }

    /// The bodies of the effective requests in order.
    var order: [String] { state.withLock { $0.order } }
    /// The number of keys that took effect.
    var effectCount: Int { state.withLock { $0.effects.count } }
    /// The number of repeated requests.
    var repetitions: Int { state.withLock { $0.repetitions } }
}
