import FoundationEssentials
package import MartletTransport

/// An HTTP/1.1 origin on loopback, for tests: real sockets, plain or TLS, with handlers that answer or
/// scripts that misbehave.
///
/// ```swift
/// try await TestOrigin.withOrigin(.plain) { request in
///     .text("You asked for \(request.path)")
/// } run: { origin in
///     let answer = try await session.get(origin.url("/hello"))
/// }
/// ```
public final class TestOrigin: Sendable {
    private let listener: Listener
    private let service: OriginService
    private let accepting: Task<Void, Never>
    private let socketPath: String?
    /// The address it listens on.
    package let socketAddress: SocketAddress
    /// Its throw-away certificates; `nil` when it is plain.
    public let credentials: OriginCredentials?

    // MARK: Starting

    /// Starts an origin whose requests a handler answers.
    /// - Throws: ``OriginError``.
    public static func start(
        _ options: OriginOptions = .plain, handler: OriginHandler
    ) async throws -> TestOrigin { try await TestOrigin(options, conduct: .handler(handler)) }

    /// Starts an origin whose requests a closure answers; see ``OriginHandler/Respond``.
    /// - Throws: ``OriginError``.
    public static func start(
        _ options: OriginOptions = .plain, respond: @escaping OriginHandler.Respond
    ) async throws -> TestOrigin { try await start(options, handler: OriginHandler(respond)) }

    /// Starts an origin that plays scripts: the first connection the first one, and so on; those after the
    /// last one play the last one again.
    /// - Throws: ``OriginError``.
    public static func start(
        _ options: OriginOptions = .plain, scripts: [ServerScript]
    ) async throws -> TestOrigin { try await TestOrigin(options, conduct: OriginConduct(scripts: scripts)) }

    private init(_ options: OriginOptions, conduct: OriginConduct) async throws {
        let address = try TestOrigin.address(of: options.binding)
        if let tls = options.tls {
            let made = await BlockingWorkers.shared.run { () -> Result<OriginCredentials, OriginError> in
                do throws(TLSError) {
                    return .success(try OriginCredentials(tls))
                } catch {
                    return .failure(.certificates("\(error)"))
                }
            }
            credentials = try made.get()
        } else {
            credentials = nil
        }
        let service = OriginService(conduct: conduct, limits: options.limits, context: credentials?.context)
        let listener: Listener
        let loop: EventLoop
        do throws(SystemError) {
            loop = try EventLoop.shared.get()
            listener = try Listener(address: address, loop: loop)
        } catch {
            throw OriginError.cannotListen("\(address): \(error)")
        }
        self.listener = listener
        self.service = service
        socketAddress = listener.address
        socketPath = if case .unix(let path) = options.binding, !path.hasPrefix("@") { path } else { nil }
        // Unstructured, since it lives until the origin stops; it holds no reference to the origin.
        accepting = Task { await listener.acceptAll(on: loop) { service.take($0) } }
    }

    deinit {
        listener.close()
        accepting.cancel()
        service.endConnections()
        removeSocketFile()
    }

    private static func address(of binding: OriginOptions.Binding) throws(OriginError) -> SocketAddress {
        let (address, text) =
            switch binding {
            case .ipv4(let port): (SocketAddress(literal: "127.0.0.1", port: port), "127.0.0.1:\(port)")
            case .ipv6(let port): (SocketAddress(literal: "::1", port: port), "[::1]:\(port)")
            case .unix(let path): (SocketAddress(unixPath: path), path)
            case .address(let literal, let port):
                (SocketAddress(literal: literal, port: port), "\(literal) port \(port)")
            }
        guard let address else { throw .invalidAddress(text) }
        return address
    }

    // MARK: Scoped use

