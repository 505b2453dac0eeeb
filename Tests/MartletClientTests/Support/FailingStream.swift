import MartletTransport
import Synchronization

/// A stream whose writes fail on request, like those to a closed peer, while it appears healthy.
final class FailingStream: ForwardingStream {
    let stream: any ByteStream
    private let failure = Mutex<TransportError?>(nil)

    init(_ stream: any ByteStream) {
        self.stream = stream
    }

    /// Makes every later write fail.
    func failWrites(_ error: TransportError) {
        failure.withLock { $0 = error }
    }

    func write(_ buffer: UnsafeRawBufferPointer) throws(TransportError) -> Int {
        if let error = failure.withLock({ $0 }) { throw error }
        return unsafe try stream.write(buffer)
    }
}

/// Connects to a mock transport, and stores the streams so that tests can make them fail.
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
