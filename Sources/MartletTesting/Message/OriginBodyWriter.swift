import MartletTransport
import MartletWire
import Synchronization

/// Where a response's body is written to; each write is sent at once, framed as the response is.
///
/// One task writes at a time.
public final class OriginBodyWriter: Sendable {
    /// How the body is delimited.
    enum Framing: Sendable {
        case chunked(size: Int?)
        case length(UInt64)
        /// As it is: until the end of the connection, or as fields of the handler's own say.
        case raw
    }

    private struct State {
        /// Bytes not sent yet: at first the head, so that a small response is one write.
        var pending: [UInt8]
        var chunks = ChunkEncoder()
        var written: UInt64 = 0
    }

    private let channel: OriginChannel
    private let framing: Framing
    private let pacing: OriginPacing?
    private let fault: OriginFault?
    private let state: Mutex<State>

    /// How much is gathered before it is sent.
    private static let gatherLimit = 64 << 10

    init(channel: OriginChannel, head: [UInt8], framing: Framing, pacing: OriginPacing?, fault: OriginFault?)
    {
        self.channel = channel
        self.framing = framing
        self.pacing = pacing
        self.fault = fault
        state = Mutex(State(pending: head))
    }

    /// How many bytes of the body were written so far.
    public var byteCount: UInt64 { state.withLock { $0.written } }

    /// Writes bytes and sends them; returns once the system has taken them all.
    /// - Throws: ``OriginError/disconnected(_:)`` when the client is gone,
    ///   ``OriginError/bodyTooLong(declared:)``.
    public func write(_ bytes: [UInt8]) async throws {
        try await append(bytes)
        try await flush()
    }

    /// Writes the UTF-8 bytes of a text; else as ``write(_:)-([UInt8])``.
    public func write(_ text: String) async throws { try await write(Array(text.utf8)) }

    /// Waits; cancelling the task, which stopping the origin does, ends the wait.
    public func pause(for duration: Duration) async throws {
        try await flush()
        try await Task.sleep(for: duration)
    }

    /// Adds bytes, and sends what has gathered when it is much.
    func append(_ bytes: [UInt8]) async throws {
        let limit =
            if case .chunked(.some(let size)) = framing {
                min(max(1, size), pacing?.pieceSize ?? .max)
            } else {
                pacing?.pieceSize ?? .max
            }
        guard bytes.count > limit else { return try await appendPiece(bytes) }
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + limit)
            try await appendPiece(Array(bytes[start..<end]))
            start = end
        }
    }

    private func appendPiece(_ piece: [UInt8]) async throws {
        if piece.isEmpty { return }
        let written = state.withLock { $0.written }
        if let fault, let limit = fault.bodyByteCount, written + UInt64(piece.count) > limit {
            // The chunk is announced whole, so that the cut lies inside it.
            gather(Array(piece.prefix(Int(limit - min(limit, written)))), announcing: piece.count)
            try await flush()
            throw fault
        }
        if case .length(let declared) = framing, written + UInt64(piece.count) > declared {
            throw OriginError.bodyTooLong(declared: declared)
        }
        gather(piece, announcing: piece.count)
        if let pacing {
            try await flush()
            try await Task.sleep(for: pacing.interval)
        } else if state.withLock({ $0.pending.count >= OriginBodyWriter.gatherLimit }) {
            try await flush()
        }
    }

    private func gather(_ piece: [UInt8], announcing count: Int) {
        state.withLock { state in
            if case .chunked = framing { state.pending += state.chunks.header(byteCount: count) }
            state.pending += piece
            state.written += UInt64(piece.count)
        }
    }

    /// Sends what has gathered.
    func flush() async throws {
        let bytes = state.withLock { state in
            let bytes = state.pending
            state.pending = []
            return bytes
        }
        do throws(TransportError) {
            try await channel.send(bytes)
        } catch {
            throw OriginError.disconnected("\(error)")
        }
    }

    /// Ends the body.
    /// - Throws: ``OriginError/bodyTooShort(declared:written:)``; the fault, where the body was too short
    ///   to reach it.
    func finish(trailers: OriginFields) async throws {
        if let fault, fault.bodyByteCount != nil {
            try await flush()
            throw fault
        }
        switch framing {
        case .raw: break
        case .length(let declared):
            let written = byteCount
            if written < declared {
                try await flush()
                throw OriginError.bodyTooShort(declared: declared, written: written)
            }
        case .chunked:
            try state.withLock { state throws(WireError) in
                state.pending += try state.chunks.lastChunk(trailers: trailers.map { ($0.name, $0.value) })
            }
        }
        try await flush()
    }
}

extension OriginResponseBody {
    /// How much of a pattern or file is handled at once.
    private static let stepSize = 256 << 10

    /// Writes the body.
    func write(to writer: OriginBodyWriter) async throws {
        switch content {
        case .bytes(let bytes): try await writer.append(bytes)
        case .pattern(let offset, let count):
            var done: UInt64 = 0
            while done < count {
                let step = Int(min(count - done, UInt64(TestPattern.stretchLimit)))
                try await writer.append(TestPattern.bytes(from: offset + done, count: step))
                done += UInt64(step)
            }
        case .file(let path, let range):
            let file = try await ServedFile.open(path)
            do {
                var offset = range.lowerBound
                while offset < range.upperBound {
                    let count = Int(min(range.upperBound - offset, UInt64(OriginResponseBody.stepSize)))
                    let bytes = try await file.read(at: offset, count: count)
                    if bytes.isEmpty { break }
                    try await writer.append(bytes)
                    offset += UInt64(bytes.count)
                }
            } catch {
                await file.close()
                throw error
            }
            await file.close()
        case .stream(_, let body): try await body(writer)
        }
    }
}
