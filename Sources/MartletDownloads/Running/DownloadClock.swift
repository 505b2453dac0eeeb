import Synchronization

/// Tells runs twenty times a second that time has passed: one clock for all of a process, so that short downloads do not make
/// and end a timer each.
final class DownloadClock: Sendable {
    private struct State {
        var listeners: [UInt64: @Sendable () -> Void] = [:]
        var lastNumber: UInt64 = 0
        var isGoing = false
    }

    /// The clock of all downloads.
    static let shared = DownloadClock()
    /// How often it tells.
    private static let interval = Duration.milliseconds(50)

    /// Guards the above: runs that begin and end, and the clock's task.
    private let state = Mutex(State())

    /// How many it tells.
    var listenerCount: Int { state.withLock { $0.listeners.count } }

    /// Tells one more from now on, first within a twentieth of a second.
    /// - Parameter tell: Returns at once.
    /// - Returns: By what it is removed.
    func add(_ tell: @escaping @Sendable () -> Void) -> UInt64 {
        let (number, mustGo) = state.withLock { state in
            state.lastNumber += 1
            state.listeners[state.lastNumber] = tell
            let mustGo = !state.isGoing
            state.isGoing = true
            return (state.lastNumber, mustGo)
        }
        // Detached, since it is nobody's in particular: it ends when nobody listens any more.
        if mustGo { Task.detached { await self.go() } }
        return number
    }

    /// Tells one no more.
    func remove(_ number: UInt64) {
        state.withLock { $0.listeners[number] = nil }
    }

    private func go() async {
        while true {
            try? await Task.sleep(for: DownloadClock.interval)
            let listeners = state.withLock { state in
                state.isGoing = !state.listeners.isEmpty
                return Array(state.listeners.values)
            }
            if listeners.isEmpty { return }
            for tell in listeners { tell() }
        }
    }
}
