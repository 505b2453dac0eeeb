import Synchronization

/// A copier that writes a body while the rest of it is received.
package struct BodyCopier: Sendable {
    private let writer: BlockWriter
    private let call: Call?

    /// Creates a copier.
    /// - Parameters:
    ///   - sink: The destination of the body.
    ///   - expected: The expected number of bytes, if it is known.
    ///   - call: The call whose response is written, for errors.
    package init(_ sink: any BlockSink, expected: UInt64?, call: Call?) {
        writer = BlockWriter(sink, expected: expected)
        self.call = call
    }

    /// Writes the rest of a body, until it ends or the sink accepts no more.
    func copy(_ reader: BodyReader) async throws {
        if let exchange = reader.plainExchange {
            try await copyReceived(reader, exchange)
        } else {
            while !writer.hasEnough, let piece = try await reader.next() { try await append(piece[...]) }
        }
    }

    /// Receives directly into the blocks that are written.
    private func copyReceived(_ reader: BodyReader, _ exchange: Exchange) async throws {
        var hasMore = true
        while hasMore, !writer.hasEnough {
            let block = try await emptyBlock()
            // A partly filled block is written when no more bytes are available and the previous write has ended.
            do {
                hasMore = try await reader.fill(
                    block, from: exchange, whereNothingCame: { writer.isIdle },
                    untilWanted: { await writer.waitForWorker() })
            } catch {
                // The bytes before the failure are written too: a download resumes after them.
                try await write(block)
                throw error
            }
            try await write(block)
        }
    }

    /// Appends bytes to those written before.
    package func append(_ bytes: ArraySlice<UInt8>) async throws(HTTPError) {
        var rest = bytes
        while !rest.isEmpty {
            let block = try await emptyBlock()
            rest = rest.dropFirst(block.append(rest))
            try await write(block)
        }
    }

    private func emptyBlock() async throws(HTTPError) -> FileBlock {
        try await mapped { () async throws(StorageError) in try await writer.emptyBlock() }
    }

    private func write(_ block: FileBlock) async throws(HTTPError) {
        guard block.count > 0 else { return }
        try await mapped { () async throws(StorageError) in try await writer.write(block) }
    }

    /// Waits until everything is written.
    package func finish() async throws(HTTPError) {
        try await mapped { () async throws(StorageError) in try await writer.finish() }
    }

    /// Waits for a running write and ignores its result.
    package func waitForWorker() async { await writer.waitForWorker() }

    private func mapped<Value: Sendable>(_ body: () async throws(StorageError) -> Value) async throws(HTTPError)
        -> Value
    {
        do throws(StorageError) { return try await body() } catch {
            throw HTTPError(storage: error, method: call?.method, url: call?.url)
        }
    }
}

extension ResponseBody {
    /// Writes the rest of the body while it is received, until the body ends or the sink accepts no more. No write runs
    /// after this returns or throws.
    /// - Parameter expected: The expected number of bytes, if it is known.
    /// - Throws: An ``HTTPError``, such as `.fileFailed` and `.diskFull`; `CancellationError`.
    package func copy(into sink: any BlockSink, expected: UInt64?) async throws {
        let copier = BodyCopier(sink, expected: expected, call: reader.call)
        do {
            try await copier.copy(reader)
            try await copier.finish()
        } catch {
            await copier.waitForWorker()
            throw error
        }
    }

    /// Ends the body: no more of it is read, and its connection is not reused.
    package func reject() { reader.channel.reject() }
}

/// The destination of the blocks of a body. Its functions may block: they run on a worker thread, one at a time.
package protocol BlockSink: Sendable {
    /// Writes the next bytes of a body: all of them, unless it throws or accepts no more.
    /// - Returns: Whether the sink accepts more of the body.
    func write(_ bytes: RawSpan) throws(StorageError) -> Bool
    /// The worker threads that call the sink; by default those that all sessions share.
    var workers: BlockingThreadPool { get }
}

extension BlockSink { package var workers: BlockingThreadPool { .shared } }

extension AtomicFileWriter: BlockSink {
    /// Appends bytes; more are always accepted.
    package func write(_ bytes: RawSpan) throws(StorageError) -> Bool {
        unsafe try bytes.withUnsafeBytes { bytes throws(StorageError) in unsafe try write(bytes) }
        return true
    }
}

/// A writer that writes a block to a sink, mostly a file, while the next block is received.
///
/// There are two blocks: a worker writes one while the other is filled. If the file is slower than the network, the
/// reader waits, and the TCP window slows the sender down.
final class BlockWriter: Sendable {
    private struct State {
        /// The blocks that are not in use.
        var empty: [FileBlock] = []
        var blockCount = 0
        var isWriting = false
        /// The result of the last write: whether the sink accepts more.
        var wantsMore = Result<Bool, StorageError>.success(true)
        /// The waiter for the worker; there is only one reader.
        var waiter: Waiter<Void>?
    }

