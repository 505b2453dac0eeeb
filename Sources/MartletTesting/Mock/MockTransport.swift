public import MartletCore
package import MartletTransport

/// A transport without sockets: every connection is a stream in memory, served by the code that serves
/// ``TestOrigin``.
///
/// Whatever host is asked for, the mock answers; `https` connections are not encrypted. Copies share
/// connections, ledger and signals; the connections end when the clients end them or ``stop()`` is called.
public struct MockTransport: Sendable {
    private let service: OriginService

    /// A transport whose requests a closure answers.
    public init(_ respond: @escaping OriginHandler.Respond) { self.init(handler: OriginHandler(respond)) }

    /// A transport whose requests a handler answers.
    public init(handler: OriginHandler, limits: OriginLimits = OriginLimits()) {
        service = OriginService(conduct: .handler(handler), limits: limits, context: nil)
    }

    /// A transport that plays scripts: the first connection the first one, and so on; those after the last
    /// one play the last one again.
    public init(scripts: ServerScript...) { self.init(scripts: scripts) }

    /// A transport that plays scripts made elsewhere; else as ``init(scripts:)-(ServerScript...)``.
    public init(scripts: [ServerScript]) {
        service = OriginService(
            conduct: OriginConduct(scripts: scripts), limits: OriginLimits(), context: nil)
    }

    /// What happened so far.
    public var ledger: OriginLedger { service.ledger }

    /// The signals of scripts and handlers.
    public var signals: OriginSignals { service.signals }

    /// Ends all connections and waits until their handlers are over; later ones end at once.
    public func stop() async { await service.stop() }
}

extension MockTransport: StreamConnector {
    /// The client's end of a new stream in memory.
    package func connect(to destination: Destination) async throws(TransportError) -> any ByteStream {
        let loop: EventLoop
        do throws(SystemError) {
            loop = try EventLoop.shared.get()
        } catch {
            throw .system(error)
        }
        let (client, server) = MemoryStream.pair(loop: loop)
        service.take(server)
        return client
    }
}

extension SessionConfiguration {
    /// A configuration whose sessions connect to a mock transport and to nothing else.
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

    /// Makes sessions of this configuration connect to a mock transport and to nothing else.
    public mutating func connect(to transport: MockTransport) { connector = transport }
}
