/// Limits the number of servers that start concurrently. A start that waits costs nothing; one that competes with a
/// hundred others for two processors looks like a failed one.
actor StartGate {
    /// The one gate of all servers.
    static let shared = StartGate()

    private var free = 4
    private var line: [CheckedContinuation<Void, Never>] = []

    /// Runs `body` when a slot is free.
    nonisolated func whileInside<Value>(_ body: () async throws -> Value) async rethrows -> Value {
        await enter()
        do {
            let value = try await body()
            await leave()
            return value
        } catch {
            await leave()
            throw error
        }
    }

    private func enter() async {
        guard free == 0 else {
            free -= 1
            return
        }
        await withCheckedContinuation { line.append($0) }
    }

    private func leave() {
        if line.isEmpty { free += 1 } else { line.removeFirst().resume() }
    }
}
