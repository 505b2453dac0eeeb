import MartletConnections
import MartletStorage
package import MartletTransport
import MartletWire
import SystemPackage

/// Has a body written while the rest of it is received.
package struct BodyPouring: Sendable {
    private let writer: WriteBehind
    private let origin: String?

    /// - Parameters:
    ///   - sink: Where the body goes.
    ///   - expected: How much of it will come, where that is known.
    ///   - origin: Where it comes from, for errors.
    package init(_ sink: any BlockSink, expected: UInt64?, origin: String?) {
        writer = WriteBehind(sink, expected: expected)
        self.origin = origin
    }

    /// Has the rest of a body written, up to its end, or to where the sink wants no more.
    func pour(_ reader: BodyReader) async throws {
        if let exchange = reader.plainExchange {
            try await pourReceived(reader, exchange)
        } else {
            while !writer.isSated, let piece = try await reader.next() { try await append(piece[...]) }
        }
    }

    /// Receives straight into the blocks that are written.
    private func pourReceived(_ reader: BodyReader, _ exchange: Exchange) async throws {
        var hasMore = true
        while hasMore, !writer.isSated {
            let block = try await mapped { () async throws(StorageError) in try await writer.emptyBlock() }
            // What has come is written while nothing else comes; while a write runs, more of it is gathered.
            do {
                hasMore = try await reader.fill(
                    block, from: exchange, whereNothingCame: { writer.isIdle },
                    untilWanted: { await writer.waitForWorker() })
            } catch {
                // What came before the failure is written too: a download goes on behind it.
                if block.count > 0 {
                    try await mapped { () async throws(StorageError) in try await writer.write(block) }
                }
                throw error
            }
            if block.count > 0 {
                try await mapped { () async throws(StorageError) in try await writer.write(block) }
            }
        }
    }

    /// Has bytes written, behind those that were.
    package func append(_ bytes: ArraySlice<UInt8>) async throws(HTTPError) {
        var rest = bytes
        while !rest.isEmpty {
            let block = try await mapped { () async throws(StorageError) in try await writer.emptyBlock() }
            rest = rest.dropFirst(block.append(rest))
            try await mapped { () async throws(StorageError) in try await writer.write(block) }
        }
    }

    /// Waits until all is written.
    package func finish() async throws(HTTPError) {
        try await mapped { () async throws(StorageError) in try await writer.finish() }
    }

    /// Waits for a write that runs, whatever came of it.
    package func waitForWorker() async { await writer.waitForWorker() }

    private func mapped<Value: Sendable>(
        _ body: () async throws(StorageError) -> Value
    ) async throws(HTTPError) -> Value {
        do throws(StorageError) {
            return try await body()
        } catch {
            throw HTTPError(storage: error, origin: origin)
        }
    }
}

extension HTTPError {
    /// The error of a file into which a body was to go.
    package init(storage error: StorageError, origin: String?) {
        self.init(
            error.isOutOfSpace ? .diskFull : .fileFailed, phase: .receivingBody, message: error.description,
            wasSent: true, origin: origin, underlying: error)
    }
}

extension ResponseBody {
    /// Has the rest of the body written while it is received, up to its end, or to where the sink wants no more: then the
    /// connection is not used again. When it returns or throws, nothing is being written any more.
    /// - Parameter expected: How much of it is wanted at most.
    /// - Throws: An ``HTTPError``, `.fileFailed` and `.diskFull` among them; `CancellationError`.
    package func pour(into sink: any BlockSink, expected: UInt64?) async throws {
        let pouring = BodyPouring(sink, expected: expected, origin: reader.origin)
        do {
            try await pouring.pour(reader)
            try await pouring.finish()
        } catch {
            await pouring.waitForWorker()
            throw error
        }
    }

    /// Ends the body: nothing more is taken of it, and its connection is not used again.
    package func refuse() { reader.channel.refuse() }
}

/// Where the body of an answer comes from.
package enum BodyChannel: Sendable {
    /// The connection, as its exchange reads it.
    case exchange(Exchange)
    /// A stage that stores bodies, or shares a transfer between calls.
    case stored(any StoredBody)
    /// A middleware.
    case made(MadeBody)

    /// Ends the answer: nothing more is read of it.
    func finish() {
        switch self {
        case .exchange(let exchange): exchange.finish()
        case .stored(let body): body.leave()
        case .made(let body): body.base?.finish()
        }
    }

    /// Ends the answer, and waits a moment for the rest of a small body, so that its connection can carry another request.
    /// - Parameter control: That of whoever waits.
    package func finish(waitingUntil deadline: MonotonicTime, for control: TransferControl) async {
        switch self {
        case .exchange(let exchange): await exchange.finish(waitingUntil: deadline)
        case .stored(let body): await body.leave(waitingUntil: deadline, for: control)
        case .made(let body): await body.base?.channel.finish(waitingUntil: deadline, for: control)
        }
    }

    /// Ends the answer for what it is: nothing more is taken of it, however little is left.
    func refuse() {
        switch self {
        case .exchange(let exchange): exchange.refuse()
        case .stored(let body): body.leave()
        case .made(let body): body.base?.channel.refuse()
        }
    }

    /// Fields behind a chunked body, once it has been read to its end.
    var trailers: FieldBlock? {
        switch self {
        case .exchange(let exchange): exchange.trailers
        case .stored(let body): body.trailers
        case .made(let body): body.base?.trailers
        }
    }

    /// The exchange that may hold a connection for the body; `nil` where nothing is received.
    package var heldExchange: Exchange? {
        switch self {
        case .exchange(let exchange): exchange
        case .stored(let body): body.exchange
        case .made(let body): body.base?.channel.heldExchange
        }
    }

    /// Whether the connection had carried another exchange before.
    var isReused: Bool {
        switch self {
        case .exchange(let exchange): exchange.isReused
        case .stored: false
        case .made(let body): body.base?.channel.isReused ?? false
        }
    }
}

/// What was handed out of a body, up to a limit.
struct BodyMemory: Sendable {
    private let limit: Int
    private var pieces: [[UInt8]] = []
    private var byteCount = 0
    private var isWhole: Bool

    /// - Parameter isWhole: Whether nothing was handed out before.
    init(limit: Int, isWhole: Bool) {
        self.limit = limit
        self.isWhole = isWhole
    }

    mutating func add(_ piece: [UInt8]) {
        guard isWhole else { return }
        guard piece.count <= limit - byteCount else {
            (pieces, isWhole) = ([], false)
            return
        }
        byteCount += piece.count
        pieces.append(piece)
    }

    /// All that was handed out; `nil` where a part of it is not known any more.
    var bytes: [UInt8]? { isWhole ? Array(pieces.joined()) : nil }
}

/// Where the blocks of a body go. Its calls block: they are made on a worker, one at a time.
package protocol BlockSink: Sendable {
    /// Takes the next bytes of a body, all of them unless it throws or wants no more.
    /// - Returns: Whether more of the body is wanted.
    func write(_ bytes: RawSpan) throws(StorageError) -> Bool
    /// The workers on which it is called: those that all sessions share, unless it waits for the disk.
    var workers: BlockingWorkers { get }
}

extension BlockSink { package var workers: BlockingWorkers { .shared } }

extension FilePublisher: BlockSink {
    /// Appends bytes; more are always wanted.
    package func write(_ bytes: RawSpan) throws(StorageError) -> Bool {
        unsafe try bytes.withUnsafeBytes { bytes throws(StorageError) in unsafe try write(bytes) }
        return true
    }
}
