import MartletURL
import MartletConnections
package import MartletTransport
import MartletWire
import Synchronization

/// The handle on a running call: what cancels it, pauses it and tells its progress, whatever it is doing just now.
package final class TransferControl: TransferGate {
    /// What a cancel has to interrupt.
    package enum Activity: Sendable {
        case none
        case waiting(ConnectionPool.Ticket)
        case exchanging(Exchange)
        case pausing(OneShot<Void>)
    }

    private struct State {
        var isCancelled = false
        var isPaused = false
        /// How urgent the call is since somebody changed it.
        var priority: RequestPriority?
        var activity = Activity.none
        var waiters: [UInt64: OneShot<Void>] = [:]
        var lastWaiter: UInt64 = 0
        /// Waits for code of the program, which a cancel ends.
        var userWaits: [UInt64: any InterruptibleWait] = [:]
        /// The number of the call's own limit of bandwidth.
        var transfer: UInt64?
        /// Where the answer's body goes, where it is to become a download.
        var destination: DownloadDestination?
        /// Whether somebody has seen to that.
        var isDestinationClaimed = false
        /// The reasons why the files of earlier destinations could not be created, until they are told.
        var destinationFailures: [DownloadDestination: HTTPError] = [:]
        /// Whether the delegate chose the destination, and the session's core wrote the file.
        var isDestinationDelegated = false
    }

    /// Guards the above: the call's tasks, and whoever cancels or pauses.
    private let state = Mutex(State())
    /// The call's number, where it was given one before it began.
    let callNumber: UInt64?
    /// What has gone up; `nil` where nobody can ask.
    package let upload: ProgressState?
    /// What has come down; likewise.
    package let download: ProgressState?
    /// Who watches its requests; nobody, mostly.
    package let watcher: CallWatcher?

    /// The control of a call that has not begun.
    /// - Parameters:
    ///   - tellsProgress: Whether anybody can ask how far it has come; most calls are awaited and no more.
    ///   - watcher: Who watches the call's requests.
    package convenience init(tellsProgress: Bool = true, watcher: CallWatcher? = nil) {
        self.init(tellsProgress: tellsProgress, callNumber: nil, watcher: watcher)
    }

    init(tellsProgress: Bool, callNumber: UInt64?, watcher: CallWatcher? = nil) {
        self.callNumber = callNumber
        self.watcher = watcher
        upload = tellsProgress ? ProgressState() : nil
        download = tellsProgress ? ProgressState() : nil
    }

    /// Whether somebody outside of the call holds it, and so may pause the call.
    package var isExposed: Bool { upload != nil }

    /// Whether the call was cancelled.
    package var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// The exchange that the call has begun; it may be over.
    var exchange: Exchange? {
        state.withLock { state in
            if case .exchanging(let exchange) = state.activity { return exchange }
            return nil
        }
    }

    /// Notes what the call is doing, and interrupts it at once if it was cancelled before.
    package func begin(_ activity: Activity) {
        // The former activity is released outside of the lock: it may be the last reference to an exchange.
        let (_, isCancelled, isPaused, priority) = state.withLock { state in
            defer { state.activity = activity }
            return (state.activity, state.isCancelled, state.isPaused, state.priority)
        }
        // It may have changed after the call asked for the connection, and before there was a place in the line.
        if let priority, case .waiting(let ticket) = activity { ticket.setPriority(priority) }
        if isCancelled {
            TransferControl.interrupt(activity)
        } else if isPaused {
            TransferControl.leaveLine(activity)
        }
    }

    /// Gives up the place in the line for a connection, which could not be used in a pause. The call takes its place again
    /// when it goes on.
    private static func leaveLine(_ activity: Activity) {
        if case .waiting(let ticket) = activity { ticket.cancel() }
    }

    /// How urgent the call is since somebody changed it; `nil` when nobody has.
    var priority: RequestPriority? { state.withLock { $0.priority } }

    /// Changes how urgent the call is, also while it waits for a connection.
    func setPriority(_ priority: RequestPriority) {
        let activity = state.withLock { state in
            state.priority = priority
            return state.activity
        }
        if case .waiting(let ticket) = activity { ticket.setPriority(priority) }
    }

    /// Cancels the call, once and for all.
    package func cancel() {
        let (activity, waiters, waits) = state.withLock {
            state -> (Activity, [OneShot<Void>], [any InterruptibleWait]) in
            state.isCancelled = true
            return (state.activity, Array(state.waiters.values), Array(state.userWaits.values))
        }
        TransferControl.interrupt(activity)
        for waiter in waiters { waiter.fulfil(()) }
        for wait in waits { wait.interrupt() }
    }

    /// Notes a wait for code of the program, and ends it at once if the call was cancelled before.
    func beginWait(_ wait: any InterruptibleWait) -> UInt64 {
        let (number, isCancelled) = state.withLock { state in
            state.lastWaiter += 1
            state.userWaits[state.lastWaiter] = wait
            return (state.lastWaiter, state.isCancelled)
        }
        if isCancelled { wait.interrupt() }
        return number
    }

    /// Forgets a wait that has ended.
    func endWait(_ number: UInt64) { _ = state.withLock { $0.userWaits.removeValue(forKey: number) } }

    private static func interrupt(_ activity: Activity) {
        switch activity {
        case .none: break
        case .waiting(let ticket): ticket.cancel()
        case .exchanging(let exchange): exchange.cancel()
        case .pausing(let pause): pause.interrupt()
        }
    }

    // MARK: Bandwidth

    /// The number of the call's own limit, which all of its requests are under together; `nil` where there is none.
    func transferNumber(under limit: BandwidthLimit, _ governor: BandwidthGovernor) -> UInt64? {
        guard limit != .none else { return nil }
        if let number = state.withLock({ $0.transfer }) { return number }
        // Outside of the lock, since it may resume other transfers.
        let made = governor.enter(limit)
        let number = state.withLock { state in
            let number = state.transfer ?? made
            state.transfer = number
            return number
        }
        if number != made { governor.leave(made) }
        return number
    }

    /// Ends the call's own limit.
    func endTransfer(_ governor: BandwidthGovernor) {
        let number = state.withLock { state in
            defer { state.transfer = nil }
            return state.transfer
        }
        if let number { governor.leave(number) }
    }

    // MARK: Becoming a download

    /// Where the answer's body goes; `nil` for memory.
    var destination: DownloadDestination? { state.withLock { $0.destination } }

    /// The destination that whoever collects the body has to write; `nil` where the delegate's file has the body.
    var pendingDestination: DownloadDestination? {
        state.withLock { $0.isDestinationDelegated ? nil : $0.destination }
    }

    /// Notes that the delegate turns the call into a download, also in a later attempt.
    /// - Returns: Whether nobody else has.
    func setDelegatedDestination(_ destination: DownloadDestination) -> Bool {
        state.withLock { state in
            guard state.destination == nil || state.isDestinationDelegated else { return false }
            state.destination = destination
            state.isDestinationClaimed = true
            state.isDestinationDelegated = true
            return true
        }
    }

    /// Takes it on oneself to write the body there; the first who does is the one.
    func claimDestination() -> Bool {
        state.withLock { state in
            defer { state.isDestinationClaimed = true }
            return state.destination != nil && !state.isDestinationClaimed
        }
    }

    /// Takes the destination back, since its file could not be written and no byte was lost: another may be set.
    func refuseDestination(_ error: HTTPError) {
        state.withLock { state in
            guard let destination = state.destination.take() else { return }
            state.isDestinationClaimed = false
            state.destinationFailures[destination] = error
        }
    }

    /// The reason why a destination was refused, once.
    func takeFailure(of destination: DownloadDestination) -> HTTPError? {
        state.withLock { $0.destinationFailures.removeValue(forKey: destination) }
    }

    /// Has the answer's body written to a file.
    /// - Returns: Whether it had nowhere to go before.
    func setDestination(_ destination: DownloadDestination) -> Bool {
        state.withLock { state in
            guard state.destination == nil else { return false }
            state.destination = destination
            return true
        }
    }

    // MARK: Pausing

    /// Stops reading and writing at the next buffer, and waiting for a connection.
    /// - Returns: Whether it was not paused before.
    @discardableResult
    package func pause() -> Bool {
        let (activity, wasPaused) = state.withLock { state in
            defer { state.isPaused = true }
            return (state.activity, state.isPaused)
        }
        if !wasPaused { TransferControl.leaveLine(activity) }
        return !wasPaused
    }

    /// Goes on.
    /// - Returns: Whether it was paused before.
    @discardableResult
    package func resume() -> Bool {
        let (activity, waiters, wasPaused) = state.withLock { state -> (Activity, [OneShot<Void>], Bool) in
            defer { state.isPaused = false }
            return (state.activity, Array(state.waiters.values), state.isPaused)
        }
        if case .exchanging(let exchange) = activity { exchange.transferResumed() }
        for waiter in waiters { waiter.fulfil(()) }
        return wasPaused
    }

    package var isPaused: Bool { state.withLock { $0.isPaused } }

    package func waitWhilePaused(until deadline: MonotonicTime, on loop: EventLoop) async {
        while !Task.isCancelled, MonotonicTime.now() < deadline {
            let waiter = OneShot<Void>()
            let number = state.withLock { state -> UInt64? in
                guard state.isPaused, !state.isCancelled else { return nil }
                state.lastWaiter += 1
                state.waiters[state.lastWaiter] = waiter
                return state.lastWaiter
            }
            guard let number else { return }
            // A writer is stopped by cancelling its task; nothing else would call it out of a pause that never ends.
            _ = await waiter.waitUnlessCancelled(until: deadline, on: loop)
            _ = state.withLock { $0.waiters.removeValue(forKey: number) }
        }
    }
}

