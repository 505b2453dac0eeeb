import MartletTransport

/// A stream that delivers one byte at a time, so that a complete response leaves no later bytes in a buffer.
final class NarrowStream: ForwardingStream {
    let stream: any ByteStream

    init(_ stream: any ByteStream) {
        self.stream = stream
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) -> ReadOutcome {
        unsafe try stream.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<1]))
    }
}

/// Connects to a mock transport with narrow streams.
struct NarrowConnector: StreamConnector {
    let connector: any StreamConnector

    func connect(to destination: Destination) async throws(TransportError) -> any ByteStream {
        NarrowStream(try await connector.connect(to: destination))
    }
}