    /// Runs a closure beside an origin whose requests a handler answers, and stops the origin whatever
    /// happens.
    /// - Returns: What the closure returns.
    /// - Throws: ``OriginError`` when the origin cannot start, else what the closure throws.
    @discardableResult
    public static func withOrigin<Value>(
        _ options: OriginOptions = .plain, handler: OriginHandler,
        run body: (TestOrigin) async throws -> Value
    ) async throws -> Value { try await running(try await start(options, handler: handler), body) }

    /// Runs a closure beside an origin whose requests another closure answers; else as
    /// ``withOrigin(_:handler:run:)``.
    @discardableResult
    public static func withOrigin<Value>(
        _ options: OriginOptions = .plain, respond: @escaping OriginHandler.Respond,
        run body: (TestOrigin) async throws -> Value
    ) async throws -> Value { try await running(try await start(options, respond: respond), body) }

    /// Runs a closure beside an origin that plays scripts, as ``start(_:scripts:)`` tells; else as
    /// ``withOrigin(_:handler:run:)``.
    @discardableResult
    public static func withOrigin<Value>(
        _ options: OriginOptions = .plain, scripts: ServerScript...,
        run body: (TestOrigin) async throws -> Value
    ) async throws -> Value { try await running(try await start(options, scripts: scripts), body) }

    private static func running<Value>(
        _ origin: TestOrigin, _ body: (TestOrigin) async throws -> Value
    ) async throws -> Value {
        do {
            let value = try await body(origin)
            await origin.stop()
            return value
        } catch {
            await origin.stop()
            throw error
        }
    }

    // MARK: Stopping

    /// Stops listening, ends all connections whatever they are doing, and waits until every descriptor is
    /// closed.
    ///
    /// A handler that ignores its being cancelled is waited for. Stopping twice is stopping once.
    public func stop() async {
        listener.close()
        accepting.cancel()
        await accepting.value
        await service.stop()
        removeSocketFile()
    }

    /// Ends every open connection at once, as a server that restarts does, and goes on listening.
    public func endConnections() { service.endConnections() }

    private func removeSocketFile() {
        guard let socketPath else { return }
        // Gone already when the origin is stopped twice.
        try? FileManager.default.removeItem(atPath: socketPath)
    }

    // MARK: Looking

    /// The port it listens on; 0 for a unix domain socket.
    public var port: Int { socketAddress.port ?? 0 }

    /// The address it listens on: `127.0.0.1:49152`, `[::1]:49152`, or the path of a unix domain socket.
    public var address: String { socketAddress.description }

    /// `http` or `https`.
    public var scheme: String { credentials == nil ? "http" : "https" }

    /// Scheme and authority: `http://127.0.0.1:49152`; for a unix domain socket `http://localhost`.
    public var base: String {
        socketAddress.family == .unix ? "\(scheme)://localhost" : "\(scheme)://\(socketAddress)"
    }

    /// The URL of a path.
    /// - Parameter path: What follows the authority, sent as it is; a missing first slash is added.
    public func url(_ path: String = "/") -> String { path.hasPrefix("/") ? base + path : "\(base)/\(path)" }

    /// What happened so far.
    public var ledger: OriginLedger { service.ledger }

    /// The signals of scripts and handlers.
    public var signals: OriginSignals { service.signals }

    /// The certificate of the origin's authority in PEM, which clients are told to trust; `nil` when it is
    /// plain.
    public var authorityPEM: String? { credentials?.authorityPEM }

    /// The heads of the requests so far; see ``OriginLedger/requests``.
    public var requests: [RecordedRequest] { ledger.requests }

    /// How many connections were accepted so far.
    public var connectionCount: Int { ledger.counts.connections }

    /// How many connections are open.
    public var openConnectionCount: Int { ledger.counts.openConnections }

    /// Waits for requests; see ``OriginLedger/waitForRequests(count:within:)``.
    @discardableResult
    public func waitForRequests(
        count: Int, within limit: Duration = .seconds(120)
    ) async throws -> [RecordedRequest] { try await ledger.waitForRequests(count: count, within: limit) }
}
