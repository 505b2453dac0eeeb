/// Connects in place of the network: what a mock transport is, seen from below.
package protocol StreamConnector: Sendable {
    /// Opens a stream to a destination. TLS, where the destination wants it, is the connector's business.
    func connect(to destination: Destination) async throws(TransportError) -> any ByteStream
}
