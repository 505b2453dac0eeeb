import MartletCaching
import MartletCore
import MartletStorage
import MartletTransport
import Synchronization

/// Where the body of one transfer goes: to its place in the part file, as far as it is still wanted.
final class SegmentSink: BlockSink {
    private struct State {
        /// How many bytes of the body come before the first that counts.
        var passing: UInt64
        /// How many behind those are to be compared with what is there.
        var comparing: UInt64
        /// Where those are in the file.
        var compareOffset: UInt64
        var consumed: UInt64 = 0
        var differs = false
        var exceedsLimit = false
        /// The file, once bytes have come.
        var file: OpenFile?
        /// Why there is none.
        var failure: (any Error)?
    }

    private let id: UInt64
    private let run: DownloadRun
    /// Opens the part file.
    private let opening: @Sendable () throws -> PartFile
    private let files: any FileSystem
    /// How long the body is said to be.
    private let announced: UInt64?
    /// Guards the above: the worker writes it, and the transfer reads it behind the last write.
    private let state: Mutex<State>

    init(
        _ id: UInt64, of run: DownloadRun, files: any FileSystem, passing: UInt64, comparing: UInt64,
        at compareOffset: UInt64, announced: UInt64?, opening: @escaping @Sendable () throws -> PartFile
    ) {
        self.id = id
        self.run = run
        self.opening = opening
        self.files = files
        self.announced = announced
        state = Mutex(State(passing: passing, comparing: comparing, compareOffset: compareOffset))
    }

    /// Whether bytes that were compared are not those that are there.
    var differs: Bool { state.withLock { $0.differs } }

    /// Whether the file is longer than it may be.
    var exceedsLimit: Bool { state.withLock { $0.exceedsLimit } }

    /// Whether bytes have come, and the file they go to is open.
    var isOpen: Bool { state.withLock { $0.file != nil } }

    /// Why there is no file for them.
    var failure: (any Error)? { state.withLock { $0.failure } }

    /// The whole of a file that is this small is written, synced and renamed by one piece of work: 512 KiB.
    private static let smallByteCount: UInt64 = 512 << 10

    /// Whether the body may be the whole of a small file.
    private var isSmall: Bool { announced.map { $0 <= SegmentSink.smallByteCount } ?? false }

    var workers: BlockingWorkers { isSmall ? .disk : .shared }

    /// Whether the body has come to the end that was announced.
    var isWhole: Bool { announced.map { $0 == state.withLock { $0.consumed } } ?? false }

    func write(_ bytes: RawSpan) throws(StorageError) -> Bool {
        try state.withLock { state throws(StorageError) in
            guard let file = file(&state) else { return false }
            state.consumed += UInt64(bytes.byteCount)
            // What is announced is read to its end, which costs nothing and keeps the connection.
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
            guard let place = run.accept(id, UInt64(rest.byteCount)) else { return false }
            guard !run.exceedsLimit(place.offset + place.count) else {
                state.exceedsLimit = true
                return false
            }
            var written = 0
            let wanted = Int(place.count)
            while written < wanted {
                written += try files.writeSome(
                    rest.extracting(written..<wanted), to: file, at: place.offset + UInt64(written))
            }
            run.wrote(id, place.offset..<place.offset + place.count)
            if isAtEnd, isSmall { run.publishAtOnce() }
            return place.wantsMore || isAtEnd
        }
    }

    /// The file, which is opened with the first bytes: for a small body, that is the same piece of work.
    private func file(_ state: inout State) -> OpenFile? {
        // Where it could not be opened, what comes next is not the beginning any more.
        if state.file != nil || state.failure != nil { return state.file }
        do {
            state.file = try opening().file
        } catch {
            state.failure = error
        }
        return state.file
    }

    private func isSame(_ bytes: RawSpan, in file: OpenFile, at offset: UInt64) throws(StorageError) -> Bool {
        let present = try files.read(file, count: bytes.byteCount, at: offset)
        guard present.count == bytes.byteCount else { return false }
        return unsafe bytes.withUnsafeBytes { unsafe $0.elementsEqual(present) }
    }
}
