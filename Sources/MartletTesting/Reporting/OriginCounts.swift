/// What a test origin has counted so far.
public struct OriginCounts: Sendable, Hashable {
    /// Connections accepted since the start; one whose TLS handshake failed counts too.
    public internal(set) var connections = 0
    /// Connections open now.
    public internal(set) var openConnections = 0
    /// TLS handshakes that failed, as when the client refused the certificate.
    public internal(set) var failedHandshakes = 0
    /// Request heads received.
    public internal(set) var requests = 0
    /// Responses sent to their last byte.
    public internal(set) var responses = 0
    /// Bytes received, heads included and TLS's own excluded.
    public internal(set) var bytesReceived: UInt64 = 0
    /// Bytes handed to the system to send; counted as the bytes received.
    public internal(set) var bytesSent: UInt64 = 0
}
