import MartletCore
import MartletCache
import MartletConnections
import MartletTransport
import MartletWire
import Synchronization

/// The body of an answer that comes from the cache, or by a transfer that is shared.
///
/// One task reads it, as it would from a connection; nothing is read that was not asked for.
final class CachedBody: StoredBody {
    /// Where the bytes are.
    enum Source: Sendable {
        /// In memory.
        case bytes(ArraySlice<UInt8>)
        /// On disk, so many of them.
        case file(EntryReader, Range<UInt64>)
        /// On their way.
        case transfer(FlightMember)
    }

    private struct State {
        var source: Source
        /// Bytes of a file that were read already.
        var ahead: [UInt8] = []
    }

    /// How much is read from a file at once, in bytes.
    private static let pieceByteCount = 256 * 1024

    private let loop: EventLoop
    private let cache: ResponseCache
    private let stored: StoredResponse?
    private let flight: CacheFlight?
    /// Guards where it is read from: its reader, and whoever ends it.
    private let state: Mutex<State>

    /// A body.
    /// - Parameters:
    ///   - cache: Where it is stored, if it is.
    ///   - stored: The response that it is of; `nil` for a transfer, and for no body.
    ///   - ahead: What was read of a file already.
    init(
        _ source: Source, in cache: ResponseCache, of stored: StoredResponse?, ahead: [UInt8] = [],
        loop: EventLoop
    ) {
        self.loop = loop
        self.cache = cache
        self.stored = stored
        if case .transfer(let member) = source { flight = member.flight } else { flight = nil }
        state = Mutex(State(source: source, ahead: ahead))
    }

    /// Which stored body it is.
    var representation: UInt64? { stored?.representation ?? flight?.representation }

    /// The exchange of the transfer that it comes by.
    var exchange: Exchange? {
        if case .exchange(let exchange) = flight?.network?.channel { exchange } else { nil }
    }

    /// Fields behind the body.
    var trailers: FieldBlock? {
        if let stored { return stored.head.trailers }
        return flight?.network?.trailers
    }

    /// All of it, where it is in memory; it is read then.
    func takeWhole() -> [UInt8]? {
        state.withLock { state in
            guard case .bytes(let bytes) = state.source else { return nil }
            state.source = .bytes([])
            return Array(bytes)
        }
    }

    /// Notes that its reader takes all of it: what is short need not come in pieces.
    func collect() { if case .transfer(let member) = state.withLock({ $0.source }) { member.collect() } }

    /// What came of it for a reader who takes all of it, and has not been given it: for one who waits no longer.
    var collected: [UInt8] {
        if case .transfer(let member) = state.withLock({ $0.source }) { member.collected } else { [] }
    }

    /// The next bytes; `nil` at the end.
    ///
    /// - Parameter patience: When waiting for more is given up, where that is sooner than the clocks have it.
    /// - Throws: ``HTTPError``, `.storedBodyDamaged` among them; `CancellationError`.
    func next(for call: Call, control: TransferControl, patience: MonotonicTime?) async throws -> [UInt8]? {
        if control.isExposed, control.isPaused {
            control.begin(.none)
            await control.waitWhilePaused(until: call.totalDeadline, on: loop)
        }
        if control.isCancelled || Task.isCancelled { throw CancellationError() }
        guard MonotonicTime.now() < call.totalDeadline else {
            throw HTTPError(
                .timedOut, phase: .receivingBody, message: "the total clock ran out while the body was read",
                wasSent: true, origin: call.url.origin.description, clock: .total,
                elapsed: MonotonicTime.now().since(call.start))
        }
        let source = state.withLock { $0.source }
        switch source {
        case .bytes(let bytes):
            guard !bytes.isEmpty else { return nil }
            let piece = bytes.prefix(4 * CachedBody.pieceByteCount)
            state.withLock { $0.source = .bytes(bytes[piece.endIndex...]) }
            return Array(piece)
        case .file(let reader, let range): return try await read(reader, range, for: call, control)
        case .transfer(let member):
            return try await member.next(for: call, control, until: patience ?? .distantFuture)
        }
    }

    private func read(
        _ reader: EntryReader, _ range: Range<UInt64>, for call: Call, _ control: TransferControl
    ) async throws -> [UInt8]? {
        guard !range.isEmpty else { return nil }
        var bytes = state.withLock { state in
            defer { state.ahead = [] }
            return state.ahead
        }
        if bytes.isEmpty {
            let limit = Int(min(UInt64(CachedBody.pieceByteCount), range.upperBound - range.lowerBound))
            bytes = try await CachedBody.read(reader, at: range.lowerBound, limit, for: call)
            if control.isCancelled { throw CancellationError() }
        }
        state.withLock { state in
            if case .file = state.source {
                state.source = .file(reader, (range.lowerBound + UInt64(bytes.count))..<range.upperBound)
            }
        }
        return bytes
    }

    /// Reads from a file: here what is at hand, and else by a worker.
    static func read(
        _ reader: EntryReader, at offset: UInt64, _ limit: Int, for call: Call
    ) async throws -> [UInt8] {
        if let bytes = reader.readAtHand(at: offset, limit: limit), !bytes.isEmpty { return bytes }
        let read = await BlockingWorkers.shared.run { try? reader.read(at: offset, limit: limit) }
        guard let read, !read.isEmpty else { throw damage(call) }
        return read
    }

    /// Reads no more.
    func leave() {
        let source = state.withLock { state in
            defer { if case .transfer = state.source {} else { state.source = .bytes([]) } }
            return state.source
        }
        if case .transfer(let member) = source { member.leave() }
    }

    /// Reads no more, and waits a moment for what is left of a small body.
    func leave(waitingUntil deadline: MonotonicTime, for control: TransferControl) async {
        guard case .transfer(let member) = state.withLock({ $0.source }) else { return leave() }
        await member.leave(waitingUntil: deadline, for: control)
    }

    /// Has it be stored no longer, nor joined by others: it makes no sense, and whoever asks next is to get another.
    func withdraw() async {
        if let stored { await cache.remove([stored], on: loop) }
        if await flight?.withdraw() == true { cache.count { $0.removals &+= 1 } }
    }

    /// The error of a stored body that turns out damaged as it is read, whereupon its entry goes, or that the disk does
    /// not give.
    static func damage(_ call: Call) -> HTTPError {
        HTTPError(
            .storedBodyDamaged, phase: .receivingBody,
            message: "the stored body turned out damaged, or could not be read on",
            origin: call.url.origin.description)
    }
}
