import MartletTesting
import Synchronization

/// A server's record of every request that arrived and of the effects, by key.
final class ServerLog: Sendable {
    /// A request that arrived at the server.
    struct Entry: Sendable {
        var key: String?
        var path: String
        var body: String
        var fields: OriginFields
    }

    private struct State {
        var entries: [Entry] = []
        var effects: [String: Int] = [:]
        var order: [String] = []
    }

    private let state = Mutex(State())

    /// Records a request; a request with a known key has no effect.
    /// - Returns: Whether it took effect.
    @discardableResult
    func note(_ request: OriginRequest, takes: Bool = true) async throws -> Bool {
        let body = try await request.collectText()
        return state.withLock { state in
            let key = request.headers["Idempotency-Key"]
            state.entries.append(Entry(key: key, path: request.path, body: body, fields: request.headers))
            guard takes else { return false }
            let name = key ?? "request \(state.entries.count)"
            let isFirst = state.effects[name] == nil
            state.effects[name, default: 0] += isFirst || key == nil ? 1 : 0
            if isFirst { state.order.append(body) }
            return isFirst
        }
    }

    var entries: [Entry] { state.withLock { $0.entries } }
    /// The bodies of the requests that took effect, in order.
    var effects: [String] { state.withLock { $0.order } }
}
