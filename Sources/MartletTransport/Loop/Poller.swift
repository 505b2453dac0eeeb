import CLinux
import Glibc

/// One epoll instance and the eventfd that wakes it: the three calls the loop makes of the kernel.
///
/// Descriptors are registered once, edge-triggered, for both directions. Each carries a registration number beside the
/// descriptor, since a batch of events can still hold one for a descriptor that was closed, and opened anew by someone
/// else, while the batch was being worked through.
///
/// `@unchecked Sendable`: the descriptors are the kernel's to guard, and only the loop's thread calls `wait`, which
/// alone touches the events.
@safe package struct Poller: ~Copyable, @unchecked Sendable {
    /// What one event said about a descriptor.
    struct Event {
        /// The descriptor.
        var descriptor: Int32
        /// The number it was registered under.
        var registration: UInt32
        /// Something can be read, or reading will say that nothing ever can.
        var isReadable: Bool
        /// Something can be written, or writing will say that nothing ever can.
        var isWritable: Bool
        /// The peer has closed its side, or the socket has failed: reading never blocks again.
        var isHangup: Bool
    }

    private let epoll: Int32
    private let wakeup: Int32
    private let events: UnsafeMutableBufferPointer<epoll_event>

    /// Opens the instance.
    /// - Throws: The errno of the call that failed.
    init(batchSize: Int = 256) throws(SystemError) {
        let epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard epoll >= 0 else { throw SystemError(operation: "epoll_create1", code: errno) }
        let wakeup = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard wakeup >= 0 else {
            let code = errno
            close(epoll)
            throw SystemError(operation: "eventfd", code: code)
        }
        var event = unsafe epoll_event()
        unsafe event.events = EPOLLIN.rawValue | EPOLLET.rawValue
        unsafe event.data.u64 = UInt64(UInt32(bitPattern: wakeup))
        guard unsafe epoll_ctl(epoll, EPOLL_CTL_ADD, wakeup, &event) == 0 else {
            let code = errno
            close(epoll)
            close(wakeup)
            throw SystemError(operation: "epoll_ctl", code: code)
        }
        self.epoll = epoll
        self.wakeup = wakeup
        unsafe events = .allocate(capacity: batchSize)
    }

    /// A poller of nothing: registering with it fails.
    init(stalled: Void) {
        epoll = -1
        wakeup = -1
        unsafe events = .allocate(capacity: 1)
    }

    deinit {
        close(epoll)
        close(wakeup)
        unsafe events.deallocate()
    }

    /// What is to be told of a descriptor.
    package enum Interest {
        /// What may be read and written: sockets.
        case traffic
        /// Urgent news alone, told as readable: pressure files.
        case news

        var flags: UInt32 {
            switch self {
            case .traffic: EPOLLIN.rawValue | EPOLLOUT.rawValue | EPOLLRDHUP.rawValue | EPOLLET.rawValue
            case .news: EPOLLPRI.rawValue | EPOLLET.rawValue
            }
        }
    }

    /// Registers a descriptor under a number, which must not be zero.
    func add(_ descriptor: Int32, registration: UInt32, interest: Interest = .traffic) throws(SystemError) {
        var event = unsafe epoll_event()
        unsafe event.events = interest.flags
        unsafe event.data.u64 = UInt64(registration) << 32 | UInt64(UInt32(bitPattern: descriptor))
        guard unsafe epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0 else {
            throw SystemError(operation: "epoll_ctl", code: errno)
        }
    }

    /// Makes a `wait` under way, or else the next one, return at once. Any thread may call it.
    func wake() {
        var one: UInt64 = 1
        _ = unsafe write(wakeup, &one, 8)
    }

    /// Waits for events and calls the closure for each.
    /// - Parameter timeout: Milliseconds; 0 does not wait, -1 waits without end.
    func wait(timeout: Int32, _ body: (Event) -> Void) {
        let count = unsafe epoll_wait(epoll, events.baseAddress, Int32(events.count), timeout)
        guard count > 0 else { return }
        for index in 0..<Int(count) {
            let event = unsafe events[index]
            let data = unsafe event.data.u64
            let registration = UInt32(truncatingIfNeeded: data >> 32)
            if registration == 0 {
                var value: UInt64 = 0
                _ = unsafe read(wakeup, &value, 8)
                continue
            }
            let flags = unsafe event.events
            let hangup = flags & (EPOLLHUP.rawValue | EPOLLRDHUP.rawValue) != 0
            let dead = flags & (EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0
            body(
                Event(
                    descriptor: Int32(bitPattern: UInt32(truncatingIfNeeded: data)),
                    registration: registration,
                    isReadable: hangup || dead || flags & (EPOLLIN.rawValue | EPOLLPRI.rawValue) != 0,
                    isWritable: dead || flags & EPOLLOUT.rawValue != 0, isHangup: hangup))
        }
    }
}

/// Something the event loop calls when an instant has passed.
///
/// Timers are lazy: a target that needs its deadline later than armed lets the timer fire and answers with the later
/// instant, so that pushing a deadline back, which every request does, costs no more than a store.
package protocol TimerTarget: AnyObject, Sendable {
    /// Called on the loop's thread; must not block.
    ///
    /// - Parameters:
    ///   - token: What the target gave when it armed the timer.
    ///   - now: The present instant.
    /// - Returns: When to be called again with the same token; `nil` for never.
    func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime?
}
