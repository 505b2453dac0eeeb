import Synchronization

/// Looks at a cache's folder again and again, and keeps the most that it ever occupied.
final class CacheSampler: Sendable {
    private struct State {
        var highest = 0
        var looks = 0
    }

    private let folder: CacheDirectory
    /// Guards the figures: the task that looks, and whoever looks between.
    private let state = Mutex(State())

    init(_ folder: CacheDirectory) {
        self.folder = folder
    }

    /// The most that it occupied, in bytes.
    var highest: Int { state.withLock { $0.highest } }
    /// How often it was looked at.
    var looks: Int { state.withLock { $0.looks } }

    /// Looks once.
    @discardableResult
    func look() -> Int {
        let byteCount = folder.allocatedByteCount
        state.withLock { state in
            state.highest = max(state.highest, byteCount)
            state.looks += 1
        }
        return byteCount
    }

    /// Looks all the time, while something else runs.
    func run<Value>(while body: () async throws -> Value) async rethrows -> Value {
        // Unstructured, so that what runs need not be sendable; it ends with it.
        let task = Task {
            while !Task.isCancelled {
                look()
                try? await Task.sleep(for: .milliseconds(2))
            }
        }
        defer { task.cancel() }
        return try await body()
    }
}
