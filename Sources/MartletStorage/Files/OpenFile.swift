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

    init(path: String, descriptor: Int32) {
        self.path = path
        self.descriptor = descriptor
    }

    deinit {
        close()
    }

    /// Closes it at once. Nobody may use it any more: the number of its descriptor is another file's next.
    package func close() {
        guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
        _ = Glibc.close(descriptor)
    }
}
