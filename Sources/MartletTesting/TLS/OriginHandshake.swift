import MartletTransport

/// Turns an accepted socket into the stream that requests come on: the one place that opens TLS.
struct OriginHandshake: Sendable {
    /// A stream and what is known of its client.
    struct Opened: Sendable {
        let stream: any ByteStream
        let peer: OriginPeer
    }

    /// `nil`: the origin is plain.
    let context: TLSContext?
    let timeout: Duration

    /// Accepts TLS where the origin speaks it; the socket is closed when that fails.
    func open(_ socket: Socket, number: Int) async throws(TransportError) -> Opened {
        guard let context else {
            let stream = PlainStream(socket: socket, remoteAddress: socket.remoteAddress)
            return Opened(
                stream: stream, peer: OriginHandshake.peer(number, stream.information, serverName: nil))
        }
        let stream = try await TLSStream.accept(
            socket: socket, remoteAddress: socket.remoteAddress, context: context,
            deadline: MonotonicTime.now().advanced(by: timeout))
        return Opened(
            stream: stream,
            peer: OriginHandshake.peer(number, stream.information, serverName: stream.requestedServerName))
    }

    /// What is known of a connection.
    static func peer(
        _ number: Int, _ information: ConnectionInformation, serverName: String?
    ) -> OriginPeer {
        OriginPeer(
            number: number, remoteAddress: information.remoteAddress, tlsVersion: information.tls?.version,
            isResumed: information.tls?.isResumed ?? false,
            applicationProtocol: information.tls?.applicationProtocol, serverName: serverName,
            clientCertificate: information.tls?.peerCertificate ?? [])
    }
}
