import MartletCache
import MartletStorage
import Synchronization

/// What a cache has said while a command worked on it.
final class CacheNotes: Sendable {
    private struct State {
        var damages: [(file: String, fault: EntryFault)] = []
        var errors: [StorageError] = []
    }

    /// Written by the thread that works on the cache, read by the command.
    private let state = Mutex(State())

    /// Entries that were found damaged, in the order in which they were.
    var damages: [(file: String, fault: EntryFault)] { state.withLock { $0.damages } }
    /// What the file system refused.
    var errors: [StorageError] { state.withLock { $0.errors } }

    /// Notes an event.
    func take(_ event: DiskCacheEvent) {
        switch event {
        case .damaged(let file, let fault): state.withLock { $0.damages.append((file, fault)) }
        case .unavailable(let error): state.withLock { $0.errors.append(error) }
        case .tooLarge, .noRoom, .recovered, .evicted, .indexed: break
        }
    }
}
