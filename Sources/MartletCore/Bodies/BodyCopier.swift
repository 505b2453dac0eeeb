import Synchronization

/// Writes a body while the rest of it is received.
package struct BodyCopier: Sendable {
    private let writer: WriteBehind
    private let call: Call?

    /// - Parameters:
    ///   - sink: The destination of the body.
    ///   - expected: The number of bytes that will come, if it is known.
    ///   - call: The call whose response is written, for errors.
    package init(_ sink: any BlockSink, expected: UInt64?, call: Call?) {
        writer = WriteBehind(sink, expected: expected)
        self.call = call
    }

    /// Writes the rest of a body, up to its end, or until the sink wants no more.
    func pour(_ reader: BodyReader) async throws {
        if let exchange = reader.plainExchange {
            try await copyReceived(reader, exchange)
        } else {
            while !writer.isSated, let piece = try await reader.next() { try await append(piece[...]) }
        }
    }

    /// Receives straight into the blocks that are written.
    private func copyReceived(_ reader: BodyReader, _ exchange: Exchange) async throws {
        var hasMore = true
        while hasMore, !writer.isSated {
            let block = try await emptyBlock()
            // What has come is written while nothing else comes; while a write runs, more of it is gathered.
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

    /// Writes bytes after those before.
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

    /// Waits for a running write, whatever its result.
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
    /// Writes the rest of the body while it is received, up to its end, or until the sink wants no more: then the
    /// connection is not used again. When it returns or throws, no write runs.
    /// - Parameter expected: The maximum number of bytes that are wanted.
    /// - Throws: An ``HTTPError``, such as `.fileFailed` and `.diskFull`; `CancellationError`.
    package func pour(into sink: any BlockSink, expected: UInt64?) async throws {
        let pouring = BodyCopier(sink, expected: expected, call: reader.call)
        do {
            try await pouring.pour(reader)
            try await pouring.finish()
        } catch {
            await pouring.waitForWorker()
            throw error
        }
    }

    /// Ends the body: nothing more is read of it, and its connection is not used again.
    package func refuse() { reader.channel.refuse() }
}

/// The destination of the blocks of a body. Its functions block: they are called on a worker, one at a time.
package protocol BlockSink: Sendable {
    /// Writes the next bytes of a body: all of them, unless it throws or wants no more.
    /// - Returns: Whether more of the body is wanted.
    func write(_ bytes: RawSpan) throws(StorageError) -> Bool
    /// The workers on which it is called: those that all sessions share, unless it waits for the disk.
    var workers: BlockingThreadPool { get }
}

extension BlockSink { package var workers: BlockingThreadPool { .shared } }

extension AtomicFileWriter: BlockSink {
    /// Appends bytes; more are always wanted.
    package func write(_ bytes: RawSpan) throws(StorageError) -> Bool {
        unsafe try bytes.withUnsafeBytes { bytes throws(StorageError) in unsafe try write(bytes) }
        return true
    }
}

/// Writes blocks, mostly to a file, while the next one is received.
///
/// There are two blocks: a worker writes one while the other is filled. If the file is slower than the network, the reader waits,
/// and the TCP window slows the sender down.
final class WriteBehind: Sendable {
    private struct State {
        /// Blocks that are not in use.
        var empty: [FileBlock] = []
        var blockCount = 0
        var isWriting = false
        /// The result of the last write: whether the sink wants more.
        var wantsMore = Result<Bool, StorageError>.success(true)
        /// The wait for the worker; there is one reader.
        var waiter: Waiter<Void>?
    }

    /// The size of a block, 512 KiB.
    static let blockByteCount = 512 << 10

    private let sink: any BlockSink
    private let blockByteCount: Int
    /// Guards the above: the reader, and the worker between two writes.
    private let state = Mutex(State())

    /// - Parameter expected: The number of bytes that will be written, if it is known: small files get small blocks.
    init(_ sink: any BlockSink, expected: UInt64?) {
        self.sink = sink
        blockByteCount = Int(min(expected ?? .max, UInt64(WriteBehind.blockByteCount)))
    }

    /// A block to fill; waits while both are full.
    /// - Throws: The error of an earlier write.
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

    /// Writes a block after the one before is written. A sink that wants no more receives none.
    /// - Throws: The error of an earlier write.
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

    /// Whether the sink wants no more.
    var isSated: Bool { if case .success(false) = state.withLock({ $0.wantsMore }) { true } else { false } }

    /// Waits until everything is written.
    /// - Throws: The error of a write.
    func finish() async throws(StorageError) {
        await waitForWorker()
        _ = try state.withLock { $0.wantsMore }.get()
    }

    /// Waits for a running write.
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

/// A block of memory between a body and a file: filled by the task that receives, emptied by the worker that writes.
///
/// One of them has it at a time; it is handed over under the lock of ``WriteBehind``.
@safe final class FileBlock: @unchecked Sendable {
    private let memory: UnsafeMutableRawBufferPointer
    /// The number of bytes in it.
    private(set) var count = 0

    init(capacity: Int) {
        unsafe memory = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, capacity), alignment: 4096)
    }

    deinit { unsafe memory.deallocate() }

    /// The number of bytes for which there is room.
    var freeByteCount: Int { unsafe memory.count - count }

    var isFull: Bool { unsafe count == memory.count }

    /// Lets a closure fill the free part.
    /// - Parameter body: Returns the number of bytes that it added, and a result.
    func fill<Value, Failure: Error>(_ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> (Int, Value))
        throws(Failure) -> Value
    {
        let (added, value) = unsafe try body(UnsafeMutableRawBufferPointer(rebasing: memory[count...]))
        count += added
        return value
    }

    /// Copies as many bytes as there is room for, and returns their number.
    func append(_ bytes: ArraySlice<UInt8>) -> Int {
        let length = unsafe min(bytes.count, memory.count - count)
        unsafe bytes.withUnsafeBytes { source in unsafe memory[count...].copyBytes(from: source.prefix(length)) }
        count += length
        return length
    }

    /// The bytes that were added last.
    func last(_ byteCount: Int) -> [UInt8] { unsafe Array(memory[..<count].suffix(byteCount)) }

    /// Passes all bytes to a closure, and is empty afterwards, also if it throws.
    func empty<Failure: Error>(_ body: (RawSpan) throws(Failure) -> Bool) throws(Failure) -> Bool {
        defer { count = 0 }
        return try body(unsafe UnsafeRawBufferPointer(rebasing: memory[..<count]).bytes)
    }
}
