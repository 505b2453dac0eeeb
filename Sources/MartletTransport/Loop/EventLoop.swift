import CMartletLinux
import Glibc
import Synchronization

/// One thread that waits for sockets and timers and reports readiness; it moves no bytes itself. While many sockets are
/// busy, the tasks that it resumes poll in its place (``PollTurn``).
///
/// A connection makes its system call on its caller's thread and uses the loop only if the call would block. With 64
/// connections on two cores, this handles a fifth more requests than running connections on the loop. The loop can also
/// run tasks: as a task executor it avoids thread switches, which is faster with many connections and slower with one.
package final class EventLoop: TaskExecutor {
    private struct Registrations {
        /// Indexed by descriptor: the kernel assigns small, dense numbers.
        var byDescriptor: [Readiness?] = []
        var lastNumber: UInt32 = 0

        func find(_ descriptor: Int32, _ number: UInt32) -> Readiness? {
            let index = Int(descriptor)
            guard index < byDescriptor.count, byDescriptor[index]?.number == number else { return nil }
            return byDescriptor[index]
        }
    }

    private struct Timer: Comparable {
        var deadline: MonotonicTime
        var token: UInt64
        var target: Target

        static func < (left: Timer, right: Timer) -> Bool { left.deadline < right.deadline }
        static func == (left: Timer, right: Timer) -> Bool { left.deadline == right.deadline }
    }

    private enum Target {
        /// A socket, by its registration. A weak reference would make each later retain and release slow, and a strong
        /// one would keep the socket in memory until its last deadline.
        case socket(descriptor: Int32, number: UInt32)
        /// An object that the timer does not retain.
        case object(WeakTarget)
        /// An object that is retained and released too often for a weak reference.
        case retained(any TimerTarget)
    }

    private struct WeakTarget { weak var object: (any TimerTarget)? }

    private struct Agenda {
        var timers = MinHeap<Timer>()
        /// The number of timers at which those without a target are removed.
        var sweepCount = EventLoop.leastSweepCount
        var jobs: [UnownedJob] = []
        /// The observers that a task found to be due, which are called on the loop's thread only.
        var observers: [any IdleStreamObserver] = []
        /// The time until which the thread sleeps; zero while it is awake and will check the agenda before it sleeps.
        var sleepsUntil = MonotonicTime(nanoseconds: 0)
        var isStopped = false

        /// Whether the thread has something to do besides waiting.
        var hasWork: Bool { !jobs.isEmpty || !observers.isEmpty || isStopped }
    }

    /// Guards the registered sockets: used by the polling thread for each event, and to open and close sockets.
    private let registrations = Mutex(Registrations())
    /// Guards timers, jobs and due observers: used by the loop's thread, and by code that adds one.
    private let agenda = Mutex(Agenda())
    private let poller: Poller
    let turn = PollTurn()
    private let thread = Atomic<UInt>(0)

    /// The loop that all sessions share. It starts on first use, and lives as long as the process. A failure if the
    /// system refuses its two descriptors or its thread.
    package static let shared = Result { () throws(SystemError) in try EventLoop.start() }

    /// The shared loop; if it could not be started, a loop without a thread, which rejects every socket.
    package static let sharedOrStalled: EventLoop = {
        switch shared {
        case .success(let loop): loop
        case .failure: EventLoop(poller: Poller(stalled: ()))
        }
    }()

    /// The minimum number of timers for a sweep; each takes about forty bytes.
    private static let leastSweepCount = 1024

    private init(poller: consuming Poller) { self.poller = poller }

    package static func start() throws(SystemError) -> EventLoop {
        OpenSSLLibrary.load()
        let loop = EventLoop(poller: try Poller())
        try Thread.start(name: "martlet-loop") { loop.run() }
        return loop
    }

    /// Ends the thread after the enqueued jobs. Only tests stop their loops.
    package func stop() {
        give { $0.isStopped = true }
    }

    /// The number of registered sockets, listening ones included. Takes time in proportion to the highest descriptor.
    package var socketCount: Int { registrations.withLock { $0.byDescriptor.count { readiness in readiness != nil } } }

    /// The number of timers, including those whose target was released.
    package var timerCount: Int { agenda.withLock { $0.timers.count } }

    // MARK: Sockets

    package func register(_ descriptor: Int32, interest: Poller.Interest = .traffic) throws(SystemError) -> (
        readiness: Readiness, number: UInt32
    ) {
        let readiness = registrations.withLock { registrations in
            registrations.lastNumber = registrations.lastNumber == .max ? 1 : registrations.lastNumber + 1
            let readiness = Readiness(loop: self, descriptor: descriptor, number: registrations.lastNumber)
            let index = Int(descriptor)
            while registrations.byDescriptor.count <= index { registrations.byDescriptor.append(nil) }
            registrations.byDescriptor[index] = readiness
            return readiness
        }
        do throws(SystemError) { try poller.add(descriptor, registration: readiness.number, interest: interest) } catch
        {
            unregister(descriptor, number: readiness.number)
            throw error
        }
        return (readiness, readiness.number)
    }

    /// Removes a descriptor before the caller closes it. Events that are already queued for it are then ignored.
    package func unregister(_ descriptor: Int32, number: UInt32) {
        let removed = registrations.withLock { registrations in
            let found = registrations.find(descriptor, number)
            if found != nil { registrations.byDescriptor[Int(descriptor)] = nil }
            return found
        }
        // Released outside of the lock: it may be the last reference.
        _ = consume removed
    }

    // MARK: Timers

    /// Calls a target at an instant, or up to a millisecond later; on a busy machine, even later.
    /// - Parameter isRetained: Whether the target is retained until then. Use `true` for a target that many threads use
    ///   all the time, because a weak reference would make each later retain and release of the target slow.
    package func schedule(
        _ target: any TimerTarget, token: UInt64, at deadline: MonotonicTime, isRetained: Bool = false
    ) {
        let target: Target = isRetained ? .retained(target) : .object(WeakTarget(object: target))
        insert(Timer(deadline: deadline, token: token, target: target))
    }

    /// Calls the readiness of a socket at an instant, if it is still registered under this number.
    func schedule(descriptor: Int32, number: UInt32, token: UInt64, at deadline: MonotonicTime) {
        insert(Timer(deadline: deadline, token: token, target: .socket(descriptor: descriptor, number: number)))
    }

    private func insert(_ timer: Timer) {
        let (mustWake, swept) = agenda.withLock { agenda in
            agenda.timers.insert(timer)
            let isFull = agenda.timers.count >= agenda.sweepCount
            return (timer.deadline < agenda.sleepsUntil, isFull ? sweep(&agenda) : [])
        }
        // Released outside of the lock: they may be the last references.
        _ = consume swept
        if mustWake { poller.wake() }
    }

    /// Removes the timers whose target was released: a minute of abandoned requests can leave a hundred thousand. The
    /// next sweep runs at twice the remaining number, so that as many insertions share its cost.
    /// - Returns: The objects that were checked, which the caller releases after the lock.
    private func sweep(_ agenda: inout Agenda) -> [any TimerTarget] {
        var objects: [any TimerTarget] = []
        let live = agenda.timers.unordered.filter { timer in
            guard let object = self.object(of: timer.target) else { return false }
            if case .object = timer.target { objects.append(object) }
            return true
        }
        agenda.timers = MinHeap(live)
        agenda.sweepCount = max(EventLoop.leastSweepCount, 2 * live.count)
        return objects
    }

    private func object(of target: Target) -> (any TimerTarget)? {
        switch target {
        case .socket(let descriptor, let number): readiness(descriptor, number)
        case .object(let reference): reference.object
        case .retained(let object): object
        }
    }

    private func readiness(_ descriptor: Int32, _ number: UInt32) -> Readiness? {
        registrations.withLock { $0.find(descriptor, number) }
    }

    // MARK: Jobs

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        give { $0.jobs.append(job) }
    }

    /// Gives the loop's thread something to do, and wakes it if necessary.
    private func give(_ add: (inout Agenda) -> Void) {
        let mustWake = agenda.withLock { agenda in
            let hadWork = agenda.hasWork
            add(&agenda)
            // The thread sets `sleepsUntil` before each wait, and clears it when it wakes.
            return agenda.sleepsUntil.nanoseconds != 0 && !hadWork
        }
        if mustWake { poller.wake() }
        turn.takeBack()
    }

    package var isCurrent: Bool { thread.load(ordering: .relaxed) == UInt(pthread_self()) }

    // MARK: The thread

    private func run() {
        thread.store(UInt(pthread_self()), ordering: .relaxed)
        var isStopped = false
        while !isStopped {
            let timeout = agenda.withLock { agenda -> Int32 in
                if agenda.hasWork { return 0 }
                guard let first = agenda.timers.min?.deadline else {
                    agenda.sleepsUntil = .distantFuture
                    return -1
                }
                let now = MonotonicTime.now()
                guard first > now else { return 0 }
                agenda.sleepsUntil = first
                let milliseconds = (first.nanoseconds - now.nanoseconds + 999_999) / 1_000_000
                return Int32(clamping: milliseconds)
            }
            poller.wait(timeout: timeout) { signal($0)?.idleStreamBecameReadable() }
            agenda.withLock { $0.sleepsUntil = MonotonicTime(nanoseconds: 0) }
            fireTimers()
            isStopped = runJobs()
            turn.lend { agenda.withLock { $0.hasWork } }
        }
    }

    private func signal(_ event: Poller.Event) -> (any IdleStreamObserver)? {
        readiness(event.descriptor, event.registration)?.signal(event, isFromLoop: true)
    }

    /// Resumes the tasks of the sockets that are ready, on the thread of a task, without waiting.
    func poll() {
        var observers: [any IdleStreamObserver] = []
        poller.poll { event in
            if let observer = signal(event) { observers.append(observer) }
        }
        if !observers.isEmpty { give { $0.observers += observers } }
    }

    private func fireTimers() {
        var now: MonotonicTime?
        while true {
            let due = agenda.withLock { agenda -> Timer? in
                guard let first = agenda.timers.min else { return nil }
                let instant = now ?? MonotonicTime.now()
                now = instant
                return first.deadline <= instant ? agenda.timers.popMin() : nil
            }
            guard let due, let now else { return }
            if let next = object(of: due.target)?.timerFired(token: due.token, now: now) {
                insert(Timer(deadline: next, token: due.token, target: due.target))
            }
        }
    }

    /// Runs the jobs that are enqueued now, and calls the observers that tasks found. Jobs that they add run after the
    /// next check of the sockets.
    /// - Returns: Whether the loop was stopped and nothing is left to run.
    private func runJobs() -> Bool {
        let (jobs, observers) = agenda.withLock { agenda in
            (exchange(&agenda.jobs, with: []), exchange(&agenda.observers, with: []))
        }
        for observer in observers { observer.idleStreamBecameReadable() }
        for job in jobs { unsafe job.runSynchronously(on: asUnownedTaskExecutor()) }
        return agenda.withLock { $0.isStopped && $0.jobs.isEmpty && $0.observers.isEmpty }
    }
}

