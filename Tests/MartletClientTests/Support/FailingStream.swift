import MartletTransport
import Synchronization

/// A stream whose writes fail once it is told so, as those to a peer that has gone do, while it looks sound.
final class FailingStream: ForwardingStream {
    let stream: any ByteStream
    private let failure = Mutex<TransportError?>(nil)

    init(_ stream: any ByteStream) {
        self.stream = stream
    }

    /// Has every write fail from now on.
    func failWrites(_ error: TransportError) {
        failure.withLock { $0 = error }
    }

    func write(_ buffer: UnsafeRawBufferPointer) throws(TransportError) -> Int {
        if let error = failure.withLock({ $0 }) { throw error }
        return unsafe try stream.write(buffer)
    }
}

/// Connects to a mock transport, and keeps the streams so that they can be made to fail.
final class FailingConnector: StreamConnector {
    private let connector: any StreamConnector
    private let opened = Mutex<[FailingStream]>([])

    init(_ connector: any StreamConnector) {
        self.connector = connector
    }

    /// The streams opened so far.
    var streams: [FailingStream] { opened.withLock { $0 } }

    func connect(to destination: Destination) async throws(TransportError) -> any ByteStream {
        let stream = FailingStream(try await connector.connect(to: destination))
        opened.withLock { $0.append(stream) }
        return stream
    }
}
