import CMartletLinux
import Glibc
import Synchronization

/// Decides whether the loop's thread or a task polls the sockets.
///
/// Waking a sleeping thread costs more than handling an event. So when the loop has resumed several tasks at once, its
/// thread sleeps instead of waiting for the next event, and the last of these tasks to start polls in its place: by
/// then, more events have arrived. The thread wakes
///
/// - when a poll finds nothing, so that no task is left that would poll again;
/// - when it has something to do, for example a job;
/// - after a millisecond, because tasks start late while the program's other work occupies the pool.
///
/// Nothing else depends on whose turn it is: the kernel reports each edge to one of the threads that ask for it, and
/// several threads may handle events.
///
/// `@unchecked Sendable`: the counter and the word are atomic, and the pointer to the word is set once.
@safe struct PollTurn: ~Copyable, @unchecked Sendable {
    /// The bounds of ``leastTaskCount``.
    static let taskCountBounds = 2...8
    /// The maximum time that the thread sleeps, in nanoseconds.
    static let longestSleep = 1_000_000

    /// The number of tasks that the loop has resumed and that have not started.
    private let unstarted = Atomic(0)
    /// The minimum number of resumed tasks for which the thread sleeps: with too few, it is woken too often. The minimum
    /// is halved when tasks have found events, and doubled when they have not.
    private let leastTaskCount = Atomic(taskCountBounds.upperBound)
    /// Whether tasks have found events in this turn.
    private let isWorthwhile = Atomic(false)
    /// One while the thread sleeps or is about to; the word of its futex, whose address must not change.
    private let lent = UnsafeMutablePointer<Atomic<UInt32>>.allocate(capacity: 1)

    init() { unsafe lent.initialize(to: Atomic(0)) }

    deinit { unsafe lent.deallocate() }

    var isLent: Bool { unsafe lent.pointee.load(ordering: .sequentiallyConsistent) != 0 }

    /// Records that a task is about to be resumed, which then calls ``started(poll:)``.
    func willResume() { unstarted.add(1, ordering: .sequentiallyConsistent) }

    /// Called by a resumed task when it starts.
    /// - Parameter poll: Called if it is the task's turn: polls the sockets without waiting, and resumes tasks.
    func started(poll: () -> Void) {
        guard countStart() == 0, isLent else { return }
        poll()
        if unstarted.load(ordering: .sequentiallyConsistent) == 0 {
            takeBack()
        } else {
            isWorthwhile.store(true, ordering: .relaxed)
        }
    }

    /// Counts a started task.
    /// - Returns: The number of tasks that have not started.
    private func countStart() -> Int {
        var count = unstarted.load(ordering: .relaxed)
        // Zero if the loop's thread has ceased to wait for the task.
        while count > 0 {
            let (exchanged, original) = unstarted.weakCompareExchange(
                expected: count, desired: count - 1, ordering: .sequentiallyConsistent)
            if exchanged { return count - 1 }
            count = original
        }
        return 0
    }

    /// Wakes the loop's thread if it sleeps in ``lend(unless:)`` or is about to.
    func takeBack() {
        guard isLent, unsafe lent.pointee.exchange(0, ordering: .sequentiallyConsistent) != 0 else { return }
        _ = unsafe martlet_futex_wake(lent)
    }

    /// Called by the loop's thread before it waits for events. Sleeps if enough tasks have been resumed.
    /// - Parameter isBusy: Whether the thread has something else to do. Other threads first give it something to do, and
    ///   then call ``takeBack()``.
    func lend(unless isBusy: () -> Bool) {
        let least = leastTaskCount.load(ordering: .relaxed)
        guard unstarted.load(ordering: .relaxed) >= least else { return }
        unsafe lent.pointee.store(1, ordering: .sequentiallyConsistent)
        var isLate = false
        // Tasks that started before this store did not poll, and may have been the last.
        if unstarted.load(ordering: .sequentiallyConsistent) > 0, !isBusy() {
            isLate = unsafe martlet_futex_wait(lent, 1, PollTurn.longestSleep) != 0 && errno == ETIMEDOUT
            let bounds = PollTurn.taskCountBounds
            let next = isWorthwhile.exchange(false, ordering: .relaxed) ? least / 2 : least * 2
            leastTaskCount.store(min(max(next, bounds.lowerBound), bounds.upperBound), ordering: .relaxed)
        }
        unsafe lent.pointee.store(0, ordering: .sequentiallyConsistent)
        // After the previous store, so that none of these tasks takes itself for the last.
        if isLate { unstarted.store(0, ordering: .sequentiallyConsistent) }
    }
}
