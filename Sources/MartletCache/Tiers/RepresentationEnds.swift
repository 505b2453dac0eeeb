import Synchronization

/// Tells whoever wants to know which bodies are no longer stored under a key.
///
/// Both tiers report what ends in them, so each body is told of once, as far as the last ones are remembered.
final class RepresentationEnds: Sendable {
    /// Is told the key and which body it was.
    typealias Listener = @Sendable (CacheKey, UInt64) -> Void

    private struct State {
        var listeners: [Listener] = []
        var told: Set<UInt64> = []
        var order: [UInt64] = []
        var next = 0
    }

    /// How many are remembered as told.
    private static let limit = 1024

    /// Read and written by whatever thread works on a tier, for the time of a look-up.
    private let state = Mutex(State())

    /// Adds a listener.
    func add(_ listener: @escaping Listener) {
        state.withLock { $0.listeners.append(listener) }
    }

    /// Tells all listeners that a body has ended, unless they know.
    func note(_ key: CacheKey, _ representation: UInt64) {
        let listeners = state.withLock { state -> [Listener] in
            guard !state.listeners.isEmpty, state.told.insert(representation).inserted else {
                return []
            }
            if state.order.count < Self.limit {
                state.order.append(representation)
            } else {
                state.told.remove(state.order[state.next])
                state.order[state.next] = representation
                state.next = (state.next + 1) % Self.limit
            }
            return state.listeners
        }
        for listener in listeners { listener(key, representation) }
    }
}
