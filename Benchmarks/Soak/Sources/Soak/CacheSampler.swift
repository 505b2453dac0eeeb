import Synchronization

/// A sampler of a cache directory's size that retains the maximum.
final class CacheSampler: Sendable {
    private struct State {
        var highest = 0
        var looks = 0
    }

    private let directory: CacheDirectory
    /// The figures, shared by the sampling task and its callers.
    private let state = Mutex(State())

    init(_ directory: CacheDirectory) {
        self.directory = directory
    }

    /// The maximum size of the directory in bytes.
    var highest: Int { state.withLock { $0.highest } }
    /// The number of samples.
    var looks: Int { state.withLock { $0.looks } }

    /// Takes one sample.
    @discardableResult
    func look() -> Int {
        let byteCount = directory.allocatedByteCount
        state.withLock { state in
            state.highest = max(state.highest, byteCount)
            state.looks += 1
        }
        return byteCount
    }

    /// Takes samples continuously while a closure runs.
    func run<Value>(while body: () async throws -> Value) async rethrows -> Value {
        // The task is unstructured, so that the closure need not be sendable. It ends with the closure.
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