    /// The size of a block, 512 KiB.
    static let blockByteCount = 512 << 10

    private let sink: any BlockSink
    private let blockByteCount: Int
    /// The lock on the state, used by the reader, and by the worker between two writes.
    private let state = Mutex(State())

    /// Creates a writer.
    /// - Parameter expected: The number of bytes to write, if it is known: small files use small blocks.
    init(_ sink: any BlockSink, expected: UInt64?) {
        self.sink = sink
        blockByteCount = Int(min(expected ?? .max, UInt64(BlockWriter.blockByteCount)))
    }

    /// Returns an empty block; waits while both blocks are full.
    /// - Throws: The error that an earlier write failed with.
    func emptyBlock() async throws(StorageError) -> FileBlock {
        while true {
            let block = try state.withLock { state throws(StorageError) -> FileBlock? in
                _ = try state.wantsMore.get()
                if let block = state.empty.popLast() { return block }
                guard state.blockCount < 2 else { return nil }
                state.blockCount += 1
                return FileBlock(capacity: blockByteCount)
            }
            if let block { return block }
            await waitForWorker()
        }
    }

    var isIdle: Bool { state.withLock { !$0.isWriting } }

    /// Waits for the previous write, then starts to write a block, unless the sink accepts no more.
    /// - Throws: The error that an earlier write failed with.
    func write(_ block: FileBlock) async throws(StorageError) {
        await waitForWorker()
        let isWanted = try state.withLock { state throws(StorageError) in
            state.isWriting = try state.wantsMore.get()
            return state.isWriting
        }
        guard isWanted else { return }
        sink.workers.submit {
            let wantsMore = Result { () throws(StorageError) in
                try block.empty { bytes throws(StorageError) in try self.sink.write(bytes) }
            }
            let waiter = self.state.withLock { state in
                state.isWriting = false
                state.wantsMore = wantsMore
                state.empty.append(block)
                return state.waiter.take()
            }
            waiter?.resume(returning: ())
        }
    }

    /// Whether the sink accepts no more.
    var hasEnough: Bool { if case .success(false) = state.withLock({ $0.wantsMore }) { true } else { false } }

    /// Waits until everything is written.
    /// - Throws: The error that a write failed with.
    func finish() async throws(StorageError) {
        await waitForWorker()
        _ = try state.withLock { $0.wantsMore }.get()
    }

    /// Waits for a running write, without throwing its error.
    func waitForWorker() async {
        guard !isIdle else { return }
        await suspend { (waiter: Waiter<Void>) in
            let isNeeded = state.withLock { state in
                guard state.isWriting else { return false }
                state.waiter = waiter
                return true
            }
            if !isNeeded { waiter.resume(returning: ()) }
        }
    }
}

/// A block of memory between a body and a file. The receiving task fills it; the worker thread writes and empties it.
///
/// `@unchecked Sendable`: only one of the two uses a block at a time; ``BlockWriter`` hands it over under its lock.
@safe final class FileBlock: @unchecked Sendable {
    private let memory: UnsafeMutableRawBufferPointer
    /// The number of bytes in the block.
    private(set) var count = 0

    init(capacity: Int) {
        unsafe memory = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, capacity), alignment: 4096)
    }

    deinit { unsafe memory.deallocate() }

    /// The number of bytes that can still be added.
    var freeByteCount: Int { unsafe memory.count - count }

    var isFull: Bool { unsafe count == memory.count }

    /// Calls a closure that fills the free part, and returns the closure's result.
    /// - Parameter body: The closure; returns the number of bytes that it added, and a result.
    func fill<Value, Failure: Error>(_ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> (Int, Value))
        throws(Failure) -> Value
    {
        let (added, value) = unsafe try body(UnsafeMutableRawBufferPointer(rebasing: memory[count...]))
        count += added
        return value
    }

    /// Copies as many bytes as fit, and returns their number.
    func append(_ bytes: ArraySlice<UInt8>) -> Int {
        let length = unsafe min(bytes.count, memory.count - count)
        unsafe bytes.withUnsafeBytes { source in unsafe memory[count...].copyBytes(from: source.prefix(length)) }
        count += length
        return length
    }

    /// Returns the given number of bytes from the end of the block.
    func last(_ byteCount: Int) -> [UInt8] { unsafe Array(memory[..<count].suffix(byteCount)) }

    /// Passes all bytes to a closure and empties the block, also if the closure throws.
    func empty<Failure: Error>(_ body: (RawSpan) throws(Failure) -> Bool) throws(Failure) -> Bool {
        defer { count = 0 }
        return try body(unsafe UnsafeRawBufferPointer(rebasing: memory[..<count]).bytes)
    }
}
