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
