import MartletTransport
import Synchronization

/// A stream whose reset is seen only by a write. The reader then sees the end, as on a socket whose pending error the
/// writer has consumed.
final class ResetStream: ForwardingStream {
    private struct State {
        var writeCount = 0
        var isReset = false
    }

    let stream: any ByteStream
    private let writeLimit: Int
    private let state = Mutex(State())

    /// Creates a stream that accepts `writeLimit` writes.
    init(_ stream: any ByteStream, writeLimit: Int) {
        self.stream = stream
        self.writeLimit = writeLimit
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) -> ReadOutcome {
        let outcome = unsafe try stream.read(into: buffer)
        guard case .wouldBlock = outcome, state.withLock({ $0.isReset }) else { return outcome }
        return .endOfStream(isClean: true)
    }

    func write(_ buffer: UnsafeRawBufferPointer) throws(TransportError) -> Int {
        let isReset = state.withLock { state in
            state.writeCount += 1
            state.isReset = state.writeCount > writeLimit
            return state.isReset
        }
        guard isReset else { return unsafe try stream.write(buffer) }
        // The reader is notified before the writer returns.
        stream.wakeReader()
        throw .system(SystemError(operation: "send", code: 104))
    }

    func waitUntilReadable(until deadline: MonotonicTime) async throws(TransportError) {
        if state.withLock({ $0.isReset }) { return }
        try await stream.waitUntilReadable(until: deadline)
    }
}

/// Connects to a mock transport with streams whose reset only a write sees.
struct ResetConnector: StreamConnector {
    let connector: any StreamConnector
    var writeLimit = 2

    func connect(to destination: Destination) async throws(TransportError) -> any ByteStream {
        ResetStream(try await connector.connect(to: destination), writeLimit: writeLimit)
    }
}
