import MartletCore
import Synchronization

/// Writes the wanted part of one transfer's body to its position in the part file.
final class SegmentSink: BlockSink {
    /// The progress of the body.
    struct State {
        /// The number of bytes to skip at the start of the body.
        fileprivate var passing: UInt64
        /// The number of bytes after those to compare with the received ones.
        fileprivate var comparing: UInt64
        /// The offset of the compared bytes in the file.
        fileprivate var compareOffset: UInt64
        var consumed: UInt64 = 0
        /// Whether the compared bytes differ.
        var differs = false
        /// Whether the file is longer than the limit.
        var exceedsLimit = false
        /// The file, once bytes have arrived.
        var file: OpenFile?
        /// The error of opening the file.
        var failure: (any Error)?
    }

    private let id: UInt64
    private let run: DownloadRun
    private let opening: @Sendable () throws -> PartFile
    private let files: any FileSystem
    /// The announced length of the body.
    private let announced: UInt64?
    /// The lock on the state: the worker writes it, and the transfer reads it after the last write.
    private let state: Mutex<State>

    init(
        _ id: UInt64, of run: DownloadRun, files: any FileSystem, passing: UInt64, comparing: UInt64,
        at compareOffset: UInt64, announced: UInt64?, opening: @escaping @Sendable () throws -> PartFile
    ) {
        (self.id, self.run, self.files) = (id, run, files)
        (self.opening, self.announced) = (opening, announced)
        state = Mutex(State(passing: passing, comparing: comparing, compareOffset: compareOffset))
    }

    /// The progress so far.
    var progress: State { state.withLock { $0 } }

    /// The maximum length of a file that one job of a worker writes, syncs and renames: 512 KiB.
    private static let smallByteCount: UInt64 = 512 << 10

    /// Whether the body may be the whole of a small file.
    private var isSmall: Bool { announced.map { $0 <= SegmentSink.smallByteCount } ?? false }

    var workers: BlockingThreadPool { isSmall && run.options.durability == .synced ? .disk : .shared }

    func write(_ bytes: RawSpan) throws(StorageError) -> Bool {
        try state.withLock { state throws(StorageError) in
            guard let file = file(&state) else { return false }
            state.consumed += UInt64(bytes.byteCount)
            // A body of announced length is read to its end, which costs nothing and keeps the connection reusable.
            let isAtEnd = announced.map { state.consumed >= $0 } ?? false
            let skipped = min(state.passing, UInt64(bytes.byteCount))
            state.passing -= skipped
            var rest = bytes.extracting(droppingFirst: Int(skipped))
            if state.comparing > 0, rest.byteCount > 0 {
                let count = Int(min(state.comparing, UInt64(rest.byteCount)))
                guard try isSame(rest.extracting(first: count), in: file, at: state.compareOffset) else {
                    state.differs = true
                    return false
                }
                state.comparing -= UInt64(count)
                state.compareOffset += UInt64(count)
                rest = rest.extracting(droppingFirst: count)
            }
            guard rest.byteCount > 0 else { return true }
            guard let accepted = run.accept(id, UInt64(rest.byteCount)) else { return false }
            guard !run.exceedsLimit(accepted.offset + accepted.count) else {
                state.exceedsLimit = true
                return false
            }
            var written = 0
            let wanted = Int(accepted.count)
            while written < wanted {
                written += try files.writeSome(
                    rest.extracting(written..<wanted), to: file, at: accepted.offset + UInt64(written))
            }
            run.wrote(id, accepted.offset..<accepted.offset + accepted.count)
            if isAtEnd, isSmall { run.publishAtOnce() }
            return accepted.wantsMore || isAtEnd
        }
    }

    /// Returns the file. The first bytes open it, in the same job of the worker.
    private func file(_ state: inout State) -> OpenFile? {
        // Not retried after a failure: the next bytes are not the start of the body.
        if state.file != nil || state.failure != nil { return state.file }
        do { state.file = try opening().file } catch { state.failure = error }
        return state.file
    }

    private func isSame(_ bytes: RawSpan, in file: OpenFile, at offset: UInt64) throws(StorageError) -> Bool {
        let present = try files.read(file, count: bytes.byteCount, at: offset)
        guard present.count == bytes.byteCount else { return false }
        return unsafe bytes.withUnsafeBytes { unsafe $0.elementsEqual(present) }
    }
}
