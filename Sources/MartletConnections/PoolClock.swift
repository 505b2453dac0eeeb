import MartletTransport

/// The clock the pool's machine is told: one that goes on while the computer is suspended, so that a connection which
/// slept through its lifetime is never handed out.
enum PoolClock {
    /// Nanoseconds since the computer was started.
    static func now() -> UInt64 {
        MonotonicTime.sinceBoot().nanoseconds
    }

    /// How long it is until an instant of this clock.
    static func until(_ instant: UInt64) -> Duration {
        let now = now()
        return .nanoseconds(Int64(clamping: instant > now ? instant - now : 0))
    }
}
