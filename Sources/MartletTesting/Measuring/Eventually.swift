import MartletTransport

/// Looks at a condition again and again, until it holds or the limit is reached; the thread is free in between.
/// - Returns: Whether it came to hold.
package func eventually(within limit: Duration = .seconds(300), _ condition: () -> Bool) async -> Bool {
    let loop = EventLoop.sharedOrStalled
    let deadline = MonotonicTime.now().advanced(by: limit)
    while !condition() {
        if MonotonicTime.now() >= deadline { return condition() }
        _ = await OneShot<Void>().wait(until: MonotonicTime.now().advanced(by: .milliseconds(2)), on: loop)
    }
    return true
}
