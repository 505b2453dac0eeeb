import CLinux
import COpenSSL
import Glibc

/// Runs a ``ConnectRaceMachine``: starts and closes the sockets it names, waits for the first thing to happen, tells it.
struct ConnectRace: Sendable {
    typealias Machine = ConnectRaceMachine<SocketAddress, TransportError>

    /// How the race ended.
    package struct Outcome: Sendable {
        /// The connection, or why there is none.
        var result: Result<any ByteStream, TransportError>
        /// The step that failed, where one did.
        var phase = DialError.Phase.connecting
        /// The address that won.
        var address: SocketAddress?
        /// Addresses that could not be connected to, or where the TLS handshake came to nothing.
        var failedAddresses: [SocketAddress] = []
        /// When the connection stood.
        var connected: MonotonicTime?
        /// When the TLS handshake was done.
        var secured: MonotonicTime?
        /// The last connection on which the TLS handshake failed.
        var reached: ConnectionInformation?
    }

    private enum Event: Sendable {
        case attempt(Machine.Attempt, Result<Void, TransportError>)
        case timer
    }

    let destination: Destination
    let options: SocketOptions
    let context: TLSContext?
    let deadline: MonotonicTime
    let loop: EventLoop
    let control: DialControl

    /// Runs a race that has not been started.
    func run(_ machine: consuming Machine) async -> Outcome {
        let start = machine
        if let address = start.onlyAddress { return await runAlone(address) }
        return await withTaskGroup(of: Event.self) { group in
            var machine = start
            var sockets: [Machine.Attempt: ConnectAttempt] = [:]
            var timers: [OneShot<Void>] = []
            var outcome = Outcome(result: .failure(.timedOut))
            var effects = machine.start(now: MonotonicTime.now().nanoseconds)
            var ending: TransportError?
            race: while true {
                for attempt in effects.cancels { sockets.removeValue(forKey: attempt)?.socket.close() }
                if let failures = effects.failures {
                    let error = ConnectRace.summary(failures, destination)
                    if case .tls = error { outcome.phase = .securing }
                    outcome.result = .failure(error)
                    break
                }
                if let winner = effects.winner, let attempt = sockets.removeValue(forKey: winner) {
                    outcome.connected = MonotonicTime.now()
                    let secured = await secure(attempt, &outcome)
                    switch secured {
                    case .success(let stream):
                        machine.winnerSucceeded()
                        if context != nil { outcome.secured = MonotonicTime.now() }
                        outcome.result = .success(stream)
                        outcome.address = attempt.address
                        break race
                    case .failure(let error):
                        attempt.socket.close()
                        outcome.phase = .securing
                        if ConnectRace.isFaultOfAddress(error) {
                            outcome.failedAddresses.append(attempt.address)
                        }
                        if ConnectRace.isFinal(error) {
                            outcome.result = .failure(error)
                            break race
                        }
                        effects = machine.winnerFailed(
                            error, isFatal: false, now: MonotonicTime.now().nanoseconds)
                        continue
                    }
                }
                if let time = effects.timer {
                    // Before the next attempt is due nothing is decided; a timer that is not needed any more is ended
                    // with the race.
                    let timer = OneShot<Void>()
                    timers.append(timer)
                    let loop = loop
                    group.addTask {
                        _ = await timer.wait(until: MonotonicTime(nanoseconds: time), on: loop)
                        return .timer
                    }
                }
                if let attempt = effects.start {
                    outcome.phase = .connecting
                    switch begin(attempt.address) {
                    case .success(let begun):
                        sockets[attempt] = begun
                        let deadline = deadline
                        group.addTask {
                            do throws(TransportError) {
                                try await begun.finish(until: deadline)
                                return .attempt(attempt, .success(()))
                            } catch {
                                return .attempt(attempt, .failure(error))
                            }
                        }
                    case .failure(let failure):
                        outcome.failedAddresses.append(attempt.address)
                        effects = machine.attemptFailed(
                            attempt, .connect([failure]), now: MonotonicTime.now().nanoseconds)
                        continue
                    }
                }
                guard let event = await group.next() else { break }
                switch event {
                case .timer: effects = machine.timerFired(now: MonotonicTime.now().nanoseconds)
                case .attempt(let attempt, .success): effects = machine.connected(attempt)
                case .attempt(let attempt, .failure(let error)):
                    if sockets[attempt] != nil, ConnectRace.isFinal(error) {
                        // The dial's own deadline or cancellation: it ends the race, whoever else is still running.
                        ending = error
                        break race
                    }
                    if let failed = sockets.removeValue(forKey: attempt) {
                        failed.socket.close()
                        outcome.failedAddresses.append(attempt.address)
                    }
                    effects = machine.attemptFailed(attempt, error, now: MonotonicTime.now().nanoseconds)
                }
            }
            if let ending { outcome.result = .failure(ending) }
            for attempt in machine.cancel().cancels { sockets.removeValue(forKey: attempt)?.socket.close() }
            for attempt in sockets.values { attempt.socket.close() }
            for timer in timers { timer.interrupt() }
            return outcome
        }
    }

