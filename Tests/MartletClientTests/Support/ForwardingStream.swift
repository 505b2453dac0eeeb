import MartletTransport

/// A stream that forwards every operation to another stream unless overridden.
protocol ForwardingStream: ByteStream {
    /// The stream that receives every operation.
    var stream: any ByteStream { get }
}

extension ForwardingStream {
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) -> ReadOutcome {
        unsafe try stream.read(into: buffer)
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
    func observeIdle(_ observer: any IdleStreamObserver) { stream.observeIdle(observer) }
    func stopObservingIdle() -> Bool { stream.stopObservingIdle() }
    var information: ConnectionInformation { stream.information }
}
