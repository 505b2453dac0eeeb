import MartletStorage
import MartletTransport
import Synchronization

/// Has blocks written, to a file mostly, while the next one is received.
///
/// There are two blocks: a worker writes one while the other is filled. Where the file is the slower side its reader waits,
/// and so the sender does, by the TCP window.
final class WriteBehind: Sendable {
    private struct State {
        /// Blocks that nobody has.
        var empty: [FileBlock] = []
        var blockCount = 0
        var isWriting = false
        /// Whether the sink wants no more.
        var isSated = false
        var failure: StorageError?
        /// Who waits for the worker; there is one reader.
        var waiter: Waiter<Void>?
    }

    /// The size of a block, 512 KiB.
    static let blockByteCount = 512 << 10

    private let sink: any BlockSink
    private let blockByteCount: Int
    /// Guards the above: the reader, and the worker between two writes.
    private let state = Mutex(State())

    /// - Parameter expected: How much will be written, where that is known: small files get small blocks.
    init(_ sink: any BlockSink, expected: UInt64?) {
        self.sink = sink
        blockByteCount = Int(min(expected ?? .max, UInt64(WriteBehind.blockByteCount)))
    }

    /// A block to fill; waits while both are full.
    /// - Throws: What an earlier write threw.
    func emptyBlock() async throws(StorageError) -> FileBlock {
        while true {
            let block = try state.withLock { state throws(StorageError) -> FileBlock? in
                if let failure = state.failure { throw failure }
                if let block = state.empty.popLast() { return block }
                guard state.blockCount < 2 else { return nil }
                state.blockCount += 1
                return FileBlock(capacity: blockByteCount)
            }
            if let block { return block }
            await waitForWorker()
        }
    }

    /// Whether the worker has nothing to do.
    var isIdle: Bool { state.withLock { !$0.isWriting } }

    /// Has a block written; waits until the one before is. A sink that has said that it wants no more gets none.
    /// - Throws: What an earlier write threw.
    func write(_ block: FileBlock) async throws(StorageError) {
        await waitForWorker()
        let isWanted = try state.withLock { state throws(StorageError) in
            if let failure = state.failure { throw failure }
            guard !state.isSated else { return false }
            state.isWriting = true
            return true
        }
        guard isWanted else { return }
        sink.workers.submit {
            var failure: StorageError?
            var isSated = false
            do throws(StorageError) {
                isSated = try !block.empty { bytes throws(StorageError) in try self.sink.write(bytes) }
            } catch {
                failure = error
            }
            let waiter = self.state.withLock { state in
                state.isWriting = false
                state.isSated = isSated
                state.failure = failure
                state.empty.append(block)
                return state.waiter.take()
            }
            waiter?.resume(returning: ())
        }
    }

    /// Whether the sink has said that it wants no more.
    var isSated: Bool { state.withLock { $0.isSated } }

    /// Waits until all is written.
    /// - Throws: What a write threw.
    func finish() async throws(StorageError) {
        await waitForWorker()
        if let failure = state.withLock({ $0.failure }) { throw failure }
    }

    /// Waits for a write that runs.
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
/// One of them has it at a time; handing it over is done under the lock of ``WriteBehind``.
@safe final class FileBlock: @unchecked Sendable {
    private let memory: UnsafeMutableRawBufferPointer
    /// How many bytes there are.
    private(set) var count = 0

    init(capacity: Int) {
        unsafe memory = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, capacity), alignment: 4096)
    }

    deinit { unsafe memory.deallocate() }

    /// For how many more bytes there is room.
    var freeByteCount: Int { unsafe memory.count - count }

    var isFull: Bool { unsafe count == memory.count }

    /// Lets a closure fill the free part.
    /// - Parameter body: Returns how many bytes it put there, and what else it has to say.
    func fill<Value, Failure: Error>(
        _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> (Int, Value)
    ) throws(Failure) -> Value {
        let (added, value) = unsafe try body(UnsafeMutableRawBufferPointer(rebasing: memory[count...]))
        count += added
        return value
    }

    /// Copies as much as there is room for; how much that was.
    func append(_ bytes: ArraySlice<UInt8>) -> Int {
        let length = unsafe min(bytes.count, memory.count - count)
        unsafe bytes.withUnsafeBytes { source in
            unsafe memory[count...].copyBytes(from: source.prefix(length))
        }
        count += length
        return length
    }

    /// Hands all bytes to a closure and is empty then, also where it throws.
    func empty<Failure: Error>(_ body: (RawSpan) throws(Failure) -> Bool) throws(Failure) -> Bool {
        defer { count = 0 }
        return try body(unsafe UnsafeRawBufferPointer(rebasing: memory[..<count]).bytes)
    }
}
