import CLinux
import DequeModule
import Glibc
import HeapModule
import Synchronization

/// One thread that waits for sockets and timers, and reports readiness; it moves no bytes itself.
///
/// A connection tries its system call where its caller runs and comes here only when the call would block. Measured on
/// two cores with 64 connections, that carries a fifth more requests than running connections on the loop does. The loop
/// can also run tasks: preferring it as task executor spares the hand-over between threads, which pays with many
/// connections and costs with one.
package final class EventLoop: TaskExecutor {
    private struct Registration {
        var number: UInt32
        var readiness: Readiness
    }

    private struct Registrations {
        /// By descriptor: small numbers, handed out densely by the kernel.
        var byDescriptor: [Registration?] = []
        var lastNumber: UInt32 = 0
    }

    private struct Timer: Comparable {
        var deadline: MonotonicTime
        var token: UInt64
        var target: Target

        static func < (left: Timer, right: Timer) -> Bool { left.deadline < right.deadline }
        static func == (left: Timer, right: Timer) -> Bool { left.deadline == right.deadline }
    }

    /// Whom a timer calls.
    private enum Target {
        /// Named by its registration: a weak reference would make every later retain and release of it slow, and a strong
        /// one would keep it until its last deadline.
        case socket(descriptor: Int32, number: UInt32)
        /// Any other, which the timer does not keep in memory.
        case object(WeakTarget)
        /// One that is retained and released too often to be referred to weakly.
        case retained(any TimerTarget)
    }

    private struct WeakTarget { weak var object: (any TimerTarget)? }

    private struct Agenda {
        var timers = Heap<Timer>()
        /// At how many timers those whose target is gone are swept out.
        var sweepCount = EventLoop.leastSweepCount
        var jobs = Deque<UnownedJob>()
        /// Until when the thread sleeps; zero while it is awake and will look at the agenda before sleeping.
        var sleepsUntil = MonotonicTime(nanoseconds: 0)
        var isStopped = false
    }

    /// Guards who is registered: loop thread (per event), and whoever opens or closes a socket.
    private let registrations = Mutex(Registrations())
    /// Guards timers and jobs: loop thread, and whoever arms a timer or enqueues a job.
    private let agenda = Mutex(Agenda())
    private let poller: Poller
    private let thread = Atomic<UInt>(0)

    /// The loop that sessions share: started by its first use, it lives as long as the process.
    ///
    /// `nil` when the kernel refuses the two descriptors it needs.
    package static let shared: Result<EventLoop, SystemError> = {
        do throws(SystemError) {
            return .success(try EventLoop.start())
        } catch {
            return .failure(error)
        }
    }()

    /// The shared loop; where the kernel has refused it, one without a thread, on which every wait for a socket fails when
    /// the socket is registered.
    package static let sharedOrStalled: EventLoop = {
        switch shared {
        case .success(let loop): loop
        case .failure: EventLoop(poller: Poller(stalled: ()))
        }
    }()

    /// Fewer timers than this are not worth sweeping: some forty bytes each.
    private static let leastSweepCount = 1024

    private init(poller: consuming Poller) { self.poller = poller }

    /// Starts a loop on a thread of its own.
    package static func start() throws(SystemError) -> EventLoop {
        OpenSSLLibrary.load()
        let loop = EventLoop(poller: try Poller())
        try Thread.start(name: "martlet-loop") { loop.run() }
        return loop
    }

    /// Ends the thread once it has run the jobs it has. Only loops that a test started are stopped.
    package func stop() {
        agenda.withLock { $0.isStopped = true }
        poller.wake()
    }

    // MARK: Looking

    /// How many sockets are registered, listening ones included. Takes time in proportion to the highest descriptor.
    package var socketCount: Int {
        registrations.withLock { registrations in
            registrations.byDescriptor.reduce(0) { count, registration in
                registration == nil ? count : count + 1
            }
        }
    }

    /// How many timers are armed, those included whose target is gone.
    package var timerCount: Int { agenda.withLock { $0.timers.count } }

    // MARK: Sockets

    /// Registers a descriptor, for both directions unless it has but news.
    package func register(
        _ descriptor: Int32, interest: Poller.Interest = .traffic
    ) throws(SystemError) -> (readiness: Readiness, number: UInt32) {
        let number = registrations.withLock { registrations in
            registrations.lastNumber = registrations.lastNumber == .max ? 1 : registrations.lastNumber + 1
            return registrations.lastNumber
        }
        let readiness = Readiness(loop: self, descriptor: descriptor, number: number)
        registrations.withLock { registrations in
            let index = Int(descriptor)
            while registrations.byDescriptor.count <= index { registrations.byDescriptor.append(nil) }
            registrations.byDescriptor[index] = Registration(number: number, readiness: readiness)
        }
        do throws(SystemError) {
            try poller.add(descriptor, registration: number, interest: interest)
        } catch {
            unregister(descriptor, number: number)
            throw error
        }
        return (readiness, number)
    }

    /// Forgets a descriptor, which the caller closes right after; an event already on its way is then ignored.
    package func unregister(_ descriptor: Int32, number: UInt32) {
        let removed: Registration? = registrations.withLock { registrations in
            let index = Int(descriptor)
            guard index < registrations.byDescriptor.count,
                registrations.byDescriptor[index]?.number == number
            else { return nil }
            return registrations.byDescriptor[index].take()
        }
        // The last reference to the readiness may go here, outside the lock.
        _ = consume removed
    }

    // MARK: Timers

    /// Calls a target at an instant, or a little later: up to a millisecond, and longer on a busy machine.
    ///
    /// - Parameter isRetained: Whether the target stays in memory until then. One that many threads use all the time
    ///   should: a weak reference would make each retain and release of it slow from then on.
    package func schedule(
        _ target: any TimerTarget, token: UInt64, at deadline: MonotonicTime, isRetained: Bool = false
    ) {
        let target: Target = isRetained ? .retained(target) : .object(WeakTarget(object: target))
        insert(Timer(deadline: deadline, token: token, target: target))
    }

    /// Calls the readiness registered under a number at an instant, if it still is.
    func schedule(descriptor: Int32, number: UInt32, token: UInt64, at deadline: MonotonicTime) {
        insert(
            Timer(deadline: deadline, token: token, target: .socket(descriptor: descriptor, number: number)))
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

    /// Takes out the timers whose target is gone. They would come to nothing at their deadline, but a minute's worth of
    /// requests that were given up is a hundred thousand of them.
    ///
    /// The next sweep comes when there are twice as many as were left, so that its cost is shared by as many insertions.
    /// - Returns: The objects looked at, which the caller lets go when it has given up the lock.
    private func sweep(_ agenda: inout Agenda) -> [any TimerTarget] {
        var objects: [any TimerTarget] = []
        let live = agenda.timers.unordered.filter { timer in
            switch timer.target {
            case .socket(let descriptor, let number): return readiness(descriptor, number) != nil
            case .object(let reference):
                guard let object = reference.object else { return false }
                objects.append(object)
                return true
            case .retained: return true
            }
        }
        agenda.timers = Heap(live)
        agenda.sweepCount = max(EventLoop.leastSweepCount, 2 * live.count)
        return objects
    }

    private func readiness(_ descriptor: Int32, _ number: UInt32) -> Readiness? {
        registrations.withLock { registrations -> Readiness? in
            let index = Int(descriptor)
            guard index < registrations.byDescriptor.count, let found = registrations.byDescriptor[index],
                found.number == number
            else { return nil }
            return found.readiness
        }
    }

    // MARK: Jobs

    /// Runs a job on the loop's thread.
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let mustWake = agenda.withLock { agenda in
            agenda.jobs.append(job)
            // Asleep, however short: the thread sets this before it waits, and clears it when it wakes.
            return agenda.sleepsUntil.nanoseconds != 0 && agenda.jobs.count == 1
        }
        if mustWake { poller.wake() }
    }

    /// Whether the caller runs on the loop's thread.
    package var isCurrent: Bool { thread.load(ordering: .relaxed) == UInt(pthread_self()) }

    // MARK: The thread

    private func run() {
        thread.store(UInt(pthread_self()), ordering: .relaxed)
        var isStopped = false
        while !isStopped {
            let timeout = agenda.withLock { agenda -> Int32 in
                if agenda.isStopped || !agenda.jobs.isEmpty { return 0 }
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
            poller.wait(timeout: timeout) { event in
                readiness(event.descriptor, event.registration)?.signal(event)
            }
            agenda.withLock { $0.sleepsUntil = MonotonicTime(nanoseconds: 0) }
            fireTimers()
            isStopped = runJobs()
        }
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
            let target: (any TimerTarget)? =
                switch due.target {
                case .socket(let descriptor, let number): readiness(descriptor, number)
                case .object(let reference): reference.object
                case .retained(let object): object
                }
            if let next = target?.timerFired(token: due.token, now: now) {
                insert(Timer(deadline: next, token: due.token, target: due.target))
            }
        }
    }

    /// Runs the jobs that are there, though not those they add: sockets get their turn in between.
    /// - Returns: Whether the loop was stopped and nothing is left to run.
    private func runJobs() -> Bool {
        var jobs = agenda.withLock { agenda -> Deque<UnownedJob> in
            guard !agenda.jobs.isEmpty else { return Deque() }
            let jobs = agenda.jobs
            agenda.jobs = Deque()
            return jobs
        }
        while let job = jobs.popFirst() { unsafe job.runSynchronously(on: asUnownedTaskExecutor()) }
        return agenda.withLock { $0.isStopped && $0.jobs.isEmpty }
    }
}