    /// The race of one: no timers, and no tasks, which are most of what opening a connection nearby costs.
    private func runAlone(_ address: SocketAddress) async -> Outcome {
        var outcome = Outcome(result: .failure(.timedOut))
        switch begin(address) {
        case .failure(let failure):
            outcome.failedAddresses = [address]
            outcome.result = .failure(.connect([failure]))
        case .success(let attempt):
            do throws(TransportError) {
                try await attempt.finish(until: deadline)
                outcome.connected = MonotonicTime.now()
                outcome.phase = context == nil ? .connecting : .securing
                outcome.result = .success(try await secure(attempt, &outcome).get())
                outcome.address = address
                if context != nil { outcome.secured = MonotonicTime.now() }
            } catch {
                attempt.socket.close()
                outcome.result = .failure(alone(address, error))
                if ConnectRace.isFaultOfAddress(error) { outcome.failedAddresses = [address] }
            }
        }
        return outcome
    }

    /// What a race of one is lost by: the same error as where others had been tried besides.
    private func alone(_ address: SocketAddress, _ error: TransportError) -> TransportError {
        if ConnectRace.isFinal(error) { return error }
        let attempt = Machine.Attempt(number: 0, address: address)
        return ConnectRace.summary([Machine.FailedAttempt(attempt: attempt, failure: error)], destination)
    }

    private func begin(_ address: SocketAddress) -> Result<ConnectAttempt, ConnectFailure> {
        do throws(ConnectFailure) {
            let attempt = try ConnectAttempt(to: address, options: options, loop: loop)
            control.add(attempt.socket)
            return .success(attempt)
        } catch {
            return .failure(error)
        }
    }

    private func secure(
        _ attempt: ConnectAttempt, _ outcome: inout Outcome
    ) async -> Result<any ByteStream, TransportError> {
        guard let context else {
            return .success(PlainStream(socket: attempt.socket, remoteAddress: attempt.address))
        }
        // Asked for now: where the handshake fails, the socket is closed.
        let localAddress = attempt.socket.localAddress
        do throws(TransportError) {
            return .success(
                try await TLSStream.connect(
                    socket: attempt.socket, remoteAddress: attempt.address, context: context,
                    serverName: destination.host, port: destination.port, deadline: deadline))
        } catch {
            outcome.reached = ConnectionInformation(
                remoteAddress: attempt.address.description, localAddress: localAddress?.description ?? "")
            return .failure(error)
        }
    }

