import MartletTransport
import Synchronization

/// A stream with a local address that the test chooses.
final class AddressedStream: ForwardingStream {
    let stream: any ByteStream
    let information: ConnectionInformation

    init(_ stream: any ByteStream, localAddress: String) {
        self.stream = stream
        information = ConnectionInformation(remoteAddress: "192.0.2.80:80", localAddress: localAddress)
    }
}

/// Connects to a mock transport from the given local addresses in order; the last address is repeated.
final class AddressedConnector: StreamConnector {
    private let connector: any StreamConnector
    private let addresses: Mutex<[String]>
    private let gate: (@Sendable () async -> Void)?

    /// - Parameter gate: A gate that each connection waits for after it has its address.
    init(
        _ connector: any StreamConnector, from addresses: [String], gate: (@Sendable () async -> Void)? = nil
    ) {
        self.connector = connector
        self.addresses = Mutex(addresses)
        self.gate = gate
    }

    func connect(to destination: Destination) async throws(TransportError) -> any ByteStream {
        let address = addresses.withLock { addresses in
            addresses.count > 1 ? addresses.removeFirst() : addresses.first ?? "192.0.2.1:1"
        }
        let stream = try await connector.connect(to: destination)
        await gate?()
        return AddressedStream(stream, localAddress: address)
    }
}
