import MartletTransport
import MartletWire
import Synchronization

/// Writes a response's body in its framing. Each write is sent immediately. Only one task may write at a time.
public final class OriginBodyWriter: Sendable {
    enum Framing: Sendable {
        case chunked(size: Int?)
        case length(UInt64)
        /// Sends the bytes unchanged: the end of the connection or the handler's own fields delimit the body.
        case raw
    }

    private struct State {
        /// Bytes not sent yet. They begin with the head, so that a small response needs only one write.
        var pending: [UInt8]
        var chunks = ChunkEncoder()
        var written: UInt64 = 0
    }

    private let channel: OriginChannel
    private let framing: Framing
    private let pacing: OriginPacing?
    private let fault: OriginFault?
    private let state: Mutex<State>
    /// The number of pending bytes at which they are sent.
    private static let gatherLimit = 64 << 10

    init(channel: OriginChannel, head: [UInt8], framing: Framing, _ response: OriginResponse) {
        (self.channel, self.framing, pacing, fault) = (channel, framing, response.pacing, response.fault)
        state = Mutex(State(pending: head))
    }

    /// The number of bytes of the body that were written so far.
    public var byteCount: UInt64 { state.withLock { $0.written } }

    /// Writes bytes and sends them; returns once the system has accepted all of them.
    /// - Throws: ``OriginError/disconnected(_:)`` if the client has left, ``OriginError/bodyTooLong(declared:)``.
    public func write(_ bytes: [UInt8]) async throws {
        try await append(bytes)
        try await flush()
    }

    /// Writes the UTF-8 bytes of a text; see ``write(_:)-([UInt8])``.
    public func write(_ text: String) async throws { try await write(Array(text.utf8)) }

    /// Sends the pending bytes and waits. Stopping the origin ends the wait with `CancellationError`.
    public func pause(for duration: Duration) async throws {
        try await flush()
        try await Task.sleep(for: duration)
    }

    /// Adds bytes, and sends all pending bytes once they reach the limit.
    func append(_ bytes: [UInt8]) async throws {
        var limit = pacing?.pieceSize ?? .max
        if case .chunked(.some(let size)) = framing { limit = min(max(1, size), limit) }
        guard bytes.count > limit else { return try await appendPiece(bytes) }
        for piece in bytes.pieces(of: limit) { try await appendPiece(piece) }
    }

    private func appendPiece(_ piece: [UInt8]) async throws {
        if piece.isEmpty { return }
        let written = byteCount
        if let fault, let limit = fault.bodyByteCount, written + UInt64(piece.count) > limit {
            // The chunk's header declares the whole piece, so that the body ends inside a chunk.
            gather(Array(piece.prefix(Int(limit - min(limit, written)))), declaring: piece.count)
            try await flush()
            throw fault
        }
        if case .length(let declared) = framing, written + UInt64(piece.count) > declared {
            throw OriginError.bodyTooLong(declared: declared)
        }
        gather(piece, declaring: piece.count)
        if let pacing {
            try await flush()
            try await Task.sleep(for: pacing.interval)
        } else if state.withLock({ $0.pending.count >= OriginBodyWriter.gatherLimit }) {
            try await flush()
        }
    }

    private func gather(_ piece: [UInt8], declaring count: Int) {
        state.withLock { state in
            if case .chunked = framing { state.pending += state.chunks.header(byteCount: count) }
            state.pending += piece
            state.written += UInt64(piece.count)
        }
    }

    /// Pads the body with ``TestPattern`` up to a number of bytes, and sends all pending bytes.
    func fill(upTo count: UInt64) async throws {
        let written = byteCount
        for piece in TestPattern.stretches(from: written, count: count - min(count, written)) {
            try await append(Array(piece))
        }
        try await flush()
    }

    func flush() async throws { try await channel.respond(state.withLock { exchange(&$0.pending, with: []) }) }

    /// Ends the body.
    /// - Throws: ``OriginError/bodyTooShort(declared:written:)``; the fault, if the body was too short to reach it.
    func finish(trailers: OriginFields) async throws {
        if let fault, fault.bodyByteCount != nil {
            try await flush()
            throw fault
        }
        if case .chunked = framing {
            try state.withLock { state throws(WireError) in
                state.pending += try state.chunks.lastChunk(trailers: trailers.map { ($0.name, $0.value) })
            }
        }
        try await flush()
        if case .length(let declared) = framing, byteCount < declared {
            throw OriginError.bodyTooShort(declared: declared, written: byteCount)
        }
    }
}

extension OriginResponseBody {
    /// The number of bytes in one read of a file.
    private static let stepSize = 256 << 10

    func write(to writer: OriginBodyWriter) async throws {
        switch self {
        case .bytes(let bytes): try await writer.append(bytes)
        case .pattern(let count, let offset):
            for piece in TestPattern.stretches(from: offset, count: count) { try await writer.append(Array(piece)) }
        case .file(let path, let range):
            let file = try await ServedFile.open(path)
            try await runThenEnd(
                {
                    var offset = range.lowerBound
                    while offset < range.upperBound {
                        let count = Int(min(range.upperBound - offset, UInt64(OriginResponseBody.stepSize)))
                        let bytes = try await file.read(at: offset, count: count)
                        if bytes.isEmpty { break }
                        try await writer.append(bytes)
                        offset += UInt64(bytes.count)
                    }
                }, end: { _ in await file.close() })
        case .stream(_, let body): try await body(writer)
        }
    }
}
