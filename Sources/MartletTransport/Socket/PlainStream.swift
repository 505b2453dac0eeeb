/// A stream that ends in a socket, straight or through TLS: what goes to the socket in either case.
package protocol SocketStream: ByteStream {
    /// The socket.
    var socket: Socket { get }
}

extension SocketStream {
    package func waitUntilWritable(until deadline: MonotonicTime) async throws(TransportError) {
        try await socket.wait(for: .write, until: deadline)
    }

    package func wakeReader() { socket.readiness.wakeReader() }

    package func wakeWriter() { socket.readiness.wakeWriter() }

    package func interrupt() { socket.readiness.interrupt() }

    package func looksReadable() -> Bool { socket.looksReadable() }

    package func awaitBytes(_ count: Int) { socket.setReceiveLowWater(count) }

    package func watchWhileIdle(_ watcher: any IdleWatcher) { socket.readiness.watchWhileIdle(watcher) }
}

/// A stream straight on a socket.
package final class PlainStream: SocketStream {
    /// The socket.
    package let socket: Socket
    package let information: ConnectionInformation

    /// A stream on a connected socket.
    package init(socket: Socket, remoteAddress: SocketAddress?) {
        self.socket = socket
        information = ConnectionInformation(
            remoteAddress: remoteAddress?.description ?? "",
            localAddress: socket.localAddress?.description ?? "")
    }

    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) -> ReadOutcome {
        unsafe try socket.receive(into: buffer)
    }

    package func write(_ buffer: UnsafeRawBufferPointer) throws(TransportError) -> Int {
        unsafe try socket.send(buffer)
    }

    package func waitUntilReadable(until deadline: MonotonicTime) async throws(TransportError) {
        try await socket.wait(for: .read, until: deadline)
    }

    package func close() { socket.close() }

    package func reset() {
        socket.resetOnClose()
        socket.close()
    }

    package func shutdownWriting() { socket.shutdownWriting() }

    package var mayHaveBytes: Bool { socket.readiness.isWorthReading }

    package var readLatch: Readiness? { socket.readiness }

    package func endIdleWatch() -> Bool { socket.readiness.endIdleWatch() }

    package func probe() -> IdleState { socket.peek() }
}
