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
    private let tls: TLSContextLoader
    /// Guards which addresses failed lately: read and written once a dial.
    private let memory = Mutex(AddressMemory<SocketAddress>())

    /// A dialer of its own.
    package init(settings: DialSettings, loop: EventLoop) {
        number = Dialer.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
        self.settings = settings
        self.loop = loop
        tls = TLSContextLoader(settings: settings.tls)
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
    ) async throws(DialError) -> Connected {
        let control = DialControl()
        let result: Result<Connected, DialError> = await withTaskCancellationHandler {
            do throws(DialError) {
                return .success(try await open(destination, until: deadline, control: control))
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
        _ destination: Destination, until deadline: MonotonicTime, control: DialControl
    ) async throws(DialError) -> Connected {
        var timings = DialTimings(start: MonotonicTime.now())
        if let connector = settings.connector {
            do throws(TransportError) {
                let stream = try await connector.connect(to: destination)
                timings.connected = MonotonicTime.now()
                return Connected(stream: stream, timings: timings)
            } catch {
                throw failure(.connecting, error, timings)
            }
        }
        let addresses: [SocketAddress]
        do throws(TransportError) {
            addresses = try await resolve(destination, until: deadline, timings: &timings)
        } catch {
            throw failure(.resolving, error, timings)
        }
        var context: TLSContext?
        if destination.isSecure {
            do throws(TLSError) {
                context = try await tls.context()
            } catch {
                throw failure(.securing, .tls(error), timings)
            }
        }
        if control.isCancelled { throw failure(.connecting, .interrupted, timings) }
        let race = ConnectRace(
            destination: destination, options: settings.socket, context: context, deadline: deadline,
            loop: loop,
            control: control)
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
        case .failure(let error): throw failure(outcome.phase, error, timings)
        }
    }

    private func failure(
        _ phase: DialError.Phase, _ cause: TransportError, _ timings: DialTimings
    ) -> DialError {
        DialError(phase: phase, cause: cause, elapsed: MonotonicTime.now().since(timings.start))
    }

    private func resolve(
        _ destination: Destination, until deadline: MonotonicTime, timings: inout DialTimings
    ) async throws(TransportError) -> [SocketAddress] {
        if let path = settings.unixSocketPath {
            guard let address = SocketAddress(unixPath: path) else {
                throw .resolution(
                    ResolutionError(host: path, message: "a socket's path has 1 to 107 bytes and no NUL"))
            }
            return [address]
        }
        var (host, port) = (destination.host, destination.port)
        if let redirection = settings.redirections.first(where: { $0.applies(to: host, port: port) }) {
            host = redirection.toHost ?? host
            port = redirection.toPort ?? port
        }
        if let given = settings.overrides[Endpoint(host: host, port: port)]
            ?? settings.overrides[Endpoint(host: "*", port: port)]
        {
            return given
        }
        if let literal = SocketAddress(literal: host, port: port) { return [literal] }
        let resolver = settings.resolver
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
        let outcome = await withTaskCancellationHandler {
            await answer.wait(until: deadline, on: loop)
        } onCancel: {
            answer.interrupt()
        }
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
