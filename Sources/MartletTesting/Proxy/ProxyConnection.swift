import MartletTransport
import Synchronization

/// One connection through a fault proxy: the client's stream, the origin's, and what goes on between them.
///
/// Two tasks serve it, one for each direction. The faults are made by the one that brings responses.
final class ProxyConnection: Sendable {
    private struct State {
        var machine: FaultMachine
        /// Whether the client gets nothing more, though the connection stays.
        var isStalled = false
        /// Until when the client is read from; set when the origin has ended.
        var deadline = MonotonicTime.distantFuture
    }

    private let client: any ByteStream
    private let origin: any ByteStream
    private let options: FaultOptions
    private let count: @Sendable ((inout FaultCounts) -> Void) -> Void
    /// Guards the machine, which both directions tell what they see.
    private let state: Mutex<State>

    /// How many bytes are taken at once.
    private static let pieceSize = 64 << 10
    /// How long the client may take to end its direction when the origin has (RFC 9112 §9.6).
    private static let lingering = Duration.seconds(2)

    /// A connection whose streams are open; it owns them.
    /// - Parameter count: Changes the proxy's counts.
    init(
        client: any ByteStream, origin: any ByteStream, options: FaultOptions, machine: FaultMachine,
        count: @escaping @Sendable ((inout FaultCounts) -> Void) -> Void
    ) {
        self.client = client
        self.origin = origin
        self.options = options
        self.count = count
        state = Mutex(State(machine: machine))
    }

    /// Closes both streams, whatever goes on; any thread may call it.
    func end() {
        client.close()
        origin.close()
    }

    /// Carries bytes until both sides have ended, or a fault has ended them. Both streams are closed then.
    func run() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.carryRequests() }
            group.addTask { await self.carryResponses() }
        }
        end()
    }

    // MARK: From the client

    private func carryRequests() async {
        var originTakes = true
        do throws(TransportError) {
            while let piece = try await take(from: client, isClient: true) {
                state.withLock { $0.machine.clientSpoke() }
                guard originTakes else { continue }
                do throws(TransportError) {
                    try await send(piece.bytes[...], to: origin)
                } catch {
                    // Its answer may be on its way all the same: the client is read on, and then told how it ended.
                    originTakes = false
                }
            }
            if state.withLock({ $0.isStalled }) { return end() }
            origin.shutdownWriting()
        } catch {
            end()
        }
    }

    // MARK: From the origin

    private func carryResponses() async {
        do throws(TransportError) {
            while let piece = try await take(from: origin, isClient: false) {
                let (step, isNew) = state.withLock { state in
                    let isNew = state.machine.isBetweenResponses
                    return (state.machine.originSent(piece.bytes.count, isPause: piece.isPause), isNew)
                }
                count { counts in
                    if isNew { counts.responses += 1 }
                    if isNew, step == .drip { counts.faults[.slow, default: 0] += 1 }
                    if case .strike(let fault, _) = step { counts.faults[fault, default: 0] += 1 }
                }
                switch step {
                case .forward: try await send(piece.bytes[...], to: client)
                case .drip: try await drip(piece.bytes)
                case .strike(let fault, let place):
                    try await send(piece.bytes[..<place], to: client)
                    return try await strike(fault)
                }
            }
        } catch {
            // Broken on either side: both shall see it.
            client.reset()
            return end()
        }
        finishClient()
    }

    private func strike(_ fault: ProxyFault) async throws(TransportError) {
        switch fault {
        case .reset:
            client.reset()
            origin.reset()
        case .stall: state.withLock { $0.isStalled = true }
        case .garbage:
            try await send(state.withLock { $0.machine.garbage() }[...], to: client)
            origin.reset()
            finishClient()
        case .truncated, .slow:
            origin.reset()
            finishClient()
        }
    }

    /// Ends the direction to the client; what it still sends is taken for a while, since closing with unread bytes would
    /// reset the connection and take the last ones it was sent away from it.
    private func finishClient() {
        client.shutdownWriting()
        let deadline = MonotonicTime.now().advanced(by: ProxyConnection.lingering)
        state.withLock { $0.deadline = deadline }
        client.wakeReader()
    }

    private func drip(_ bytes: [UInt8]) async throws(TransportError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            try await send(rest.prefix(max(1, options.dripSize)), to: client)
            rest = rest.dropFirst(max(1, options.dripSize))
            do {
                try await Task.sleep(for: options.dripInterval)
            } catch {
                throw .closed
            }
        }
    }

    // MARK: Bytes

    private struct Piece {
        var bytes: [UInt8]
        /// Whether that was all there was.
        var isPause: Bool
    }

    /// Waits for bytes and takes what has come; `nil` at the end.
    private func take(from stream: any ByteStream, isClient: Bool) async throws(TransportError) -> Piece? {
        while true {
            var bytes: [UInt8] = []
            switch try stream.read(upTo: ProxyConnection.pieceSize, appendingTo: &bytes) {
            case .bytes(let count): return Piece(bytes: bytes, isPause: count < ProxyConnection.pieceSize)
            case .endOfStream: return nil
            case .wouldBlock:
                let deadline = isClient ? state.withLock { $0.deadline } : .distantFuture
                try await stream.waitUntilReadable(until: deadline)
            }
        }
    }

    private func send(_ bytes: ArraySlice<UInt8>, to stream: any ByteStream) async throws(TransportError) {
        let all = Array(bytes)
        var offset = 0
        while offset < all.count {
            let count = try stream.write(all, from: offset)
            if count == 0 { try await stream.waitUntilWritable(until: .distantFuture) }
            offset += count
        }
    }
}