    /// Whether trying another address is out of the question: the time is up, the dial was cancelled, a certificate,
    /// theirs or ours, was refused, or the settings of both sides do not go together. An address where something else
    /// than TLS answers, or an alert that tells of trouble at that place, is like one where nobody does.
    static func isFinal(_ error: TransportError) -> Bool {
        switch error {
        case .timedOut, .interrupted: true
        case .tls(let error):
            switch error.kind {
            case .handshake, .truncated: false
            case .alert(let number, _): ConnectRace.finalAlerts.contains(Int32(truncatingIfNeeded: number))
            default: true
            }
        case .resolution, .connect, .system, .closed, .addressLost: false
        }
    }

    /// The alerts that every address of a host would answer by: those about certificates, and those about what both sides
    /// are set up for.
    private static let finalAlerts: Set<Int32> = [
        SSL_AD_BAD_CERTIFICATE, SSL_AD_UNSUPPORTED_CERTIFICATE, SSL_AD_CERTIFICATE_REVOKED,
        SSL_AD_CERTIFICATE_EXPIRED, SSL_AD_CERTIFICATE_UNKNOWN, SSL_AD_UNKNOWN_CA, SSL_AD_ACCESS_DENIED,
        SSL_AD_CERTIFICATE_REQUIRED, SSL_AD_PROTOCOL_VERSION, SSL_AD_INSUFFICIENT_SECURITY,
        SSL_AD_NO_APPLICATION_PROTOCOL,
    ]

    /// Whether an error speaks against the address, which is then tried last next time; neither certificates that were
    /// refused nor a dial that was cancelled do.
    static func isFaultOfAddress(_ error: TransportError) -> Bool {
        switch error {
        case .timedOut: true
        case .interrupted, .resolution, .addressLost: false
        case .tls, .connect, .system, .closed: !isFinal(error)
        }
    }

    /// All failures as one error: that of a handshake, where one was reached, for it says the most; else every address
    /// with its reason.
    private static func summary(
        _ failures: [Machine.FailedAttempt], _ destination: Destination
    ) -> TransportError {
        var connects: [ConnectFailure] = []
        for failed in failures {
            if case .tls = failed.failure { return failed.failure }
            if case .connect(let list) = failed.failure {
                connects += list
            } else if case .system(let error) = failed.failure {
                connects.append(ConnectFailure(address: failed.attempt.address.description, error: error))
            }
        }
        if connects.isEmpty {
            return failures.last?.failure
                ?? .resolution(
                    ResolutionError(host: destination.host, message: "no address of the families allowed"))
        }
        return .connect(connects)
    }
}

/// One address being connected to.
///
/// A struct of two steps, so that the race can start an attempt without waiting for it.
struct ConnectAttempt: Sendable {
    /// The address.
    let address: SocketAddress
    /// The socket, which connects as soon as it is made.
    let socket: Socket

    /// Opens a socket and starts connecting it.
    init(to address: SocketAddress, options: SocketOptions, loop: EventLoop) throws(ConnectFailure) {
        do throws(SystemError) {
            let descriptor = try Descriptor(address.family)
            try options.apply(to: descriptor, family: address.family)
            try descriptor.connect(to: address)
            socket = try descriptor.register(with: loop)
        } catch {
            throw ConnectFailure(address: address.description, error: error)
        }
        self.address = address
    }

    /// Waits until the connection stands or is refused.
    ///
    /// - Throws: `.timedOut`, after which it may be waited for again; `.interrupted`, `.closed`; `.connect`.
    func finish(until deadline: MonotonicTime) async throws(TransportError) {
        try await socket.wait(for: .write, until: deadline)
        let result = socket.withDescriptor { descriptor -> Int32 in
            var code: Int32 = 0
            var length = socklen_t(MemoryLayout<Int32>.size)
            let succeeded = unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length) == 0
            return succeeded ? code : errno
        }
        guard let code = result else { throw .closed }
        guard code == 0 else {
            throw .connect([
                ConnectFailure(
                    address: address.description, error: SystemError(operation: "connect", code: code))
            ])
        }
        return
    }
}
