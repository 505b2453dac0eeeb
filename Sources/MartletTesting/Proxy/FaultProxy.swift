import FoundationEssentials
import MartletTransport
import Synchronization

/// A proxy on loopback that passes connections on to an origin, and spoils some of the responses on their way.
///
/// It knows nothing of HTTP: what an origin sends from the client's bytes on until the client speaks again counts as a
/// response, so it stands before TLS as well as before plain connections, and a piece of a handshake is then a response
/// too. Which responses meet which fault follows from ``seed`` and from the order of connections and responses.
///
/// ```swift
/// try await FaultProxy.withProxy(before: origin, FaultOptions(.stormy)) { proxy in
///     let exchange = try await session.get(proxy.url("/hello"))
/// }
/// ```
public final class FaultProxy: Sendable, CustomStringConvertible {
    /// The parts that the proxy's tasks share; they hold no reference to the proxy itself.
    private final class Shared: Sendable {
        let register = ConnectionRegister()
        /// Guards the counts: accepting task, connections' tasks, whoever looks.
        let counts = Mutex(FaultCounts())
    }

    /// The seed of all faults; given again, the same ones happen again.
    public let seed: UInt64
    /// Which faults it makes.
    public let options: FaultOptions
    /// `http` or `https`, as the origin.
    public let scheme: String

    private let listener: Listener
    private let shared: Shared
    private let accepting: Task<Void, Never>
    private let originName: String

    // MARK: Starting

    /// Starts a proxy before a test origin.
    /// - Parameter seed: `nil` takes the number in the environment variable `MARTLET_FAULT_SEED`, else a random one.
    /// - Throws: ``OriginError``.
    public static func start(
        before origin: TestOrigin, _ options: FaultOptions, seed: UInt64? = nil
    ) throws(OriginError) -> FaultProxy {
        var settings = DialSettings()
        if origin.socketAddress.family == .unix { settings.unixSocketPath = origin.address }
        let host = origin.socketAddress.family == .ipv6 ? "::1" : "127.0.0.1"
        return try FaultProxy(
            Destination(isSecure: false, host: host, port: max(1, origin.port)), settings,
            scheme: origin.scheme, options, seed: seed)
    }

    /// Starts a proxy before any origin.
    /// - Parameters:
    ///   - host: A name, or an address without brackets.
    ///   - port: 1–65535.
    ///   - scheme: What the proxy's URLs begin with: `http` or `https`.
    ///   - seed: As for a test origin.
    /// - Throws: ``OriginError``.
    public static func start(
        beforeHost host: String, port: Int, scheme: String = "http", _ options: FaultOptions,
        seed: UInt64? = nil
    ) throws(OriginError) -> FaultProxy {
        guard !host.isEmpty, (1...65535).contains(port) else { throw .invalidAddress("\(host) port \(port)") }
        return try FaultProxy(
            Destination(isSecure: false, host: host, port: port), DialSettings(), scheme: scheme, options,
            seed: seed)
    }

    private init(
        _ destination: Destination, _ settings: DialSettings, scheme: String, _ options: FaultOptions,
        seed: UInt64?
    ) throws(OriginError) {
        let seed = seed ?? FaultProxy.environmentSeed ?? UInt64.random(in: .min ... .max)
        guard let address = SocketAddress(literal: "127.0.0.1", port: 0) else {
            throw .invalidAddress("127.0.0.1")
        }
        let loop: EventLoop
        let listener: Listener
        do throws(SystemError) {
            loop = try EventLoop.shared.get()
            listener = try Listener(address: address, loop: loop)
        } catch {
            throw .cannotListen("a fault proxy on \(address): \(error)")
        }
        let shared = Shared()
        self.seed = seed
        self.options = options
        self.scheme = scheme
        self.listener = listener
        self.shared = shared
        originName = settings.unixSocketPath ?? "\(destination.host) port \(destination.port)"
        let dialer = Dialer(settings: settings, loop: loop)
        // Unstructured, since it lives until the proxy stops; it holds no reference to the proxy.
        accepting = Task {
            await listener.acceptAll(on: loop) { socket in
                FaultProxy.take(socket, shared, dialer, destination, options, seed)
            }
        }
    }

