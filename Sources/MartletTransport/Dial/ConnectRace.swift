import CMartletLinux
import CMartletOpenSSL
import Glibc

/// Runs a ``ConnectRaceMachine``: starts and closes sockets, waits for the next event, and passes it to the machine.
struct ConnectRace: Sendable {
    typealias Machine = ConnectRaceMachine<SocketAddress, TransportError>

    struct Outcome: Sendable {
        var result: Result<any ByteStream, TransportError> = .failure(.timedOut)
        var phase = DialError.Phase.connecting
        /// The address that won.
        var address: SocketAddress?
        /// Addresses whose connection attempt or TLS handshake failed.
        var failedAddresses: [SocketAddress] = []
        /// The time at which the connection was established.
        var connected: MonotonicTime?
        /// The time at which the TLS handshake was completed.
        var secured: MonotonicTime?
        /// The last connection on which the TLS handshake failed.
        var reached: ConnectionInformation?

        /// Records the address if it caused the error.
        mutating func attemptFailed(_ address: SocketAddress, _ error: TransportError) {
            if ConnectRace.isFaultOfAddress(error) { failedAddresses.append(address) }
        }
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

    func run(_ machine: consuming Machine) async -> Outcome {
        let start = machine
        if let address = start.onlyAddress { return await runAlone(address) }
        return await withTaskGroup(of: Event.self) { group in
            var machine = start
            var sockets: [Machine.Attempt: ConnectAttempt] = [:]
            var timers: [OneShot<Void>] = []
            var outcome = Outcome()
            var now: UInt64 { MonotonicTime.now().nanoseconds }
            var effects = machine.start(now: now)
            race: while true {
                for attempt in effects.cancels { sockets.removeValue(forKey: attempt)?.socket.close() }
                if let failures = effects.failures {
                    let error = ConnectRace.summary(failures, destination)
                    if case .tls = error { outcome.phase = .tlsHandshake }
                    outcome.result = .failure(error)
                    break
                }
                if let winner = effects.winner, let attempt = sockets.removeValue(forKey: winner) {
                    do throws(TransportError) {
                        try await secure(attempt, &outcome)
                        machine.winnerSucceeded()
                        break race
                    } catch {
                        attempt.socket.close()
                        outcome.attemptFailed(attempt.address, error)
                        if ConnectRace.isFinal(error) {
                            outcome.result = .failure(error)
                            break race
                        }
                        effects = machine.winnerFailed(error, now: now)
                        continue
                    }
                }
                if let time = effects.timer {
                    // The next attempt is due at this time. Timers that are no longer needed end with the race.
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
                    do throws(TransportError) {
                        let begun = try begin(attempt.address)
                        sockets[attempt] = begun
                        let deadline = deadline
                        group.addTask {
                            do throws(TransportError) {
                                try await begun.finish(until: deadline)
                                return .attempt(attempt, .success(()))
                            } catch { return .attempt(attempt, .failure(error)) }
                        }
                    } catch {
                        outcome.attemptFailed(attempt.address, error)
                        effects = machine.attemptFailed(attempt, error, now: now)
                        continue
                    }
                }
                guard let event = await group.next() else { break }
                switch event {
                case .timer: effects = machine.timerFired(now: now)
                case .attempt(let attempt, .success): effects = machine.connected(attempt)
                case .attempt(let attempt, .failure(let error)):
                    if sockets[attempt] != nil, ConnectRace.isFinal(error) {
                        // The dial's own deadline or cancellation ends the race and all running attempts. The last one
                        // may have started just before, so it does not count as failed unless it is alone.
                        let running = sockets.keys.sorted { $0.number < $1.number }
                        for hanging in running.prefix(max(1, running.count - 1)) {
                            outcome.attemptFailed(hanging.address, error)
                        }
                        outcome.result = .failure(error)
                        break race
                    }
                    if let ended = sockets.removeValue(forKey: attempt) {
                        ended.socket.close()
                        outcome.attemptFailed(attempt.address, error)
                    }
                    effects = machine.attemptFailed(attempt, error, now: now)
                }
            }
            for attempt in machine.cancel().cancels { sockets.removeValue(forKey: attempt)?.socket.close() }
            for attempt in sockets.values { attempt.socket.close() }
            for timer in timers { timer.interrupt() }
            return outcome
        }
    }

    /// Runs a race of one address without timers and tasks, which would be most of the cost for a nearby host.
    private func runAlone(_ address: SocketAddress) async -> Outcome {
        var outcome = Outcome()
        do throws(TransportError) {
            let attempt = try begin(address)
            do throws(TransportError) {
                try await attempt.finish(until: deadline)
                try await secure(attempt, &outcome)
            } catch {
                attempt.socket.close()
                throw error
            }
        } catch {
            outcome.attemptFailed(address, error)
            // The same error as in a race of several addresses.
            let failed = Machine.FailedAttempt(attempt: Machine.Attempt(number: 0, address: address), failure: error)
            outcome.result = .failure(ConnectRace.isFinal(error) ? error : ConnectRace.summary([failed], destination))
        }
        return outcome
    }

