import Synchronization

extension ConnectionPool {
    /// The limits in force.
    package var limits: PoolLimits {
        state.withLock { $0.machine.limits }
    }

    /// Counts of the present moment.
    package var snapshot: PoolStatus {
        state.withLock { state in
            PoolStatus(
                idle: state.machine.idleCount, leased: state.machine.leasedCount,
                dialling: state.machine.diallingCount,
                waiting: state.machine.waitingCount, opened: state.openedCount, reused: state.reusedCount)
        }
    }

    /// Counts of the present moment for every host with a connection or a request that waits. Takes time in proportion to
    /// their number.
    package var hostCounts: [ConnectionKey: PoolCounts] {
        state.withLock { $0.machine.snapshot.hosts }
    }
}
