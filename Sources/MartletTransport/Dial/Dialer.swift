import Synchronization

/// An object that opens connections: it resolves the name, races the addresses, and performs the TLS handshake. A
/// dialer has one set of settings, and its number is part of the pool's key, so two dialers never share connections. It
/// stores the state that belongs to the settings: the TLS contexts with their sessions, and the addresses that failed.
package final class Dialer: Sendable {
    /// Identifies the dialer in the pool's key.
    package let number: UInt64
    package let settings: DialSettings

    private static let lastNumber = Atomic<UInt64>(0)
    private let loop: EventLoop
    private let contexts: TLSContextSet
    /// Guards the TLS contexts for proxies, by their settings. Proxies and servers never share a context.
    private let proxyTLS = Mutex<[TLSSettings: TLSContextSet]>([:])
    /// Guards the addresses that failed recently: read and written once per dial.
    private let memory = Mutex(AddressMemory<SocketAddress>())

    package init(settings: DialSettings, loop: EventLoop) {
        number = Dialer.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
        (self.settings, self.loop) = (settings, loop)
        contexts = TLSContextSet(settings: settings.tls)
    }

    package struct Connected: Sendable {
        package var stream: any ByteStream
        /// The times at which the steps of the dial were completed.
        package var timings: DialTimings
    }

    /// Opens a connection. When the task is cancelled, the call throws `.interrupted` and leaves nothing open.
    /// - Parameter proxy: The proxy that is dialed, whose TLS settings are then used; `nil` for a server.
    package func dial(_ destination: Destination, as proxy: ProxyServer? = nil, until deadline: MonotonicTime)
        async throws(DialError) -> Connected
    {
        let control = DialControl()
        let result: Result<Connected, DialError> = await withTaskCancellationHandler {
            do throws(DialError) {
                return .success(try await open(destination, as: proxy, until: deadline, control: control))
            } catch { return .failure(error) }
        } onCancel: {
            control.cancel()
        }
        let connected = try result.get()
        // The cancellation handler cannot run any more. If it has run, the socket is permanently interrupted, although
        // connecting may have succeeded at the same moment. A later user of the connection would get that error.
        guard !control.isCancelled else {
            connected.stream.close()
            throw failure(.connecting, .interrupted, connected.timings)
        }
        return connected
    }

    private func open(
        _ destination: Destination, as proxy: ProxyServer?, until deadline: MonotonicTime, control: DialControl
    ) async throws(DialError) -> Connected {
        var timings = DialTimings(start: MonotonicTime.now())
        if let connector = settings.connector.value, proxy == nil {
            let stream = try await step(.connecting, timings) { () throws(TransportError) in
                try await connect(by: connector, to: destination, until: deadline)
            }
            timings.connected = MonotonicTime.now()
            return Connected(stream: stream, timings: timings)
        }
        let (addresses, resolved) = try await step(.resolving, timings) { () throws(TransportError) in
            try await resolve(destination, isProxy: proxy != nil, until: deadline)
        }
        timings.resolved = resolved
        var context: TLSContext?
        if destination.isSecure {
            context = try await step(.tlsHandshake, timings) { () throws(TransportError) in
                try await (proxy.map { contextSet(for: $0) } ?? contexts).context(for: destination.host)
            }
        }
        if control.isCancelled { throw failure(.connecting, .interrupted, timings) }
        let race = ConnectRace(
            destination: destination, options: settings.socket, context: context, deadline: deadline, loop: loop,
            control: control)
        let now = (timings.resolved ?? timings.start).nanoseconds
        let machine = memory.withLock { memory in
            ConnectRaceMachine<SocketAddress, TransportError>(
                addresses: addresses, settings: settings.race, memory: memory, now: now)
        }
        let outcome = await race.run(machine)
        memory.withLock { memory in
            for address in outcome.failedAddresses { memory.recordFailure(address, now: now) }
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

    /// Performs a step of a dial, and adds the phase and the elapsed time to its error.
    private func step<Value>(
        _ phase: DialError.Phase, _ timings: DialTimings, _ body: () async throws(TransportError) -> Value
    ) async throws(DialError) -> Value {
        do throws(TransportError) { return try await body() } catch { throw failure(phase, error, timings) }
    }

    private func failure(_ phase: DialError.Phase, _ cause: TransportError, _ timings: DialTimings) -> DialError {
        DialError(phase: phase, cause: cause, elapsed: MonotonicTime.now().since(timings.start))
    }

    /// Connects with the connector instead of the network.
    private func connect(by connector: any StreamConnector, to destination: Destination, until deadline: MonotonicTime)
        async throws(TransportError) -> any ByteStream
    {
        // A stream that arrives too late is closed.
        try await OneShot<Result<any ByteStream, TransportError>>.run(
            until: deadline, on: loop, late: { try? $0.get().close() },
            { () async -> Result<any ByteStream, TransportError> in
                do throws(TransportError) { return .success(try await connector.connect(to: destination)) } catch {
                    return .failure(error)
                }
            }
        ).get().get()
    }

    /// The addresses of a destination, and the time at which its name was resolved; `nil` if that was not necessary.
    private func resolve(_ destination: Destination, isProxy: Bool, until deadline: MonotonicTime)
        async throws(TransportError) -> (addresses: [SocketAddress], resolved: MonotonicTime?)
    {
        if let path = settings.unixSocketPath, !isProxy {
            guard let address = SocketAddress(unixPath: path) else {
                throw .resolution(ResolutionError(host: path, message: "a socket's path has 1 to 107 bytes and no NUL"))
            }
            return ([address], nil)
        }
        // Redirections apply to servers, not to proxies.
        let (host, port) =
            isProxy
            ? (destination.host, destination.port) : settings.redirected(host: destination.host, port: destination.port)
        if let given = settings.overriddenAddresses(host: host, port: port) { return (given, nil) }
        if let literal = SocketAddress(literal: host, port: port) { return ([literal], nil) }
        let resolver = settings.resolver.value
        let outcome = await OneShot<Result<[SocketAddress], ResolutionError>>.run(until: deadline, on: loop) {
            do throws(ResolutionError) { return .success(try await resolver.addresses(of: host, port: port)) } catch {
                return .failure(error)
            }
        }
        let resolved = MonotonicTime.now()
        return (try outcome.get().mapError(TransportError.resolution).get(), resolved)
    }

    private func contextSet(for proxy: ProxyServer) -> TLSContextSet {
        let (contexts, _) = proxyTLS.withLock { sets -> (TLSContextSet, [TLSSettings: TLSContextSet]) in
            if let contexts = sets[proxy.tls] { return (contexts, [:]) }
            // Proxies with different settings must not fill the memory. Contexts are freed outside of the lock.
            let former = sets
            if sets.count >= Dialer.proxyContextLimit { sets.removeAll() }
            let contexts = TLSContextSet(settings: proxy.tls)
            sets[proxy.tls] = contexts
            return (contexts, former)
        }
        return contexts
    }

    private static let proxyContextLimit = 16

    /// Opens TLS with a destination through a tunnel, which a failure closes. Interrupting the tunnel ends the call.
    /// - Parameter start: The start of the dial, for the error.
    package func secure(
        _ tunnel: any ByteStream, to destination: Destination, through proxy: ProxyServer,
        until deadline: MonotonicTime, since start: MonotonicTime
    ) async throws(DialError) -> any ByteStream {
        try await step(.tlsHandshake, DialTimings(start: start)) { () throws(TransportError) in
            let carrier = tunnel as? TLSStream
            let context: TLSContext
            do throws(TransportError) { context = try await contexts.context(for: destination.host) } catch {
                tunnel.close()
                throw error
            }
            guard let socket = carrier?.socket ?? (tunnel as? PlainStream)?.socket else {
                tunnel.close()
                let kind = TLSError.Kind.configuration(reason: "this kind of stream cannot carry TLS")
                throw .tls(TLSError(kind, host: destination.host))
            }
            return try await TLSStream.connect(
                socket: socket, carrier: carrier, remoteAddress: socket.remoteAddress, context: context,
                serverName: destination.host, port: destination.port, proxy: proxy.description, deadline: deadline)
        }
    }

    /// Resolves the name of a destination on this machine, for a SOCKS proxy. Cancelling the task ends the call.
    /// - Returns: The addresses in the order in which to try them; empty without an address of an allowed family.
    package func addresses(of destination: Destination, until deadline: MonotonicTime) async throws(DialError)
        -> [SocketAddress]
    {
        let found = try await step(.resolving, DialTimings(start: MonotonicTime.now())) { () throws(TransportError) in
            try await resolve(destination, isProxy: false, until: deadline).addresses
        }
        return ConnectRacePlan.order(found, settings: settings.race) { _ in false }
    }
}

/// The destination of a connection on the network.
package struct Destination: Hashable, Sendable {
    /// Whether TLS is used.
    package var isSecure: Bool
    /// An ASCII host name, or an address literal without brackets.
    package var host: String
    /// The port, 1–65535.
    package var port: Int

    package init(isSecure: Bool, host: String, port: Int) {
        (self.isSecure, self.host, self.port) = (isSecure, host, port)
    }
}

/// The sockets of one dial, so that cancelling it can interrupt all of its waits.
final class DialControl: Sendable {
    private let state = Mutex((isCancelled: false, sockets: [Socket]()))

    /// Adds a socket, which is interrupted when the dial is cancelled, or immediately if it was cancelled before.
    func add(_ socket: Socket) {
        let isCancelled = state.withLock { state in
            state.sockets.append(socket)
            return state.isCancelled
        }
        if isCancelled { socket.readiness.interrupt() }
    }

    func cancel() {
        let sockets = state.withLock { state in
            state.isCancelled = true
            return state.sockets
        }
        for socket in sockets { socket.readiness.interrupt() }
    }

    var isCancelled: Bool { state.withLock { $0.isCancelled } }
}

package struct DialError: Error, Sendable {
    package enum Phase: Sendable {
        case resolving
        case connecting
        /// Loading trust roots and identities, and the TLS handshake.
        case tlsHandshake
    }

    package var phase: Phase
    package var cause: TransportError
    package var elapsed: Duration
    /// The connection on which the dial failed; `nil` if none was established.
    package var reached: ReachedConnection?
}

package struct DialTimings: Sendable {
    package var start: MonotonicTime
    /// The time at which the name was resolved; `nil` if there was nothing to resolve.
    package var resolved: MonotonicTime?
    /// The time at which the TCP connection, or the stream that replaces it, was established.
    package var connected: MonotonicTime?
    /// The time at which the tunnel through a proxy was established; `nil` without one.
    package var tunneled: MonotonicTime?
    /// The time at which the TLS handshake was completed; `nil` on a plain connection.
    package var secured: MonotonicTime?
}

/// A connection that was established before the dial failed in the TLS handshake, or in the handshake with a proxy. It
/// is a class so that errors without such a connection stay small.
package final class ReachedConnection: Sendable {
    package let information: ConnectionInformation
    /// The times at which the steps of the dial were completed.
    package let timings: DialTimings

    /// Creates the description of an abandoned connection.
    package init(information: ConnectionInformation, timings: DialTimings) {
        (self.information, self.timings) = (information, timings)
    }
}

/// A replacement for the network that opens streams: the basis of mock transports.
package protocol StreamConnector: Sendable {
    /// Opens a stream to a destination. The connector provides TLS if the destination needs it.
    func connect(to destination: Destination) async throws(TransportError) -> any ByteStream
}

/// The TLS contexts of a dialer: one for all hosts without a rule, and one for each set of settings of other hosts.
final class TLSContextSet: Sendable {
    private let settings: TLSSettings
    /// The context for hosts without a rule.
    private let usual: TLSContextLoader
    /// Guards the contexts for hosts with a rule; at most one per rule.
    private let others = Mutex<[TLSSettings: TLSContextLoader]>([:])

    init(settings: TLSSettings) {
        self.settings = settings
        var usual = settings
        usual.hosts = TLSHostOverrides()
        self.usual = TLSContextLoader(settings: usual)
    }

    func context(for host: String, now: MonotonicTime = .now()) async throws(TransportError) -> TLSContext {
        try await loader(for: host).context(now: now).mapError(TransportError.tls).get()
    }

    private func loader(for host: String) -> TLSContextLoader {
        guard settings.hosts.rule(for: host) != nil else { return usual }
        let own = settings.settings(for: host)
        return others.withLock { others in
            let loader = others[own] ?? TLSContextLoader(settings: own)
            others[own] = loader
            return loader
        }
    }
}

/// Creates the TLS context for some settings when the first secure connection is opened, and a new one when a later
/// connection is opened after a file has changed. A context has its own sessions and verified chains, so none of them
/// outlives a file. Reading a bundle of roots takes milliseconds and blocks, so it runs on a worker thread, and so does
/// the check of the files; concurrent dials wait for the same result. A failure is not stored: the file may exist next
/// time.
private actor TLSContextLoader {
    private struct Loaded: Sendable {
        let context: TLSContext
        let files: [String]
        /// The versions of the files just before they were read; `nil` for those that do not exist.
        let versions: [SystemFile.Version?]

        /// Returns `former` unless one of its files has changed.
        static func load(_ settings: TLSSettings, replacing former: Loaded?) throws(TLSError) -> Loaded {
            let files = former?.files ?? settings.files
            let versions = files.map { SystemFile.Version(of: $0) }
            // A removed file is not a change: some programs remove a key after it was read.
            if let former, zip(former.versions, versions).allSatisfy({ $1 == nil || $0 == $1 }) { return former }
            return Loaded(context: try TLSContext(client: settings), files: files, versions: versions)
        }
    }

    /// The minimum time between two checks of the files.
    private static let interval = Duration.seconds(1)
    /// The time for which the former context is used if changed files cannot be: many programs replace a certificate
    /// and its key one after the other. It is short, because the former files may contain revoked authorities.
    private static let patience = Duration.seconds(10)

    private let settings: TLSSettings
    private var loading: Task<Result<TLSContext, TLSError>, Never>?
    private var loaded: Loaded?
    private var nextCheck = MonotonicTime(nanoseconds: 0)
    /// The time of the first of the failures since a context was loaded.
    private var failed: MonotonicTime?

    init(settings: TLSSettings) { self.settings = settings }

    func context(now: MonotonicTime) async -> Result<TLSContext, TLSError> {
        if let loading { return await loading.value }
        if let loaded, now < nextCheck { return .success(loaded.context) }
        // Unstructured, since several dials wait for it and none of them owns it.
        let task = Task { await self.load(now) }
        loading = task
        return await task.value
    }

    private func load(_ now: MonotonicTime) async -> Result<TLSContext, TLSError> {
        let result = await BlockingThreadPool.shared.run { [settings, loaded] in
            Result { () throws(TLSError) in try Loaded.load(settings, replacing: loaded) }
        }
        loading = nil
        switch result {
        case .success(let new):
            (loaded, failed) = (new, nil)
            nextCheck = new.files.isEmpty ? .distantFuture : now.advanced(by: TLSContextLoader.interval)
            return .success(new.context)
        case .failure(let error):
            let first = failed ?? now
            failed = first
            guard let loaded, now.since(first) < TLSContextLoader.patience else { return .failure(error) }
            nextCheck = now.advanced(by: TLSContextLoader.interval)
            return .success(loaded.context)
        }
    }
}