/// What an exchange was, as the wire had it. The types of the public API are made of it when they are asked for: many
/// callers look at a status and a body and at nothing else.
final class ExchangeStorage: Sendable {
    let method: HTTPRequest.Method
    private let fields: HTTPFields
    private let givenRequest: HTTPRequest?
    /// What the session's `Accept` says, where it is sent with requests that have none.
    let defaultAccept: String?
    let url: HTTPURL
    let head: ResponseHead
    let body: [UInt8]
    /// Whether the body is all that came: it was not written elsewhere, nor left unread, nor that of a HEAD, which never comes.
    let isBodyCollected: Bool
    let trailers: FieldBlock?
    let interim: [ResponseHead]
    private let measured: MetricsSource
    let source: HTTPExchange.Source
    /// Which stored body it is: the same number as long as the cache keeps that body; `nil` where it has none.
    let representation: UInt64?
    /// The part that a stage had in the answer; `nil` for one of the network.
    let provenance: (any AnswerProvenance)?
    /// Guards the response, which whoever asks first makes.
    private let converted = Mutex<HTTPResponse?>(nil)

    init(
        _ call: Call, head: ResponseHead, body: [UInt8], isBodyCollected: Bool = false, trailers: FieldBlock?,
        interim: [ResponseHead], metrics: MetricsSource, source: HTTPExchange.Source,
        representation: UInt64? = nil, provenance: (any AnswerProvenance)? = nil
    ) {
        method = call.method
        fields = call.fields
        givenRequest = call.givenRequest
        let accept = call.settings.defaultAccept
        defaultAccept = accept == nil || call.options.omittedFields.contains(.accept) ? nil : accept
        url = call.url
        self.head = head
        self.body = body
        self.isBodyCollected = isBodyCollected
        self.trailers = trailers
        self.interim = interim
        measured = metrics
        self.source = source
        self.representation = representation
        self.provenance = provenance
    }

    /// What happened, and when.
    var metrics: HTTPMetrics { measured.metrics }

    /// The request as it was asked for.
    var request: HTTPRequest { givenRequest ?? HTTPRequest(method: method, url: url, headerFields: fields) }

    /// The response, made once.
    var response: HTTPResponse {
        converted.withLock { converted in
            if let response = converted { return response }
            let response = HeadConversion.response(head)
            converted = response
            return response
        }
    }
}
