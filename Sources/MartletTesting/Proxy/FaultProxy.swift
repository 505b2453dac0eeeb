import FoundationEssentials
import MartletTransport
import Synchronization

/// A proxy on loopback that forwards connections to an origin, and injects faults into some of the responses.
///
/// It is independent of HTTP: all bytes of the origin between two sends of the client count as one response. So it
/// works for TLS, too, where pieces of the handshake also count as responses. ``seed`` and the order of connections and
/// responses determine the faults.
///
/// ```swift
/// try await FaultProxy.withProxy(before: origin, FaultOptions(.stormy)) { proxy in
///     let exchange = try await session.get(proxy.url("/hello"))
/// }
/// ```
public final class FaultProxy: Sendable, CustomStringConvertible {
    /// The state that the proxy's tasks share; it holds no reference to the proxy itself.
    private final class Shared: Sendable {
        let register = ConnectionRegister()
        /// Guards the counts: accepting task, connections' tasks, readers.
        let counts = Mutex(FaultCounts())
        let dialer: Dialer
        let destination: Destination
        let options: FaultOptions
        let seed: UInt64

        init(_ dialer: Dialer, _ destination: Destination, _ options: FaultOptions, seed: UInt64) {
            (self.dialer, self.destination, self.options, self.seed) = (dialer, destination, options, seed)
        }

        func accept(_ socket: Socket) {
            let number = counts.withLock { counts in
                counts.connections += 1
                counts.openConnections += 1
                return counts.connections
            }
            let isStarted = register.start(number, end: { socket.close() }) {
                await self.serve(socket, number)
                self.counts.withLock { $0.openConnections -= 1 }
            }
            if !isStarted { counts.withLock { $0.openConnections -= 1 } }
        }

        private func serve(_ socket: Socket, _ number: Int) async {
            let client = PlainStream(socket: socket, remoteAddress: nil)
            let origin: any ByteStream
            do throws(DialError) {
                let deadline = MonotonicTime.now().advanced(by: .seconds(120))
                origin = try await dialer.dial(destination, until: deadline).stream
            } catch {
                counts.withLock { $0.unreachable += 1 }
                return client.reset()
            }
            let machine = FaultMachine(options: options, seed: seed, connection: number)
            let connection = ProxyConnection(client: client, origin: origin, options: options, machine: machine) {
                change in self.counts.withLock { change(&$0) }
            }
            register.setEnd(of: number) { connection.end() }
            await connection.run()
        }
    }

    /// The scheme of the origin: `http` or `https`.
    public let scheme: String
    private let shared: Shared
    private let server: LoopbackServer
    private let originName: String

    // MARK: Starting

    /// Starts a proxy for a test origin.
    /// - Parameters:
    ///   - origin: The origin that requests are forwarded to.
    ///   - options: The faults and their percentages.
    ///   - seed: The seed; `nil` for the number in the environment variable `MARTLET_FAULT_SEED`, else a random
    ///   one.
    /// - Throws: ``OriginError``.
    public static func start(before origin: TestOrigin, _ options: FaultOptions, seed: UInt64? = nil)
        throws(OriginError) -> FaultProxy
    {
        var settings = DialSettings()
        let address = origin.socketAddress
        if address.family == .unix { settings.unixSocketPath = address.host }
        // With a path, neither the host nor the port is used.
        let host = address.family == .unix ? "localhost" : address.host
        return try FaultProxy(
            Destination(isSecure: false, host: host, port: max(1, origin.port)), settings, scheme: origin.scheme,
            options, seed: seed)
    }

    /// Starts a proxy for any origin.
    /// - Parameters:
    ///   - host: A name, or an address without brackets.
    ///   - port: 1–65535.
    ///   - scheme: The scheme of the proxy's URLs: `http` or `https`.
    ///   - options: The faults and their percentages.
    ///   - seed: The seed; see ``start(before:_:seed:)``.
    /// - Throws: ``OriginError``.
    public static func start(
        beforeHost host: String, port: Int, scheme: String = "http", _ options: FaultOptions, seed: UInt64? = nil
    ) throws(OriginError) -> FaultProxy {
        guard !host.isEmpty, (1...65535).contains(port) else { throw .invalidAddress("\(host) port \(port)") }
        return try FaultProxy(
            Destination(isSecure: false, host: host, port: port), DialSettings(), scheme: scheme, options, seed: seed)
    }

    private init(
        _ destination: Destination, _ settings: DialSettings, scheme: String, _ options: FaultOptions, seed: UInt64?
    ) throws(OriginError) {
        let environment = ProcessInfo.processInfo.environment["MARTLET_FAULT_SEED"].flatMap { UInt64($0) }
        guard let address = SocketAddress(literal: "127.0.0.1", port: 0) else { throw .invalidAddress("127.0.0.1") }
        let shared = Shared(
            Dialer(settings: settings, loop: .sharedOrStalled), destination, options,
            seed: seed ?? environment ?? UInt64.random(in: .min ... .max))
        (self.scheme, self.shared) = (scheme, shared)
        originName = settings.unixSocketPath ?? "\(destination.host) port \(destination.port)"
        server = try LoopbackServer("a fault proxy on ", on: address) { shared.accept($0) }
    }

    deinit {
        server.close()
        shared.register.endAll(isFinal: true)
    }

    /// Runs a closure with a proxy, and then stops the proxy. If the closure throws, the seed is printed, so that the
    /// failure can be repeated.
    /// - Returns: The closure's result.
    /// - Throws: ``OriginError`` if the proxy cannot start; the closure's error.
    @discardableResult public static func withProxy<Value>(
        before origin: TestOrigin, _ options: FaultOptions, seed: UInt64? = nil,
        run body: (FaultProxy) async throws -> Value
    ) async throws -> Value {
        let proxy = try start(before: origin, options, seed: seed)
        return try await runThenEnd({ try await body(proxy) }) { hasFailed in
            if hasFailed { print("\(proxy): failed; set MARTLET_FAULT_SEED=\(proxy.seed) to repeat the faults") }
            await proxy.stop()
        }
    }

    // MARK: Ending

    /// Stops listening, ends all connections, and waits until every descriptor is closed. Stopping again has no effect.
    public func stop() async {
        await server.stop()
        await shared.register.stop()
    }

    /// Ends every open connection immediately and continues to listen.
    public func closeAllConnections() { shared.register.endAll() }

    // MARK: Inspecting

    /// The seed of all faults; the same seed repeats the same faults.
    public var seed: UInt64 { shared.seed }

    /// The options of the faults.
    public var options: FaultOptions { shared.options }

    /// The counts so far.
    public var counts: FaultCounts { shared.counts.withLock { $0 } }

    /// The port that the proxy listens on.
    public var port: Int { server.address.port ?? 0 }

    /// The address that the proxy listens on: `127.0.0.1:49152`.
    public var address: String { server.address.description }

    /// The URL of a path of the origin, through the proxy.
    /// - Parameter path: The part after the authority, sent unchanged; a missing first slash is added.
    public func url(_ path: String = "/") -> String {
        "\(scheme)://\(address)" + (path.hasPrefix("/") ? path : "/\(path)")
    }

    /// The proxy's address, its origin, and its seed.
    public var description: String { "fault proxy \(address) before \(originName), seed \(seed)" }
}