    deinit {
        listener.close()
        accepting.cancel()
        shared.register.endAll(isFinal: true)
    }

    private static var environmentSeed: UInt64? {
        ProcessInfo.processInfo.environment["MARTLET_FAULT_SEED"].flatMap { UInt64($0) }
    }

    /// Runs a closure beside a proxy, and stops the proxy whatever happens. When the closure throws, the proxy's seed is
    /// printed, so that the failure can be repeated.
    /// - Returns: What the closure returns.
    /// - Throws: ``OriginError`` when the proxy cannot start, else what the closure throws.
    @discardableResult
    public static func withProxy<Value>(
        before origin: TestOrigin, _ options: FaultOptions, seed: UInt64? = nil,
        run body: (FaultProxy) async throws -> Value
    ) async throws -> Value {
        let proxy = try start(before: origin, options, seed: seed)
        do {
            let value = try await body(proxy)
            await proxy.stop()
            return value
        } catch {
            print("\(proxy): failed; MARTLET_FAULT_SEED=\(proxy.seed) repeats it")
            await proxy.stop()
            throw error
        }
    }

    // MARK: Connections

    private static func take(
        _ socket: Socket, _ shared: Shared, _ dialer: Dialer, _ destination: Destination,
        _ options: FaultOptions, _ seed: UInt64
    ) {
        let number = shared.counts.withLock { counts in
            counts.connections += 1
            counts.openConnections += 1
            return counts.connections
        }
        let isTaken = shared.register.start(number, end: { socket.close() }) {
            let machine = FaultMachine(options: options, seed: seed, connection: number)
            await serve(socket, number, shared, dialer, destination, options, machine)
            shared.counts.withLock { $0.openConnections -= 1 }
        }
        if !isTaken { shared.counts.withLock { $0.openConnections -= 1 } }
    }

    private static func serve(
        _ socket: Socket, _ number: Int, _ shared: Shared, _ dialer: Dialer, _ destination: Destination,
        _ options: FaultOptions, _ machine: FaultMachine
    ) async {
        let client = PlainStream(socket: socket, remoteAddress: nil)
        let origin: any ByteStream
        do throws(DialError) {
            let deadline = MonotonicTime.now().advanced(by: .seconds(120))
            origin = try await dialer.dial(destination, until: deadline).stream
        } catch {
            shared.counts.withLock { $0.unreachable += 1 }
            return client.reset()
        }
        let connection = ProxyConnection(client: client, origin: origin, options: options, machine: machine) {
            change in shared.counts.withLock { change(&$0) }
        }
        shared.register.setEnd(of: number) { connection.end() }
        await connection.run()
    }

    // MARK: Ending

    /// Stops listening, ends all connections, and waits until every descriptor is closed. Stopping twice is stopping once.
    public func stop() async {
        listener.close()
        accepting.cancel()
        await accepting.value
        await shared.register.stop()
    }

    /// Ends every open connection at once and goes on listening.
    public func endConnections() { shared.register.endAll() }

    // MARK: Looking

    /// What it has done so far.
    public var counts: FaultCounts { shared.counts.withLock { $0 } }

    /// The port it listens on.
    public var port: Int { listener.address.port ?? 0 }

    /// The address it listens on: `127.0.0.1:49152`.
    public var address: String { listener.address.description }

    /// The URL of a path of the origin, by way of the proxy.
    /// - Parameter path: What follows the authority, sent as it is; a missing first slash is added.
    public func url(_ path: String = "/") -> String {
        "\(scheme)://\(address)" + (path.hasPrefix("/") ? path : "/\(path)")
    }

    /// Where it is, what it stands before, and its seed.
    public var description: String { "fault proxy \(address) before \(originName), seed \(seed)" }
}