/// An object that the event loop calls at an instant. To postpone its deadline, a target only stores the new one, and
/// returns it when the timer fires at the old instant. Every request postpones deadlines, so this must cost little.
package protocol TimerTarget: AnyObject, Sendable {
    /// Called on the loop's thread; must not block.
    /// - Parameters:
    ///   - token: The number that the target passed when it armed the timer.
    ///   - now: The current instant.
    /// - Returns: The time of the next call with the same token; `nil` for none.
    func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime?
}

/// An epoll instance and the eventfd that wakes it.
///
/// Descriptors are registered once, edge-triggered. Each event has a registration number besides the descriptor,
/// because a batch may contain an event of a descriptor that was closed, and whose number is in use again.
///
/// `@unchecked Sendable`: the kernel guards the descriptors; only `wait`, on the loop's thread, uses the buffer.
@safe package struct Poller: ~Copyable, @unchecked Sendable {
    struct Event {
        var descriptor: Int32
        /// The number under which the descriptor was registered.
        var registration: UInt32
        /// Bytes can be read, or a read reports the end or an error.
        var isReadable: Bool
        /// Bytes can be written, or a write reports an error.
        var isWritable: Bool
        /// The peer has closed its side, or the socket has failed: reading never blocks again.
        var isHangup: Bool
    }

    private let epoll: Int32
    private let wakeup: Int32
    private let events: UnsafeMutableBufferPointer<epoll_event>

    /// Opens the instance.
    /// - Throws: The system call that failed, with its errno.
    init() throws(SystemError) {
        let epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        let wakeup = epoll < 0 ? -1 : eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        var event = unsafe epoll_event()
        unsafe event.events = EPOLLIN.rawValue | EPOLLET.rawValue
        unsafe event.data.u64 = UInt64(UInt32(bitPattern: wakeup))
        guard wakeup >= 0, unsafe epoll_ctl(epoll, EPOLL_CTL_ADD, wakeup, &event) == 0 else {
            let code = errno
            close(epoll)
            close(wakeup)
            let operation = epoll < 0 ? "epoll_create1" : wakeup < 0 ? "eventfd" : "epoll_ctl"
            throw SystemError(operation: operation, code: code)
        }
        self.epoll = epoll
        self.wakeup = wakeup
        unsafe events = .allocate(capacity: 256)
    }

    /// An instance that rejects every descriptor.
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

    /// The events that are reported for a descriptor.
    package enum Interest {
        /// Reading and writing: sockets.
        case traffic
        /// Urgent data only, reported as readable: for memory pressure files.
        case priority

        var flags: UInt32 {
            switch self {
            case .traffic: EPOLLIN.rawValue | EPOLLOUT.rawValue | EPOLLRDHUP.rawValue | EPOLLET.rawValue
            case .priority: EPOLLPRI.rawValue | EPOLLET.rawValue
            }
        }
    }

    /// Registers a descriptor under a number other than zero, which is reserved for the eventfd.
    func add(_ descriptor: Int32, registration: UInt32, interest: Interest) throws(SystemError) {
        var event = unsafe epoll_event()
        unsafe event.events = interest.flags
        unsafe event.data.u64 = UInt64(registration) << 32 | UInt64(UInt32(bitPattern: descriptor))
        guard unsafe epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0 else {
            throw SystemError(operation: "epoll_ctl", code: errno)
        }
    }

    /// Makes a running `wait`, or else the next one, return immediately. Any thread may call it.
    func wake() {
        var one: UInt64 = 1
        _ = unsafe write(wakeup, &one, 8)
    }

    /// Waits for events on the loop's thread, and calls the closure for each.
    /// - Parameter timeout: Milliseconds; 0 does not wait, -1 waits without limit.
    func wait(timeout: Int32, _ body: (Event) -> Void) {
        guard unsafe report(into: events, timeout: timeout, body) else { return }
        var value: UInt64 = 0
        _ = unsafe read(wakeup, &value, 8)
    }

    /// Calls the closure for the events that have occurred, on any thread, while another one may wait.
    func poll(_ body: (Event) -> Void) {
        let hasTakenWakeup = unsafe withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: 32) { events in
            unsafe report(into: events, timeout: 0, body)
        }
        // It was meant for the loop's thread.
        if hasTakenWakeup { wake() }
    }

    /// - Returns: Whether the eventfd was written to.
    private func report(
        into events: UnsafeMutableBufferPointer<epoll_event>, timeout: Int32, _ body: (Event) -> Void
    ) -> Bool {
        let count = unsafe epoll_wait(epoll, events.baseAddress, Int32(events.count), timeout)
        var isWoken = false
        for index in 0..<Int(max(0, count)) {
            let event = unsafe events[index]
            let data = unsafe event.data.u64
            let registration = UInt32(truncatingIfNeeded: data >> 32)
            if registration == 0 {
                isWoken = true
                continue
            }
            let flags = unsafe event.events
            let hangup = flags & (EPOLLHUP.rawValue | EPOLLRDHUP.rawValue) != 0
            let dead = flags & (EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0
            body(
                Event(
                    descriptor: Int32(bitPattern: UInt32(truncatingIfNeeded: data)), registration: registration,
                    isReadable: hangup || dead || flags & (EPOLLIN.rawValue | EPOLLPRI.rawValue) != 0,
                    isWritable: dead || flags & EPOLLOUT.rawValue != 0, isHangup: hangup))
        }
        return isWoken
    }
}
