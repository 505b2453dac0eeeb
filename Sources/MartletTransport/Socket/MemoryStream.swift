import Synchronization

/// One end of a stream in memory. Each end reads the bytes that the other writes, through a bounded buffer. It behaves
/// like a socket, resets included, so that the layers above can run without a network.
package final class MemoryStream: ByteStream {
    /// The bytes in transit in one direction.
    private final class Channel: Sendable {
        struct State {
            var bytes: [UInt8] = []
            var readOffset = 0
            var isEnded = false
            var isReset = false

            var byteCount: Int { bytes.count - readOffset }
        }

        let state = Mutex(State())
        let capacity: Int

        init(capacity: Int) { self.capacity = capacity }
    }

    private let incoming: Channel
    private let outgoing: Channel
    private let readiness: Readiness
    /// The readiness of the other end. It does not retain that end, so the two ends do not retain each other.
    private let peerReadiness: Mutex<Readiness?>
    package let information: ConnectionInformation

    private init(incoming: Channel, outgoing: Channel, loop: EventLoop) {
        (self.incoming, self.outgoing) = (incoming, outgoing)
        readiness = Readiness(loop: loop)
        peerReadiness = Mutex(nil)
        information = ConnectionInformation(remoteAddress: "memory", localAddress: "memory")
    }

    deinit { close() }

    /// The number of bytes in the buffer of this end, including those that were read but are still stored.
    var storedByteCount: Int { incoming.state.withLock { $0.bytes.count } }

    /// Creates a stream, and returns its two ends.
    /// - Parameter capacity: The number of bytes in transit in each direction at which writing would block.
    package static func pair(capacity: Int = 64 * 1024, loop: EventLoop) -> (client: MemoryStream, server: MemoryStream)
    {
        let upstream = Channel(capacity: max(1, capacity))
        let downstream = Channel(capacity: max(1, capacity))
        let client = MemoryStream(incoming: downstream, outgoing: upstream, loop: loop)
        let server = MemoryStream(incoming: upstream, outgoing: downstream, loop: loop)
        client.peerReadiness.withLock { $0 = server.readiness }
        server.peerReadiness.withLock { $0 = client.readiness }
        return (client, server)
    }

    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) -> ReadOutcome {
        guard readiness.beginRead() else { return .wouldBlock }
        if readiness.isClosed { throw .closed }
        let (outcome, isReset, isDrained) = incoming.state.withLock { state -> (ReadOutcome, Bool, Bool) in
            guard state.byteCount > 0 else {
                // A reset does not discard the bytes before it, as over TCP on loopback.
                if state.isReset { return (.wouldBlock, true, false) }
                return (state.isEnded ? .endOfStream(isClean: true) : .wouldBlock, false, !state.isEnded)
            }
            let count = min(state.byteCount, buffer.count)
            unsafe buffer.copyBytes(from: state.bytes[state.readOffset..<state.readOffset + count])
            state.readOffset += count
            if state.byteCount == 0 {
                state.bytes.removeAll(keepingCapacity: true)
                state.readOffset = 0
            }
            return (.bytes(count), false, state.bytes.isEmpty && !state.isEnded)
        }
        if isReset { throw .system(SystemError(operation: "recv", code: 104)) }
        if case .bytes = outcome { signalPeer(isReadable: false, isWritable: true) }
        if isDrained { readiness.readDrained() }
        return outcome
    }

    package func write(_ buffer: UnsafeRawBufferPointer) throws(TransportError) -> Int {
        readiness.beginWrite()
        if readiness.isClosed { throw .closed }
        let capacity = outgoing.capacity
        let count = outgoing.state.withLock { state -> Int? in
            if state.isReset || state.isEnded { return nil }
            // Bytes that were read must not accumulate, even if the reader never empties the buffer.
            if state.readOffset >= capacity {
                state.bytes.removeFirst(state.readOffset)
                state.readOffset = 0
            }
            let count = min(capacity - state.byteCount, buffer.count)
            if count > 0 { unsafe state.bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
            return count
        }
        guard let count else { throw .system(SystemError(operation: "send", code: 32)) }
        if count > 0 { signalPeer(isReadable: true, isWritable: false) }
        return count
    }

    private func signalPeer(isReadable: Bool, isWritable: Bool, isHangup: Bool = false) {
        let peer = peerReadiness.withLock { $0 }
        let event = Poller.Event(
            descriptor: -1, registration: 0, isReadable: isReadable, isWritable: isWritable, isHangup: isHangup)
        peer?.signal(event, isFromLoop: false)?.idleStreamBecameReadable()
    }

    package func waitUntilReadable(until deadline: MonotonicTime) async throws(TransportError) {
        try await readiness.wait(for: .read, until: deadline).check()
    }

    package func waitUntilWritable(until deadline: MonotonicTime) async throws(TransportError) {
        try await readiness.wait(for: .write, until: deadline).check()
    }

    package func wakeReader() { readiness.wakeReader() }
    package func wakeWriter() { readiness.wakeWriter() }
    package func interrupt() { readiness.interrupt() }

    package func close() {
        readiness.close()
        outgoing.state.withLock { $0.isEnded = true }
        incoming.state.withLock { state in
            state.isReset = true
            state.bytes = []
            state.readOffset = 0
        }
        signalPeer(isReadable: true, isWritable: true, isHangup: true)
    }

    package func reset() {
        outgoing.state.withLock { $0.isReset = true }
        close()
    }

    package func shutdownWriting() {
        outgoing.state.withLock { $0.isEnded = true }
        signalPeer(isReadable: true, isWritable: false, isHangup: true)
    }

    package func probe() -> IdleState {
        if readiness.isClosed { return .unusable }
        return incoming.state.withLock { state in
            state.bytes.isEmpty && !state.isEnded && !state.isReset ? .quiet : .unusable
        }
    }

    package func observeIdle(_ observer: any IdleStreamObserver) { readiness.observeIdle(observer) }
    package func stopObservingIdle() -> Bool { readiness.stopObservingIdle() }
}
