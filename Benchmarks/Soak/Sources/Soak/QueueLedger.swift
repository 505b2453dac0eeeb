import Martlet
import MartletTesting
import Synchronization

/// A server that writes down what took effect, by key, and lets a process be killed at a moment of a request.
final class QueueLedger: Sendable {
    /// When of a request's life something happens.
    enum Moment: CaseIterable, Sendable {
        /// When it has come, before it takes effect.
        case before
        /// When it has taken effect, before it is answered.
        case during
        /// When it is being answered.
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

    /// Guards the above: the server's connections, and whoever reads.
    private let state = Mutex(State())

    /// Has something happen at a moment of the request that comes after so many.
    func strike(at moment: Moment, after count: Int, _ strike: (@Sendable () -> Void)?) {
        state.withLock { state in
            (state.moment, state.countdown, state.strike) = (moment, count + 1, strike)
        }
    }

    /// Takes a request.
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
        // Behind it the answer is on its way, or not any more.
        if moment == .after { Task { strike() } } else { strike() }
    }

    /// The bodies of what took effect, in order.
    var order: [String] { state.withLock { $0.order } }
    /// How many keys took effect.
    var effectCount: Int { state.withLock { $0.effects.count } }
    /// How many requests came again.
    var repetitions: Int { state.withLock { $0.repetitions } }
}
