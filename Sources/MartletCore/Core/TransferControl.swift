import Synchronization

/// The handle on a running call: cancels it, pauses it and reports its progress, in any phase.
package final class TransferControl: TransferPauseGate {
    /// The wait or exchange that a cancellation interrupts.
    package enum Activity: Sendable {
        case none
        case waiting(ConnectionPool.Ticket)
        case exchanging(Exchange)
        case pausing(OneShot<Void>)
    }

    /// The file that a collected body is written to.
    private enum Target {
        case none
        /// A file that was set while the call ran. Nothing writes it yet.
        case wanted(DownloadDestination)
        /// A file that was set while the call ran, and is being written.
        case claimed(DownloadDestination)
        /// A file that the delegate chose. The call itself writes it.
        case delegated(DownloadDestination)

        var destination: DownloadDestination? {
            switch self {
            case .none: nil
            case .wanted(let destination), .claimed(let destination), .delegated(let destination): destination
            }
        }
    }

    private struct State {
        var isCancelled = false
        var isPaused = false
        /// The state that a task of the call reports while it is not paused.
        var stage = HTTPTask.State.waiting
        /// The priority, if it was changed.
        var priority: RequestPriority?
        var activity = Activity.none
        /// The waits for the end of a pause.
        var waiters: [OneShot<Void>] = []
        /// Functions that end the waits for code of the program, called by a cancellation.
        var userWaits: [UInt64: @Sendable () -> Void] = [:]
        var lastUserWait: UInt64 = 0
        var transfer: UInt64?
        var target = Target.none
        /// The reasons why the files of earlier destinations could not be created, until they are reported.
        var destinationFailures: [DownloadDestination: HTTPError] = [:]

        var shown: HTTPTask.State { isPaused && !stage.isFinished ? .paused : stage }
    }

    /// The lock on the state, used by the call's tasks, and by callers that cancel or pause.
    private let state = Mutex(State())
    /// The state of the call and its changes; `nil` if nothing can query them.
    let states: CurrentValue<HTTPTask.State>?
    /// The progress of the request's body; `nil` if nothing can query it.
    package let upload: ProgressState?
    /// The progress of the response's body; `nil` if nothing can query it.
    package let download: ProgressState?
    /// The tracer of the requests of the call; `nil` for most calls.
    package let tracer: CallTracer?
    /// The received and the expected number of bytes of the response's body (`UInt64.max` if it is not known), for
    /// calls without ``download``, which most are.
    private let received = Atomic<UInt64>(0)
    private let expected = Atomic<UInt64>(TransferControl.noHead)
    /// The value of ``expected`` until the head of the response was received.
    private static let noHead = UInt64.max - 1

    /// Creates the control of a call that has not started.
    /// - Parameter reportsProgress: Whether something outside the call holds the control; most calls are only awaited.
    package init(reportsProgress: Bool = true, tracer: CallTracer? = nil) {
        self.tracer = tracer
        states = reportsProgress ? CurrentValue(.waiting) : nil
        upload = reportsProgress ? ProgressState() : nil
        download = reportsProgress ? ProgressState() : nil
    }

    /// Whether something outside of the call holds the control, and so may pause the call.
    package var isExposed: Bool { upload != nil }

    package var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// The exchange that the call has started, which may have ended.
    var exchange: Exchange? {
        if case .exchanging(let exchange) = state.withLock({ $0.activity }) { exchange } else { nil }
    }

    /// Sets the current activity, and interrupts it if the call was already cancelled.
    package func begin(_ activity: Activity) {
        // The former activity is released outside of the lock: it may be the last reference to an exchange.
        let (_, isCancelled, isPaused, priority) = state.withLock { state in
            defer { state.activity = activity }
            return (state.activity, state.isCancelled, state.isPaused, state.priority)
        }
        switch activity {
        case .waiting: enter(.waiting)
        case .exchanging: enter(.sending)
        case .none, .pausing: break
        }
        // The priority may have changed after the call requested the connection, and before it was queued.
        if let priority, case .waiting(let ticket) = activity { ticket.setPriority(priority) }
        if isCancelled { TransferControl.interrupt(activity) } else if isPaused { TransferControl.leaveQueue(activity) }
    }

    /// Leaves the queue for a connection, because a paused call could not use one.
    private static func leaveQueue(_ activity: Activity) { if case .waiting(let ticket) = activity { ticket.cancel() } }

    var priority: RequestPriority? { state.withLock { $0.priority } }

    /// Changes the priority, also while the call waits for a connection.
    func setPriority(_ priority: RequestPriority) {
        let activity = state.withLock { state in
            state.priority = priority
            return state.activity
        }
        if case .waiting(let ticket) = activity { ticket.setPriority(priority) }
    }

    package func cancel() {
        let (activity, waiters, waits) = state.withLock {
            state -> (Activity, [OneShot<Void>], [@Sendable () -> Void]) in
            state.isCancelled = true
            return (state.activity, state.waiters, Array(state.userWaits.values))
        }
        TransferControl.interrupt(activity)
        for waiter in waiters { waiter.fulfill(()) }
        for endWait in waits { endWait() }
    }

    // MARK: State and progress

    /// Sets the state that a task of the call reports.
    func enter(_ stage: HTTPTask.State) {
        guard let states else {
            if stage != .receiving { expected.store(TransferControl.noHead, ordering: .relaxed) }
            return
        }
        state.withLock { $0.stage = stage }
        states.update { state.withLock { $0.shown } }
        if stage.isFinished { states.finish() }
    }

    /// The current state, also of a call without ``states``.
    var presentState: HTTPTask.State {
        if let states { return states.value }
        // A body from the cache, or from the transfer of another call, has no exchange of its own.
        if expected.load(ordering: .relaxed) != TransferControl.noHead { return .receiving }
        return exchange.map { !$0.isFinished } == true ? .sending : .waiting
    }

    /// Sets the length of the response's body; `nil` if it is not known.
    package func expectBody(of byteCount: UInt64?) {
        if let download {
            download.update { $0.totalByteCount = byteCount }
        } else {
            expected.store(byteCount.map { min($0, TransferControl.noHead - 1) } ?? .max, ordering: .relaxed)
        }
    }

    /// Counts bytes of the response's body, before any coding is decoded.
    func bodyReceived(_ byteCount: Int) {
        if let download {
            download.update { $0.completedByteCount += UInt64(byteCount) }
        } else {
            received.wrappingAdd(UInt64(byteCount), ordering: .relaxed)
        }
    }

    /// Records that the body of another response follows.
    func restartBody() {
        download?.update { $0.completedByteCount = 0 }
        received.store(0, ordering: .relaxed)
    }

    /// The progress of the response's body.
    package var presentDownload: TransferProgress {
        if let download { return download.value }
        let total = expected.load(ordering: .relaxed)
        return TransferProgress(
            completedByteCount: received.load(ordering: .relaxed),
            totalByteCount: total >= TransferControl.noHead ? nil : total)
    }

    /// Returns the progress of the request's body with the given length.
    func presentUpload(of byteCount: UInt64?) -> TransferProgress {
        if let upload { return upload.value }
        let sent = exchange?.sentBodyByteCount ?? 0
        return TransferProgress(completedByteCount: min(sent, byteCount ?? sent), totalByteCount: byteCount)
    }

    private static func interrupt(_ activity: Activity) {
        switch activity {
        case .none: break
        case .waiting(let ticket): ticket.cancel()
        case .exchanging(let exchange): exchange.cancel()
        case .pausing(let pause): pause.interrupt()
        }
    }

    /// Adds a wait. `end`, which ends it, is called when the call is cancelled, or now if it already was.
    package func beginWait(_ end: @escaping @Sendable () -> Void) -> UInt64 {
        let (number, isCancelled) = state.withLock { state in
            state.lastUserWait += 1
            state.userWaits[state.lastUserWait] = end
            return (state.lastUserWait, state.isCancelled)
        }
        if isCancelled { end() }
        return number
    }

    package func endWait(_ number: UInt64) { _ = state.withLock { $0.userWaits.removeValue(forKey: number) } }

    // MARK: Bandwidth

    /// Returns the number of the call's own limit, which all of its requests share; `nil` if it has none.
    func transferNumber(under limit: BandwidthLimit, _ limiter: BandwidthLimiter) -> UInt64? {
        guard limit != .none else { return nil }
        if let number = state.withLock({ $0.transfer }) { return number }
        // Outside of the lock, because `enter` may resume other transfers.
        let made = limiter.enter(limit)
        let number = state.withLock { state in
            let number = state.transfer ?? made
            state.transfer = number
            return number
        }
        if number != made { limiter.leave(made) }
        return number
    }

    /// Ends the call's own limit.
    func endTransfer(_ limiter: BandwidthLimiter) {
        if let number = state.withLock({ $0.transfer.take() }) { limiter.leave(number) }
    }

    // MARK: Becoming a download

    /// The destination of the body; `nil` if it is collected in memory.
    var destination: DownloadDestination? { state.withLock { $0.target.destination } }

    /// The destination that the collecting code has to write; `nil` if the delegate's file receives the body.
    var pendingDestination: DownloadDestination? {
        state.withLock { state in if case .delegated = state.target { nil } else { state.target.destination } }
    }

    /// Sets the destination that the delegate chose, or replaces it in a later attempt.
    /// - Returns: Whether it was set: a destination from another source takes precedence.
    func setDelegatedDestination(_ destination: DownloadDestination) -> Bool {
        state.withLock { state in
            switch state.target {
            case .wanted, .claimed: return false
            case .none, .delegated: state.target = .delegated(destination)
            }
            return true
        }
    }

    /// Sets the destination of the body.
    /// - Returns: Whether the body had no destination before.
    func setDestination(_ destination: DownloadDestination) -> Bool {
        state.withLock { state in
            guard case .none = state.target else { return false }
            state.target = .wanted(destination)
            return true
        }
    }

    /// Claims the destination for writing. Only the first caller succeeds.
    func claimDestination() -> Bool {
        state.withLock { state in
            guard case .wanted(let destination) = state.target else { return false }
            state.target = .claimed(destination)
            return true
        }
    }

    /// Removes the destination, because its file could not be created. Another destination may be set.
    func rejectDestination(_ error: HTTPError) {
        state.withLock { state in
            guard let destination = state.target.destination else { return }
            state.target = .none
            state.destinationFailures[destination] = error
        }
    }

    /// Removes and returns the reason why a destination was rejected.
    func takeFailure(of destination: DownloadDestination) -> HTTPError? {
        state.withLock { $0.destinationFailures.removeValue(forKey: destination) }
    }

    // MARK: Pausing

    /// Stops reading and writing at the next buffer, and leaves the queue for a connection.
    /// - Returns: Whether the call was not paused before.
    @discardableResult package func pause() -> Bool {
        let (activity, wasPaused) = state.withLock { state in
            defer { state.isPaused = true }
            return (state.activity, state.isPaused)
        }
        if !wasPaused {
            TransferControl.leaveQueue(activity)
            states?.update { state.withLock { $0.shown } }
        }
        return !wasPaused
    }

    /// Continues after a pause.
    /// - Returns: Whether the call was paused before.
    @discardableResult package func resume() -> Bool {
        let (activity, waiters, wasPaused) = state.withLock { state in
            defer { state.isPaused = false }
            return (state.activity, state.waiters, state.isPaused)
        }
        if case .exchanging(let exchange) = activity { exchange.transferResumed() }
        for waiter in waiters { waiter.fulfill(()) }
        if wasPaused { states?.update { state.withLock { $0.shown } } }
        return wasPaused
    }

    package var isPaused: Bool { state.withLock { $0.isPaused } }

    package func waitWhilePaused(until deadline: MonotonicTime, on loop: EventLoop) async {
        while !Task.isCancelled, MonotonicTime.now() < deadline {
            let waiter = OneShot<Void>()
            let isNeeded = state.withLock { state in
                guard state.isPaused, !state.isCancelled else { return false }
                state.waiters.append(waiter)
                return true
            }
            guard isNeeded else { return }
            // Cancelling the task must end the wait: otherwise a writer could not be stopped during a pause.
            _ = await waiter.waitUnlessCancelled(until: deadline, on: loop)
            state.withLock { $0.waiters.removeAll { $0 === waiter } }
        }
    }
}

