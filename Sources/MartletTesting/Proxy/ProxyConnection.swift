import MartletTransport
import Synchronization

/// One connection through a fault proxy: the client's stream, the origin's, and the transfer between them.
///
/// Two tasks serve it, one for each direction. The task for the responses injects the faults.
final class ProxyConnection: Sendable {
    private struct State {
        var machine: FaultMachine
        /// Whether nothing more is sent to the client, although the connection stays open.
        var isStalled = false
        /// The deadline for reading from the client; set when the origin has ended.
        var deadline = MonotonicTime.distantFuture
    }

    private let client: any ByteStream
    private let origin: any ByteStream
    private let options: FaultOptions
    private let count: @Sendable ((inout FaultCounts) -> Void) -> Void
    /// Guards the machine, which both directions report to.
    private let state: Mutex<State>
    private static let pieceSize = 64 << 10
    /// The time for the client to end its direction after the origin has (RFC 9112 §9.6).
    private static let lingering = Duration.seconds(2)

    /// Creates a connection that owns two open streams.
    /// - Parameter count: Changes the proxy's counts.
    init(
        client: any ByteStream, origin: any ByteStream, options: FaultOptions, machine: FaultMachine,
        count: @escaping @Sendable ((inout FaultCounts) -> Void) -> Void
    ) {
        (self.client, self.origin, self.options, self.count) = (client, origin, options, count)
        state = Mutex(State(machine: machine))
    }

    /// Closes both streams; any thread may call it.
    func end() {
        client.close()
        origin.close()
    }

    /// Forwards bytes until both sides have ended, or a fault has ended them. Both streams are closed then.
    func run() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.forwardRequests() }
            group.addTask { await self.forwardResponses() }
        }
        end()
    }

    private func forwardRequests() async {
        var originAccepts = true
        do throws(TransportError) {
            while let bytes = try await receive(from: client, isClient: true) {
                state.withLock { $0.machine.clientSent() }
                guard originAccepts else { continue }
                do throws(TransportError) { try await origin.send(bytes, until: .distantFuture) } catch {
                    // The origin may still have sent a response: reading from the client continues until the response
                    // ends.
                    originAccepts = false
                }
            }
            if state.withLock({ $0.isStalled }) { return end() }
            origin.shutdownWriting()
        } catch { end() }
    }

    private func forwardResponses() async {
        do throws(TransportError) {
            while let bytes = try await receive(from: origin, isClient: false) {
                let (step, isNew) = state.withLock { state in
                    let isNew = state.machine.isBetweenResponses
                    // A piece that is not full contains all available bytes.
                    let isPause = bytes.count < ProxyConnection.pieceSize
                    return (state.machine.originSent(bytes.count, isPause: isPause), isNew)
                }
                count { counts in
                    if isNew { counts.responses += 1 }
                    if isNew, step == .drip { counts.faults[.slow, default: 0] += 1 }
                    if case .strike(let fault, _) = step { counts.faults[fault, default: 0] += 1 }
                }
                switch step {
                case .forward: try await client.send(bytes, until: .distantFuture)
                case .drip: try await drip(bytes)
                case .strike(let fault, let count):
                    try await client.send(Array(bytes[..<count]), until: .distantFuture)
                    return try await strike(fault)
                }
            }
        } catch {
            // An error on either side ends both.
            client.reset()
            return end()
        }
        finishClient()
    }

    private func strike(_ fault: InjectedFault) async throws(TransportError) {
        switch fault {
        case .stall: return state.withLock { $0.isStalled = true }
        case .reset: client.reset()
        case .garbage: try await client.send(state.withLock { $0.machine.garbage() }, until: .distantFuture)
        case .truncated, .slow: break
        }
        origin.reset()
        if fault != .reset { finishClient() }
    }

    /// Ends the direction to the client. The client's bytes are read for a while: closing with unread bytes would reset
    /// the connection and lose the last bytes sent to the client.
    private func finishClient() {
        client.shutdownWriting()
        let deadline = MonotonicTime.now().advanced(by: ProxyConnection.lingering)
        state.withLock { $0.deadline = deadline }
        client.wakeReader()
    }

    private func drip(_ bytes: [UInt8]) async throws(TransportError) {
        for piece in bytes.pieces(of: max(1, options.dripSize)) {
            try await client.send(piece, until: .distantFuture)
            do { try await Task.sleep(for: options.dripInterval) } catch { throw .closed }
        }
    }

    /// Waits for bytes and reads them; `nil` at the end.
    private func receive(from stream: any ByteStream, isClient: Bool) async throws(TransportError) -> [UInt8]? {
        while true {
            var bytes: [UInt8] = []
            switch try stream.read(upTo: ProxyConnection.pieceSize, appendingTo: &bytes) {
            case .bytes: return bytes
            case .endOfStream: return nil
            case .wouldBlock:
                let deadline = isClient ? state.withLock { $0.deadline } : .distantFuture
                try await stream.waitUntilReadable(until: deadline)
            }
        }
    }
}
