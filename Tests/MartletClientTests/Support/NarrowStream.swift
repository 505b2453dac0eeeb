import MartletTransport

/// A stream that gives one byte at a time: whoever has read a response to its end has read nothing behind it.
final class NarrowStream: ByteStream {
    private let stream: any ByteStream

    init(_ stream: any ByteStream) {
        self.stream = stream
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) -> ReadOutcome {
        unsafe try stream.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<1]))
    }

    func write(_ buffer: UnsafeRawBufferPointer) throws(TransportError) -> Int {
        unsafe try stream.write(buffer)
    }

    func waitUntilReadable(until deadline: MonotonicTime) async throws(TransportError) {
        try await stream.waitUntilReadable(until: deadline)
    }

    func waitUntilWritable(until deadline: MonotonicTime) async throws(TransportError) {
        try await stream.waitUntilWritable(until: deadline)
    }

    func wakeReader() { stream.wakeReader() }
    func wakeWriter() { stream.wakeWriter() }
    func interrupt() { stream.interrupt() }
    func close() { stream.close() }
    func reset() { stream.reset() }
    func shutdownWriting() { stream.shutdownWriting() }
    func probe() -> IdleState { stream.probe() }
    func watchWhileIdle(_ watcher: any IdleWatcher) { stream.watchWhileIdle(watcher) }
    func endIdleWatch() -> Bool { stream.endIdleWatch() }
    var information: ConnectionInformation { stream.information }
}

/// Connects to a mock transport by narrow streams.
struct NarrowConnector: StreamConnector {
    let connector: any StreamConnector

    func connect(to destination: Destination) async throws(TransportError) -> any ByteStream {
        NarrowStream(try await connector.connect(to: destination))
    }
}
