import Glibc

/// A file that is open, until nobody holds it any more.
///
/// Closing it lets go of the lock that was taken on it.
package final class OpenFile: Sendable {
    /// The path it was opened by; it may have another name since, or none.
    package let path: String
    let descriptor: Int32

    init(path: String, descriptor: Int32) {
        self.path = path
        self.descriptor = descriptor
    }

    deinit {
        close(descriptor)
    }
}
