public import MartletCore

/// A transport without sockets: every connection is a stream in memory, served by the code that serves ``TestOrigin``.
///
/// The mock responds for every host; `https` connections are not encrypted. Copies share connections, recorder and
/// signals. The connections end when the clients end them or ``stop()`` is called.
public struct MockTransport: TestServer {
    private let service: OriginService

    /// Creates a transport whose requests are passed to a closure.
    public init(_ respond: @escaping OriginHandler.Respond) { self.init(handler: OriginHandler(respond)) }

    /// Creates a transport whose requests are passed to a handler.
    public init(handler: OriginHandler, limits: OriginLimits = OriginLimits()) {
        service = OriginService(behavior: .handler(handler), limits: limits, context: nil)
    }

    /// Creates a transport that plays scripts: the first connection the first one, and so on; the last script repeats.
    public init(scripts: ServerScript...) { self.init(scripts: scripts) }

    /// Creates a transport that plays an array of scripts; see ``init(scripts:)-(ServerScript...)``.
    public init(scripts: [ServerScript]) {
        service = OriginService(behavior: OriginBehavior(scripts: scripts), limits: OriginLimits(), context: nil)
    }

    // MARK: Scoped use

    /// Runs a closure with a mock whose requests are passed to a handler. The mock is stopped even if the closure
    /// throws.
    /// - Returns: The closure's result.
    /// - Throws: The closure's error.
    @discardableResult public static func withMock<Value>(
        handler: OriginHandler, limits: OriginLimits = OriginLimits(), run body: (MockTransport) async throws -> Value
    ) async throws -> Value { try await MockTransport(handler: handler, limits: limits).running(body) }

    /// Runs a closure with a mock whose requests are passed to another closure; see ``withMock(handler:limits:run:)``.
    @discardableResult public static func withMock<Value>(
        respond: @escaping OriginHandler.Respond, run body: (MockTransport) async throws -> Value
    ) async throws -> Value { try await MockTransport(respond).running(body) }

    /// Runs a closure with a mock that plays scripts; see ``init(scripts:)-(ServerScript...)``.
    @discardableResult public static func withMock<Value>(
        scripts: ServerScript..., run body: (MockTransport) async throws -> Value
    ) async throws -> Value { try await MockTransport(scripts: scripts).running(body) }

    // MARK: Inspecting

    /// Scheme and authority of ``TestServer/url(_:)``: `http://mock.test`. The mock also responds for other hosts.
    public var base: String { "http://mock.test" }

    /// The counts, requests and transcripts so far.
    public var recorder: OriginRecorder { service.recorder }

    /// The signals of scripts and handlers.
    public var signals: OriginSignals { service.signals }

    // MARK: Stopping

    /// Ends every open connection immediately, as a server that restarts does.
    public func closeAllConnections() { service.register.endAll() }

    /// Ends all connections and waits until their handlers have ended; later connections end immediately.
    public func stop() async { await service.register.stop() }
}

extension MockTransport: StreamConnector {
    /// The client's end of a new stream in memory.
    package func connect(to destination: Destination) async throws(TransportError) -> any ByteStream {
        let loop = EventLoop.shared.mapError { TransportError.system($0) }
        let (client, server) = MemoryStream.pair(loop: try loop.get())
        service.accept(server, isSecure: destination.isSecure)
        return client
    }
}

extension SessionConfiguration {
    /// A configuration whose sessions connect only to a mock transport.
    ///
    /// ```swift
    /// let mock = MockTransport { request in .text("Hello, \(request.path)") }
    /// let session = HTTPSession(configuration: .mock(mock))
    /// ```
    public static func mock(_ transport: MockTransport) -> SessionConfiguration {
        var configuration = SessionConfiguration.ephemeral
        configuration.connect(to: transport)
        return configuration
    }

    /// Makes sessions of this configuration connect only to a mock transport.
    public mutating func connect(to transport: MockTransport) { connector = transport }
}
