import Glibc

/// The cost of work, measured as CPU time of its thread: other threads and a stalled machine do not count.
enum ThreadTime {
    /// Runs the work, which must not leave its thread.
    /// - Returns: The result of the work, and the CPU time of the thread.
    static func of<Value>(_ work: () throws -> Value) rethrows -> (value: Value, time: Duration) {
        let start = now
        let value = try work()
        return (value, now - start)
    }

    private static var now: Duration {
        var time = timespec()
        unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
