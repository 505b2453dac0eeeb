import MartletConnections

// The session as a whole: what it holds, what bounds it, and its end.
extension HTTPSession {
    /// Counts of connections by what they do, and of requests that wait for one.
    public nonisolated var poolStatus: PoolStatus {
        core.pool.snapshot
    }

    /// How many calls run.
    public nonisolated var runningCallCount: Int {
        core.runningCount
    }

    /// What the session holds at this moment, host by host, and what all sessions of the process hold together.
    ///
    /// Takes time in proportion to the number of hosts and of open descriptors: meant for a look now and then, not for each
    /// request.
    public nonisolated var diagnostics: SessionDiagnostics {
        SessionDiagnostics(core)
    }

    /// Changes how many connections there may be, while calls run; views share the change.
    ///
    /// Connections in use are never cut: lower limits hold as these become free. Where there is a ``ConcurrencyPolicy``,
    /// its numbers go before these.
    public nonisolated func setPoolLimits(_ limits: PoolLimits) {
        core.concurrency.setLimits(limits)
    }

    /// Changes how fast bodies may go, while calls run, which heed it at once; views share the change.
    public nonisolated func setBandwidthLimits(_ limits: BandwidthLimits) {
        core.bandwidth.setLimits(limits)
    }

    /// Lets the calls that run end, then closes all connections. New calls throw at once; views share the end.
    ///
    /// Awaited by code of a call that runs, such as the closure of a stream, it waits for the other calls only; the
    /// session is closed when that call has ended.
    public func finishAndInvalidate() async {
        await invalidate(cancelling: false)
    }

    /// Cancels the calls that run and closes all connections; returns when they have ended. New calls throw at once;
    /// views share the end.
    ///
    /// Awaited by code of a call that runs, such as a handler or the closure of a stream, it does not wait for that call,
    /// which ends with `CancellationError` like the others.
    public func invalidateAndCancel() async {
        await invalidate(cancelling: true)
    }

    private func invalidate(cancelling: Bool) async {
        let delegate = configuration.delegate
        await core.invalidate(cancelling: cancelling) {
            guard let delegate else { return }
            try? await waitUnlessCancelled { await delegate.sessionInvalidated() }
        }
    }
}
