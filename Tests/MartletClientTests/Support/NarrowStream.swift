import MartletTransport

/// A stream that gives one byte at a time: whoever has read a response to its end has read nothing behind it.
final class NarrowStream: ForwardingStream {
    let stream: any ByteStream

    init(_ stream: any ByteStream) {
        self.stream = stream
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) -> ReadOutcome {
        unsafe try stream.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<1]))
    }
}

/// Connects to a mock transport by narrow streams.
struct NarrowConnector: StreamConnector {
    let connector: any StreamConnector

    func connect(to destination: Destination) async throws(TransportError) -> any ByteStream {
        NarrowStream(try await connector.connect(to: destination))
    }
}
