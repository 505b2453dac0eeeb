import CLinux
import Glibc

/// A counting semaphore of the system's, to block a thread of our own on; never a thread of Swift's pool.
///
/// `@unchecked Sendable`: the pointer is set once, and what it points at is the system's to guard.
@safe final class Semaphore: @unchecked Sendable {
    private let pointer: UnsafeMutablePointer<sem_t>

    init() {
        unsafe pointer = .allocate(capacity: 1)
        unsafe sem_init(pointer, 0, 0)
    }

    deinit {
        unsafe sem_destroy(pointer)
        unsafe pointer.deallocate()
    }

    /// Adds one.
    func signal() {
        unsafe sem_post(pointer)
    }

    /// Takes one, waiting for it if need be.
    /// - Returns: Whether there was one before the time was up.
    func wait(seconds: Int) -> Bool {
        var limit = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &limit)
        limit.tv_sec += seconds
        while unsafe sem_timedwait(pointer, &limit) != 0 {
            if errno != EINTR { return false }
        }
        return true
    }
}