/// A tracer of the requests of a call, for programs that print each request.
///
/// The task of the call runs the closures, one after the other. They must return quickly.
package final class CallTracer: Sendable {
    /// Called with the exact bytes of each request's head, including credentials, before the head is sent.
    let sent: @Sendable ([UInt8]) -> Void
    /// Called whenever a request gets a connection, new or reused. The argument has the heads of a proxy's responses to
    /// CONNECT for a new connection; otherwise it is empty.
    let connected: @Sendable ([ResponseHead]) -> Void
    /// Called with each interim head when it is received, its connection, and whether the connection was reused.
    let interim: @Sendable (ResponseHead, ConnectionInformation, Bool) -> Void
    /// Called with the heads of a response after which the same request is sent again: a 417, or a 407.
    let repeated: @Sendable ([ResponseHead]) -> Void
    /// Called before another request follows, with this request and its response without the body; `nil` if it failed.
    let followed: @Sendable (HTTPHop, HTTPExchange?) -> Void

    package init(
        sent: @escaping @Sendable ([UInt8]) -> Void, connected: @escaping @Sendable ([ResponseHead]) -> Void = { _ in },
        interim: @escaping @Sendable (ResponseHead, ConnectionInformation, Bool) -> Void = { _, _, _ in },
        repeated: @escaping @Sendable ([ResponseHead]) -> Void = { _ in },
        followed: @escaping @Sendable (HTTPHop, HTTPExchange?) -> Void
    ) {
        (self.sent, self.connected, self.interim) = (sent, connected, interim)
        (self.repeated, self.followed) = (repeated, followed)
    }
}
