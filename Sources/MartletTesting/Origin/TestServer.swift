/// A server for tests: a ``TestOrigin`` on loopback or a ``MockTransport`` in memory. A helper that takes
/// `some TestServer` works with both.
public protocol TestServer: Sendable {
    /// Scheme and authority of the server's URLs.
    var base: String { get }
    /// The counts, requests and transcripts so far.
    var recorder: OriginRecorder { get }
    /// The signals of scripts and handlers.
    var signals: OriginSignals { get }
    /// Ends every open connection immediately, and continues to accept others.
    func closeAllConnections()
    /// Ends all connections and waits until their handlers have ended.
    func stop() async
}

extension TestServer {
    /// The URL of a path.
    /// - Parameter path: The part after the authority, sent unchanged; a missing first slash is added.
    public func url(_ path: String = "/") -> String { path.hasPrefix("/") ? base + path : "\(base)/\(path)" }

    /// The requests so far; see ``OriginRecorder/requests``.
    public var requests: [RecordedRequest] { recorder.requests }

    /// The number of connections accepted so far.
    public var connectionCount: Int { recorder.counts.connections }

    /// The number of open connections.
    public var openConnectionCount: Int { recorder.counts.openConnections }

    /// Waits for requests; see ``OriginRecorder/waitForRequests(count:within:)``.
    @discardableResult public func waitForRequests(count: Int, within limit: Duration = .seconds(120)) async throws
        -> [RecordedRequest]
    { try await recorder.waitForRequests(count: count, within: limit) }

    /// Runs a closure with the server, and then stops it, even if the closure throws.
    func running<Value>(_ body: (Self) async throws -> Value) async throws -> Value {
        try await runThenEnd({ try await body(self) }, end: { _ in await stop() })
    }
}
