import MartletTransport

/// Looks at a condition again and again, until it holds or the limit is reached; the thread is free in between.
/// - Returns: Whether it came to hold.
func eventually(
    within limit: Duration = Patience.long, _ condition: () -> Bool
) async -> Bool {
    let loop = EventLoop.sharedOrStalled
    let deadline = MonotonicTime.now().advanced(by: limit)
    while !condition() {
        if MonotonicTime.now() >= deadline { return condition() }
        _ = await OneShot<Void>().wait(until: MonotonicTime.now().advanced(by: .milliseconds(1)), on: loop)
    }
    return true
}

/// The value of a count once it has stood still for a while.
func settled(within limit: Duration = Patience.long, _ count: () -> UInt64) async -> UInt64 {
    var last = count()
    var since = MonotonicTime.now()
    var looks = 0
    _ = await eventually(within: limit) {
        let now = count()
        if now != last { (last, since, looks) = (now, MonotonicTime.now(), 0) }
        looks += 1
        return looks >= 30 && MonotonicTime.now().since(since) >= .milliseconds(200)
    }
    return last
}
