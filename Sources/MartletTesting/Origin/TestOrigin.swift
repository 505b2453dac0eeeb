import FoundationEssentials
package import MartletTransport

/// An HTTP/1.1 origin on loopback for tests: real sockets, plain or over TLS, with handlers or misbehaving scripts.
///
/// ```swift
/// try await TestOrigin.withOrigin(.plain) { request in
///     .text("You asked for \(request.path)")
/// } run: { origin in
///     let response = try await session.get(origin.url("/hello"))
/// }
/// ```
public final class TestOrigin: TestServer {
    private let server: LoopbackServer
    private let service: OriginService
    private let socketPath: String?
    /// The temporary certificates; `nil` for a plain origin.
    public let credentials: OriginCredentials?

    // MARK: Starting

    /// Starts an origin whose requests are passed to a handler.
    /// - Throws: ``OriginError``.
    public static func start(_ options: OriginOptions = .plain, handler: OriginHandler) async throws -> TestOrigin {
        try await TestOrigin(options, behavior: .handler(handler))
    }

    /// Starts an origin whose requests are passed to a closure; see ``OriginHandler/Respond``.
    /// - Throws: ``OriginError``.
    public static func start(_ options: OriginOptions = .plain, respond: @escaping OriginHandler.Respond) async throws
        -> TestOrigin
    { try await start(options, handler: OriginHandler(respond)) }

    /// Starts an origin that plays scripts: the first connection the first one, and so on; the last script repeats.
    /// - Throws: ``OriginError``.
    public static func start(_ options: OriginOptions = .plain, scripts: [ServerScript]) async throws -> TestOrigin {
        try await TestOrigin(options, behavior: OriginBehavior(scripts: scripts))
    }

    private init(_ options: OriginOptions, behavior: OriginBehavior) async throws {
        let address = try TestOrigin.address(of: options.binding)
        if let tls = options.tls {
            do throws(TLSError) {
                credentials = try await BlockingThreadPool.shared.run(throwing: { () throws(TLSError) in
                    try OriginCredentials(tls)
                })
            } catch { throw OriginError.certificates("\(error)") }
        } else {
            credentials = nil
        }
        let service = OriginService(
            behavior: behavior, limits: options.limits, context: credentials?.context, log: options.log)
        self.service = service
        server = try LoopbackServer(on: address) { service.accept($0) }
        socketPath = if case .unix(let path) = options.binding, !path.hasPrefix("@") { path } else { nil }
    }

    deinit {
        server.close()
        service.register.endAll()
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

    /// Runs a closure with an origin whose requests are passed to a handler. The origin is stopped even if the closure
    /// throws.
    /// - Returns: The closure's result.
    /// - Throws: ``OriginError`` if the origin cannot start; the closure's error.
    @discardableResult public static func withOrigin<Value>(
        _ options: OriginOptions = .plain, handler: OriginHandler, run body: (TestOrigin) async throws -> Value
    ) async throws -> Value { try await start(options, handler: handler).running(body) }

    /// Runs a closure with an origin whose requests are passed to another closure; see ``withOrigin(_:handler:run:)``.
    @discardableResult public static func withOrigin<Value>(
        _ options: OriginOptions = .plain, respond: @escaping OriginHandler.Respond,
        run body: (TestOrigin) async throws -> Value
    ) async throws -> Value { try await withOrigin(options, handler: OriginHandler(respond), run: body) }

    /// Runs a closure with an origin that plays scripts; see ``start(_:scripts:)`` and ``withOrigin(_:handler:run:)``.
    @discardableResult public static func withOrigin<Value>(
        _ options: OriginOptions = .plain, scripts: ServerScript..., run body: (TestOrigin) async throws -> Value
    ) async throws -> Value { try await withOrigin(options, scripts: scripts, run: body) }

    /// Runs a closure with an origin that plays an array of scripts; see ``start(_:scripts:)``.
    @discardableResult public static func withOrigin<Value>(
        _ options: OriginOptions = .plain, scripts: [ServerScript], run body: (TestOrigin) async throws -> Value
    ) async throws -> Value { try await start(options, scripts: scripts).running(body) }

    // MARK: Stopping

    /// Stops listening, ends all connections immediately, and waits until every descriptor is closed.
    ///
    /// A handler that ignores its cancellation delays the return. Stopping again has no effect.
    public func stop() async {
        await server.stop()
        await service.register.stop()
        removeSocketFile()
    }

    /// Ends every open connection immediately, as a server that restarts does, and continues to listen.
    public func closeAllConnections() { service.register.endAll() }

    private func removeSocketFile() {
        guard let socketPath else { return }
        // Already removed if the origin is stopped twice.
        try? FileManager.default.removeItem(atPath: socketPath)
    }

    // MARK: Inspecting

    /// The address that the origin listens on.
    package var socketAddress: SocketAddress { server.address }

    /// The port that the origin listens on; 0 for a Unix domain socket.
    public var port: Int { socketAddress.port ?? 0 }

    /// The address that the origin listens on: `127.0.0.1:49152`, `[::1]:49152`, or the path of a Unix domain socket.
    public var address: String { socketAddress.description }

    /// The scheme of the origin's URLs: `http` or `https`.
    public var scheme: String { credentials == nil ? "http" : "https" }

    /// Scheme and authority: `http://127.0.0.1:49152`; for a Unix domain socket `http://localhost`.
    public var base: String { socketAddress.family == .unix ? "\(scheme)://localhost" : "\(scheme)://\(socketAddress)" }

    /// The counts, requests and transcripts so far.
    public var recorder: OriginRecorder { service.recorder }

    /// The signals of scripts and handlers.
    public var signals: OriginSignals { service.signals }

    /// The certificate of the origin's authority in PEM, for clients to trust; `nil` for a plain origin.
    public var authorityPEM: String? { credentials?.authorityPEM }
}
