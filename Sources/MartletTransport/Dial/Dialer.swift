import Synchronization

/// Opens connections: name, addresses, race, TLS.
///
/// A dialer stands for one set of settings, and so for one part of the pool's key: connections of two dialers are never
/// exchanged. It keeps what belongs to the settings: the TLS context with its sessions, and the addresses that failed.
package final class Dialer: Sendable {
    /// Tells dialers apart in the pool's key.
    package let number: UInt64
    /// The settings it opens connections by.
    package let settings: DialSettings

    private static let lastNumber = Atomic<UInt64>(0)
    private let loop: EventLoop
    private let contexts: TLSContextSet
    /// Guards the TLS contexts for proxies, by their settings: read and written once a dial. None is ever used for a
    /// server, nor a server's for a proxy.
    private let proxyTLS = Mutex<[TLSSettings: TLSContextSet]>([:])
    /// Guards which addresses failed lately: read and written once a dial.
    private let memory = Mutex(AddressMemory<SocketAddress>())

    /// A dialer of its own.
    package init(settings: DialSettings, loop: EventLoop) {
        number = Dialer.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
        self.settings = settings
        self.loop = loop
        contexts = TLSContextSet(settings: settings.tls)
    }

    /// An open connection, and when its parts were done.
    package struct Connected: Sendable {
        /// The connection.
        package var stream: any ByteStream
        /// When its parts were done.
        package var timings: DialTimings
    }

    /// Opens a connection.
    ///
    /// Cancelling the task interrupts it; it then throws `.interrupted` and leaves nothing open.
    package func dial(
        _ destination: Destination, until deadline: MonotonicTime
    ) async throws(DialError) -> Connected { try await dial(destination, as: nil, until: deadline) }

    /// Opens a connection to a proxy, with the proxy's own TLS where it wants that; else as ``dial(_:until:)``.
    package func dial(
        _ proxy: ProxyServer, until deadline: MonotonicTime
    ) async throws(DialError) -> Connected { try await dial(proxy.destination, as: proxy, until: deadline) }

    private func dial(
        _ destination: Destination, as proxy: ProxyServer?, until deadline: MonotonicTime
    ) async throws(DialError) -> Connected {
        let control = DialControl()
        let result: Result<Connected, DialError> = await withTaskCancellationHandler {
            do throws(DialError) {
                return .success(
                    try await open(destination, as: proxy, until: deadline, control: control))
            } catch {
                return .failure(error)
            }
        } onCancel: {
            control.cancel()
        }
        let connected = try result.get()
        // The handler cannot run any more. Where it has run, it has interrupted the socket for good, though connecting may
        // have succeeded in the same moment: whoever got that connection would be told that it was cancelled.
        guard !control.isCancelled else {
            connected.stream.close()
            throw failure(.connecting, .interrupted, connected.timings)
        }
        return connected
    }

    private func open(
        _ destination: Destination, as proxy: ProxyServer?, until deadline: MonotonicTime,
        control: DialControl
    ) async throws(DialError) -> Connected {
        var timings = DialTimings(start: MonotonicTime.now())
        if let connector = settings.connector.value, proxy == nil {
            do throws(TransportError) {
                let stream = try await connect(by: connector, to: destination, until: deadline)
                timings.connected = MonotonicTime.now()
                return Connected(stream: stream, timings: timings)
            } catch {
                throw failure(.connecting, error, timings)
            }
        }
        let addresses: [SocketAddress]
        do throws(TransportError) {
            addresses = try await resolve(
                destination, isProxy: proxy != nil, until: deadline, timings: &timings)
        } catch {
            throw failure(.resolving, error, timings)
        }
        var context: TLSContext?
        if destination.isSecure {
            do throws(TLSError) {
                context = try await (proxy.map { contextSet(for: $0) } ?? contexts)
                    .context(for: destination.host)
            } catch {
                throw failure(.securing, .tls(error), timings)
            }
        }
        if control.isCancelled { throw failure(.connecting, .interrupted, timings) }
        let race = ConnectRace(
            destination: destination, options: settings.socket, context: context, deadline: deadline,
            loop: loop, control: control)
        let now = timings.resolved ?? timings.start
        let machine = memory.withLock { memory in
            ConnectRaceMachine<SocketAddress, TransportError>(
                addresses: addresses, settings: settings.race, memory: memory, now: now.nanoseconds)
        }
        let outcome = await race.run(machine)
        memory.withLock { memory in
            for address in outcome.failedAddresses { memory.recordFailure(address, now: now.nanoseconds) }
            if let address = outcome.address { memory.recordSuccess(address) }
        }
        timings.connected = outcome.connected
        timings.secured = outcome.secured
        switch outcome.result {
        case .success(let stream): return Connected(stream: stream, timings: timings)
        case .failure(let error):
            var failure = failure(outcome.phase, error, timings)
            failure.reached = outcome.reached.map { ReachedConnection(information: $0, timings: timings) }
            throw failure
        }
    }

    private func failure(
        _ phase: DialError.Phase, _ cause: TransportError, _ timings: DialTimings
    ) -> DialError {
        DialError(phase: phase, cause: cause, elapsed: MonotonicTime.now().since(timings.start))
    }

    // MARK: Tunnels

    /// The context for TLS with a proxy itself.
    private func contextSet(for proxy: ProxyServer) -> TLSContextSet {
        let (contexts, _) = proxyTLS.withLock { sets -> (TLSContextSet, [TLSSettings: TLSContextSet]) in
            if let contexts = sets[proxy.tls] { return (contexts, [:]) }
            // Proxies that each come with settings of their own must not fill the memory with contexts. They are freed
            // outside of the lock.
            let former = sets
            if sets.count >= Dialer.proxyContextLimit { sets.removeAll() }
            let contexts = TLSContextSet(settings: proxy.tls)
            sets[proxy.tls] = contexts
            return (contexts, former)
        }
        return contexts
    }

    private static let proxyContextLimit = 16

    /// Opens TLS with a destination through a tunnel, which is closed when that fails.
    ///
    /// Interrupting the tunnel ends it.
    /// - Parameter start: When the dial began, for the error.
    package func secure(
        _ tunnel: any ByteStream, to destination: Destination, through proxy: ProxyServer,
        until deadline: MonotonicTime, since start: MonotonicTime
    ) async throws(DialError) -> any ByteStream {
        let timings = DialTimings(start: start)
        let context: TLSContext
        do throws(TLSError) {
            context = try await contexts.context(for: destination.host)
        } catch {
            tunnel.close()
            throw failure(.securing, .tls(error), timings)
        }
        let carrier = tunnel as? TLSStream
        guard let socket = carrier?.socket ?? (tunnel as? PlainStream)?.socket else {
            tunnel.close()
            let reason = TLSError(
                .configuration(reason: "no TLS over this kind of stream"), host: destination.host)
            throw failure(.securing, .tls(reason), timings)
        }
        do throws(TransportError) {
            return try await TLSStream.connect(
                socket: socket, carrier: carrier, remoteAddress: socket.remoteAddress, context: context,
                serverName: destination.host, port: destination.port, proxy: proxy.description,
                deadline: deadline)
        } catch {
            throw failure(.securing, error, timings)
        }
    }

    /// The addresses of a destination that a proxy is to connect to, looked up here.
    ///
    /// Cancelling the task interrupts it.
    package func addresses(
        of destination: Destination, until deadline: MonotonicTime
    ) async throws(DialError) -> [SocketAddress] {
        var timings = DialTimings(start: MonotonicTime.now())
        do throws(TransportError) {
            return try await resolve(destination, isProxy: false, until: deadline, timings: &timings)
        } catch {
            throw failure(.resolving, error, timings)
        }
    }

    /// Connects in place of the network, in a task of its own, which is cancelled at the deadline.
    private func connect(
        by connector: any StreamConnector, to destination: Destination, until deadline: MonotonicTime
    ) async throws(TransportError) -> any ByteStream {
        let answer = OneShot<Result<any ByteStream, TransportError>>()
        let attempt = Task {
            do throws(TransportError) {
                let stream = try await connector.connect(to: destination)
                // A stream that comes too late belongs to nobody.
                if !answer.fulfil(.success(stream)) { stream.close() }
            } catch {
                answer.fulfil(.failure(error))
            }
        }
        switch await answer.waitUnlessCancelled(until: deadline, on: loop) {
        case .value(let result): return try result.get()
        case .timedOut:
            attempt.cancel()
            throw .timedOut
        case .interrupted:
            attempt.cancel()
            throw .interrupted
        }
    }

    private func resolve(
        _ destination: Destination, isProxy: Bool, until deadline: MonotonicTime, timings: inout DialTimings
    ) async throws(TransportError) -> [SocketAddress] {
        if let path = settings.unixSocketPath, !isProxy {
            guard let address = SocketAddress(unixPath: path) else {
                throw .resolution(
                    ResolutionError(host: path, message: "a socket's path has 1 to 107 bytes and no NUL"))
            }
            return [address]
        }
        // Redirections are about servers; what a proxy is asked for is another matter.
        let (host, port) =
            isProxy
            ? (destination.host, destination.port)
            : settings.redirected(host: destination.host, port: destination.port)
        if let given = settings.overrides[Endpoint(host: host, port: port)]
            ?? settings.overrides[Endpoint(host: "*", port: port)]
        {
            return given
        }
        if let literal = SocketAddress(literal: host, port: port) { return [literal] }
        let resolver = settings.resolver.value
        let (name, number) = (host, port)
        // The look-up gets a task of its own, which is cancelled at the deadline: a resolver that the user brought may
        // know of no deadline.
        let answer = OneShot<Result<[SocketAddress], ResolutionError>>()
        let lookUp = Task {
            do throws(ResolutionError) {
                answer.fulfil(.success(try await resolver.addresses(of: name, port: number)))
            } catch {
                answer.fulfil(.failure(error))
            }
        }
        defer { lookUp.cancel() }
        let outcome = await answer.waitUnlessCancelled(until: deadline, on: loop)
        timings.resolved = MonotonicTime.now()
        switch outcome {
        case .value(.success(let addresses)): return addresses
        case .value(.failure(let error)): throw .resolution(error)
        case .timedOut: throw .timedOut
        case .interrupted: throw .interrupted
        }
    }
}

extension SocketAddress: RaceAddress {
    /// Whether it is an IPv6 address.
    package var isIPv6: Bool { family == .ipv6 }
}
