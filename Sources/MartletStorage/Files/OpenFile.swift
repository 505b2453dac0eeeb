import Glibc
import Synchronization

/// A file that is open, until it is closed, or nobody holds it any more.
///
/// Closing it lets go of the lock that was taken on it.
package final class OpenFile: Sendable {
    /// The path it was opened by; it may have another name since, or none.
    package let path: String
    let descriptor: Int32
    /// Set once, by whoever closes it.
    private let isClosed = Atomic(false)
    /// Set by whoever takes its lock, and never reset: to let go of a lock that is none does no harm.
    private let wasLocked = Atomic(false)

    init(path: String, descriptor: Int32) {
        self.path = path
        self.descriptor = descriptor
    }

    deinit {
        close()
    }

    /// Notes that its lock was taken.
    func noteLock() {
        wasLocked.store(true, ordering: .releasing)
    }

    /// Closes it at once. Nobody may use it any more: the number of its descriptor is another file's next.
    package func close() {
        guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
        // The lock ends with the last copy of the descriptor, and a process that is being started elsewhere in this one has
        // a copy until it is another program: whoever comes next would find a lock of nobody's.
        if wasLocked.load(ordering: .acquiring) { _ = flock(descriptor, LOCK_UN) }
        _ = Glibc.close(descriptor)
    }
}