    private func begin(_ address: SocketAddress) throws(TransportError) -> ConnectAttempt {
        let attempt = try ConnectAttempt(to: address, options: options, loop: loop)
        control.add(attempt.socket)
        return attempt
    }

    /// Completes the connection of an attempt, with TLS if the destination needs it.
    private func secure(_ attempt: ConnectAttempt, _ outcome: inout Outcome) async throws(TransportError) {
        outcome.connected = MonotonicTime.now()
        let stream: any ByteStream
        if let context {
            outcome.phase = .tlsHandshake
            // Read before the handshake, because a failed handshake closes the socket.
            let localAddress = attempt.socket.localAddress
            do throws(TransportError) {
                stream = try await TLSStream.connect(
                    socket: attempt.socket, remoteAddress: attempt.address, context: context,
                    serverName: destination.host, port: destination.port, deadline: deadline)
            } catch {
                outcome.reached = ConnectionInformation(
                    remoteAddress: attempt.address.description, localAddress: localAddress?.description ?? "")
                throw error
            }
            outcome.secured = MonotonicTime.now()
        } else {
            stream = PlainStream(socket: attempt.socket, remoteAddress: attempt.address)
        }
        outcome.result = .success(stream)
        outcome.address = attempt.address
    }

    /// Whether no other address should be tried: the time has expired, the dial was cancelled, a certificate of either
    /// side was rejected, or the settings of both sides are incompatible. After other errors, such as a peer without
    /// TLS or another alert, the next address may work.
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

    /// The alerts about certificates and about the settings of both sides, which every address of a host would send.
    private static let finalAlerts: Set<Int32> = [
        SSL_AD_BAD_CERTIFICATE, SSL_AD_UNSUPPORTED_CERTIFICATE, SSL_AD_CERTIFICATE_REVOKED, SSL_AD_CERTIFICATE_EXPIRED,
        SSL_AD_CERTIFICATE_UNKNOWN, SSL_AD_UNKNOWN_CA, SSL_AD_ACCESS_DENIED, SSL_AD_CERTIFICATE_REQUIRED,
        SSL_AD_PROTOCOL_VERSION, SSL_AD_INSUFFICIENT_SECURITY, SSL_AD_NO_APPLICATION_PROTOCOL,
    ]

    /// Whether an error is caused by the address, so that later dials try the address last. Rejected certificates,
    /// cancelled dials and a lack of resources on this machine are not caused by it.
    static func isFaultOfAddress(_ error: TransportError) -> Bool {
        switch error {
        case .timedOut: true
        case .interrupted, .resolution, .addressLost: false
        case .connect(let errors): !errors.allSatisfy(\.error.isLocalShortage)
        case .system(let error): !error.isLocalShortage
        case .tls, .closed: !isFinal(error)
        }
    }

    /// Combines all failures into one error: the first TLS error, which is the most specific, else a list of all.
    private static func summary(_ failures: [Machine.FailedAttempt], _ destination: Destination) -> TransportError {
        var connects: [ConnectError] = []
        for failed in failures {
            if case .tls = failed.failure { return failed.failure }
            if case .connect(let list) = failed.failure {
                connects += list
            } else if case .system(let error) = failed.failure {
                connects.append(ConnectError(address: failed.attempt.address.description, error: error))
            }
        }
        if !connects.isEmpty { return .connect(connects) }
        return failures.last?.failure
            ?? .resolution(ResolutionError(host: destination.host, message: "no address of an allowed family"))
    }
}

/// One attempt to connect. The race starts it, and waits for its result in another task.
struct ConnectAttempt: Sendable {
    let address: SocketAddress
    /// The socket, which starts to connect when it is created.
    let socket: Socket

    /// Opens a socket and starts connecting it.
    /// - Throws: `.connect`.
    init(to address: SocketAddress, options: SocketOptions, loop: EventLoop) throws(TransportError) {
        do throws(SystemError) {
            let descriptor = try Descriptor(address.family)
            try options.apply(to: descriptor, family: address.family)
            try descriptor.connect(to: address)
            socket = try descriptor.register(with: loop)
        } catch { throw .connect([ConnectError(address: address.description, error: error)]) }
        self.address = address
    }

    /// Waits until the connection is established or has failed.
    /// - Throws: `.timedOut`, `.interrupted`, `.closed`, or `.connect` with the system's error.
    func finish(until deadline: MonotonicTime) async throws(TransportError) {
        try await socket.wait(for: .write, until: deadline)
        let result = socket.withDescriptor { descriptor -> Int32 in
            var code: Int32 = 0
            var length = socklen_t(MemoryLayout<Int32>.size)
            let succeeded = unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length) == 0
            return succeeded ? code : errno
        }
        guard let code = result else { throw .closed }
        guard code != 0 else { return }
        let error = SystemError(operation: "connect", code: code)
        throw .connect([ConnectError(address: address.description, error: error)])
    }
}
