import MartletCore
import MartletCache
import Synchronization

/// The body of a response from the cache, or from a shared transfer. One task reads it.
final class CachedBody: StoredBody {
    /// The location of the bytes.
    enum Source: Sendable {
        case bytes(ArraySlice<UInt8>)
        case file(EntryReader, Range<UInt64>)
        case transfer(FlightMember)
    }

    private struct State {
        var source: Source
        /// The first bytes of a file, read before the response was returned.
        var ahead: [UInt8] = []
    }

    /// The maximum number of bytes in one read from a file.
    static let pieceByteCount: UInt64 = 256 * 1024

    private let loop: EventLoop
    private let cache: ResponseCache
    private let stored: StoredResponse?
    private let flight: CacheFlight?
    private let verifier: (any ContentVerifier)?
    /// The rest of the body. Used by its reader, and by the code that abandons it.
    private let state: Mutex<State>

    /// Creates a body.
    /// - Parameters:
    ///   - stored: The response of the body; `nil` for a transfer, and without a body.
    ///   - verifier: Checks a body that is read from the store; a transfer checks its content itself.
    init(
        _ source: Source, in cache: ResponseCache, of stored: StoredResponse?, ahead: [UInt8] = [],
        verifier: (any ContentVerifier)? = nil, loop: EventLoop
    ) {
        (self.loop, self.cache, self.stored, self.verifier) = (loop, cache, stored, verifier)
        if case .transfer(let member) = source { flight = member.flight } else { flight = nil }
        state = Mutex(State(source: source, ahead: ahead))
    }

    private var member: FlightMember? {
        if case .transfer(let member) = state.withLock({ $0.source }) { member } else { nil }
    }

    var representation: UInt64? { stored?.representation ?? flight?.representation }

    var exchange: Exchange? { flight?.network?.channel.heldExchange }

    var trailers: FieldBlock? {
        if let stored { return stored.head.trailers }
        return flight?.network?.trailers
    }

    func takeWhole() -> [UInt8]? {
        // A body that has to be verified is read with `next(for:control:deadline:)`, which can throw.
        if verifier != nil { return nil }
        return state.withLock { state in
            guard case .bytes(let bytes) = state.source else { return nil }
            state.source = .bytes([])
            return Array(bytes)
        }
    }

    func collect() { member?.collect() }

    var collected: [UInt8] { member?.collected ?? [] }

    func next(for call: Call, control: TransferControl, deadline: MonotonicTime?) async throws -> [UInt8]? {
        if control.isExposed, control.isPaused {
            control.begin(.none)
            await control.waitWhilePaused(until: call.totalDeadline, on: loop)
        }
        if control.isCancelled || Task.isCancelled { throw CancellationError() }
        guard MonotonicTime.now() < call.totalDeadline else {
            throw call.timedOut(.receivingBody, "while the body was read", sentCount: call.requestCount)
        }
        guard let piece = try await nextPiece(for: call, control, deadline) else {
            guard verifier?.finish(trailers: trailers) == nil else {
                await withdraw()
                throw CachedBody.damage(call)
            }
            return nil
        }
        verifier?.add(piece.span)
        return piece
    }

    private func nextPiece(for call: Call, _ control: TransferControl, _ deadline: MonotonicTime?) async throws
        -> [UInt8]?
    {
        switch state.withLock({ $0.source }) {
        case .bytes(let bytes):
            guard !bytes.isEmpty else { return nil }
            let piece = bytes.prefix(4 * Int(CachedBody.pieceByteCount))
            state.withLock { $0.source = .bytes(bytes[piece.endIndex...]) }
            return Array(piece)
        case .file(let reader, let range):
            return try await read(reader, range, for: call, control, deadline ?? .distantFuture)
        case .transfer(let member): return try await member.next(for: call, control, until: deadline ?? .distantFuture)
        }
    }

    private func read(
        _ reader: EntryReader, _ range: Range<UInt64>, for call: Call, _ control: TransferControl,
        _ deadline: MonotonicTime
    ) async throws -> [UInt8]? {
        guard !range.isEmpty else { return nil }
        var bytes = state.withLock { state in
            defer { state.ahead = [] }
            return state.ahead
        }
        if bytes.isEmpty {
            let limit = Int(min(CachedBody.pieceByteCount, range.upperBound - range.lowerBound))
            bytes = try await CachedBody.read(
                reader, at: range.lowerBound, limit, for: call, control, until: deadline, on: loop)
            if control.isCancelled { throw CancellationError() }
        }
        state.withLock { state in
            if case .file = state.source {
                state.source = .file(reader, (range.lowerBound + UInt64(bytes.count))..<range.upperBound)
            }
        }
        return bytes
    }

    /// Reads from a file, on a worker if it might have to wait for the disk.
    static func read(
        _ reader: EntryReader, at offset: UInt64, _ limit: Int, for call: Call, _ control: TransferControl,
        until deadline: MonotonicTime = .distantFuture, on loop: EventLoop
    ) async throws -> [UInt8] {
        if let bytes = reader.readNonBlocking(at: offset, limit: limit), !bytes.isEmpty { return bytes }
        let read = try await call.reading(control, until: deadline, on: loop) {
            try? reader.read(at: offset, limit: limit)
        }
        guard let read, !read.isEmpty else { throw damage(call) }
        return read
    }

    func leave() {
        let source = state.withLock { state in
            defer { if case .transfer = state.source {} else { state.source = .bytes([]) } }
            return state.source
        }
        if case .transfer(let member) = source { member.leave() }
    }

    func leave(waitingUntil deadline: MonotonicTime, for control: TransferControl) async {
        guard let member else { return leave() }
        await member.leave(waitingUntil: deadline, for: control)
    }

    func withdraw() async {
        if let stored { await cache.remove([stored], on: loop) }
        if await flight?.withdraw() == true { cache.count { $0.removals &+= 1 } }
    }

    /// Returns the error of a stored body that is damaged or cannot be read.
    static func damage(_ call: Call) -> HTTPError {
        HTTPError(
            .cachedBodyCorrupted, phase: .receivingBody,
            message: "the cached body is corrupt or unreadable; repeat the request", method: call.method, url: call.url)
    }
}

extension Call {
    /// Reads from the store on a worker. Because the disk may hang, a cancellation, the total timeout and the deadline
    /// end the wait; the closure continues.
    /// - Throws: ``HTTPError`` at the total timeout or the deadline; `CancellationError`.
    func reading<Value: Sendable>(
        _ control: TransferControl, until deadline: MonotonicTime, on loop: EventLoop,
        _ read: @escaping @Sendable () -> Value
    ) async throws -> Value {
        let (outcome, began) = (OneShot<Value>(), MonotonicTime.now())
        BlockingThreadPool.shared.submit { outcome.fulfill(read()) }
        let wait = control.beginWait { outcome.interrupt() }
        defer { control.endWait(wait) }
        switch await outcome.waitUnlessCancelled(until: min(totalDeadline, deadline), on: loop) {
        case .value(let value): return value
        case .interrupted: throw CancellationError()
        case .timedOut:
            let isTotal = MonotonicTime.now() >= totalDeadline
            throw timedOut(
                .receivingBody, "while the stored body was read", sentCount: requestCount,
                timeout: isTotal ? .total : .idle, since: isTotal ? nil : began)
        }
    }
}
