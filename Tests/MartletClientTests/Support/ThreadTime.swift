import Glibc

/// What a piece of work costs, in time of the thread that does it: what others do meanwhile, and a machine that stalls, do
/// not count.
enum ThreadTime {
    /// Does the work, which must not leave its thread.
    /// - Returns: What the work returned, and the time that the thread ran for it.
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
