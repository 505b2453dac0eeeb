import Glibc
package import MartletStorage
import Synchronization

/// A file system whose calls fail where a test wants them to: the nth of a kind, those on a path, all from one on.
package final class FaultyFileSystem: FileSystem {
    /// A kind of call.
    package enum Call: Hashable, Sendable, CaseIterable {
        /// Opening a file for reading.
        case open
        /// Opening a file for writing, which may make it.
        case create
        /// Asking for a status.
        case status
        /// Reading.
        case read
        /// Writing.
        case write
        /// Setting room aside.
        case allocate
        /// Cutting to a length.
        case truncate
        /// Renaming.
        case rename
        /// Removing a name.
        case remove
        /// Making a folder.
        case makeFolder
        /// Listing a folder.
        case names
        /// Taking a lock.
        case lock
        /// Waiting for the disk, for a file or a folder.
        case sync
        /// Saying when a file was written.
        case setTime
    }

    /// Which calls fail, and how.
    package struct Fault: Sendable {
        /// The kind; `nil` for all.
        package var call: Call?
        /// What the path must contain; empty for any.
        package var path: String
        /// How many such calls succeed first.
        package var skipped: Int
        /// How many fail then.
        package var times: Int
        /// The errno they leave.
        package var code: Int32

        /// A fault of calls of a kind: the first and all others, unless said otherwise.
        package init(
            _ call: Call?, path: String = "", after skipped: Int = 0, times: Int = .max, code: Int32
        ) {
            self.call = call
            self.path = path
            self.skipped = skipped
            self.times = times
            self.code = code
        }
    }

    private struct State {
        var faults: [Fault] = []
        var counts: [Call: Int] = [:]
        /// Room for so many bytes more; `nil` for no end of it.
        var room: UInt64?
        /// How many bytes a call reads or writes at most.
        var pieceLimit = Int.max
        /// Calls until nothing works any more, as after the end of the process.
        var callsLeft = Int.max
        /// What happens before the next call of a kind, on a path or on any.
        var interludes: [Call: (path: String?, body: @Sendable () -> Void)] = [:]
    }

    private let base: any FileSystem
    private let isAtHand: Bool
    /// Written by the test, and by any thread that makes a call.
    private let state = Mutex(State())

    /// A file system that works, so far.
    ///
    /// - Parameter isAtHand: whether all files count as being in memory, so that they can be read without waiting, by calls
    ///   that count as the others of their kinds do.
    package init(_ base: any FileSystem = LinuxFileSystem(), isAtHand: Bool = false) {
        self.base = base
        self.isAtHand = isAtHand
    }

    /// Adds a fault.
    package func fail(_ fault: Fault) {
        state.withLock { $0.faults.append(fault) }
    }

    /// Lets calls read or write so many bytes at most, at least 1.
    package func limitPieces(to byteCount: Int) {
        state.withLock { $0.pieceLimit = max(1, byteCount) }
    }

    /// Makes the disk full once so many bytes more were written or set aside.
    package func fill(after byteCount: UInt64) {
        state.withLock { $0.room = byteCount }
    }

    /// Lets so many calls more succeed, and none from then on: what is on disk then is what a killed process leaves.
    package func stop(after calls: Int) {
        state.withLock { $0.callsLeft = calls }
    }

    /// Has something happen just before the next call of a kind, on the thread that makes it; once. It may say what happens
    /// before the call behind that one.
    /// - Parameter path: Which path the call must be about, to the letter; of two the new one. `nil` for any.
    package func interrupt(_ call: Call, at path: String? = nil, with body: @escaping @Sendable () -> Void) {
        state.withLock { $0.interludes[call] = (path, body) }
    }

    /// Makes all calls work again.
    package func mend() {
        state.withLock { state in
            state.faults = []
            state.room = nil
            state.pieceLimit = .max
            state.callsLeft = .max
        }
    }

    /// How many calls of a kind were made; of any, for `nil`.
    package func count(of call: Call? = nil) -> Int {
        state.withLock { state in
            call.map { state.counts[$0, default: 0] } ?? state.counts.values.reduce(0, +)
        }
    }

    // MARK: Calls

    package func open(_ path: String, for opening: FileOpening) throws(StorageError) -> OpenFile {
        try check(opening == .reading ? .open : .create, path)
        return try base.open(path, for: opening)
    }

    package func status(of file: OpenFile) throws(StorageError) -> FileStatus {
        try check(.status, file.path)
        return try base.status(of: file)
    }

    package func status(at path: String) throws(StorageError) -> FileStatus {
        try check(.status, path)
        return try base.status(at: path)
    }

    package func readSome(_ file: OpenFile, limit: Int, at offset: UInt64) throws(StorageError) -> [UInt8] {
        try check(.read, file.path)
        return try base.readSome(file, limit: min(limit, state.withLock { $0.pieceLimit }), at: offset)
    }

    package func writeSome(
        _ bytes: RawSpan, to file: OpenFile, at offset: UInt64
    ) throws(StorageError) -> Int {
        try check(.write, file.path)
        let count = try take(upTo: bytes.byteCount, path: file.path)
        return try base.writeSome(bytes.extracting(first: count), to: file, at: offset)
    }

    package func allocate(_ byteCount: UInt64, for file: OpenFile) throws(StorageError) {
        try check(.allocate, file.path)
        let isTooMuch = state.withLock { $0.room.map { byteCount > $0 } ?? false }
        if isTooMuch { throw StorageError(operation: "fallocate", path: file.path, code: ENOSPC) }
        try base.allocate(byteCount, for: file)
    }

    package func truncate(_ file: OpenFile, to byteCount: UInt64) throws(StorageError) {
        try check(.truncate, file.path)
        try base.truncate(file, to: byteCount)
    }

    package func rename(_ path: String, to target: String) throws(StorageError) {
        try check(.rename, target)
        try base.rename(path, to: target)
    }

    package func renameWithoutReplacing(_ path: String, to target: String) throws(StorageError) {
        try check(.rename, target)
        try base.renameWithoutReplacing(path, to: target)
    }

    package func sync(_ file: OpenFile) throws(StorageError) {
        try check(.sync, file.path)
        try base.sync(file)
    }

    package func syncFolder(_ path: String) throws(StorageError) {
        try check(.sync, path)
        try base.syncFolder(path)
    }

    package func setModificationTime(_ seconds: Int64, of file: OpenFile) throws(StorageError) {
        try check(.setTime, file.path)
        try base.setModificationTime(seconds, of: file)
    }

    package func remove(_ path: String) throws(StorageError) {
        try check(.remove, path)
        try base.remove(path)
    }

    package func makeFolder(_ path: String) throws(StorageError) {
        try check(.makeFolder, path)
        try base.makeFolder(path)
    }

    package func names(inFolder path: String) throws(StorageError) -> [String] {
        try check(.names, path)
        return try base.names(inFolder: path)
    }

    package func tryLock(_ file: OpenFile) throws(StorageError) -> Bool {
        try check(.lock, file.path)
        return try base.tryLock(file)
    }

    package func unlock(_ file: OpenFile) {
        base.unlock(file)
    }

    package func supportsNonBlockingReads(inFolder path: String) -> Bool { isAtHand }

    package func openNonBlocking(_ path: String) throws(StorageError) -> OpenFile {
        try check(.open, path)
        return try base.open(path, for: .reading)
    }

    package func readSomeNonBlocking(
        _ file: OpenFile, limit: Int, at offset: UInt64
    ) throws(StorageError) -> [UInt8] {
        try readSome(file, limit: limit, at: offset)
    }

    // MARK: Faults

    private func check(_ call: Call, _ path: String) throws(StorageError) {
        let interlude = state.withLock { state -> (@Sendable () -> Void)? in
            guard let interlude = state.interludes[call], interlude.path == nil || interlude.path == path
            else { return nil }
            state.interludes[call] = nil
            return interlude.body
        }
        interlude?()
        let code = state.withLock { state -> Int32? in
            state.counts[call, default: 0] += 1
            guard state.callsLeft > 0 else { return EIO }
            if state.callsLeft < .max { state.callsLeft -= 1 }
            for index in state.faults.indices {
                let fault = state.faults[index]
                guard fault.call == nil || fault.call == call, fault.path.isEmpty || path.contains(fault.path)
                else { continue }
                if fault.skipped > 0 {
                    state.faults[index].skipped -= 1
                } else if fault.times > 0 {
                    if fault.times < .max { state.faults[index].times -= 1 }
                    return fault.code
                }
            }
            return nil
        }
        if let code { throw StorageError(operation: "\(call)", path: path, code: code) }
    }

    /// How many of so many bytes may be written now.
    private func take(upTo byteCount: Int, path: String) throws(StorageError) -> Int {
        let count = state.withLock { state -> Int in
            var count = min(byteCount, state.pieceLimit)
            guard let room = state.room else { return count }
            count = min(count, Int(clamping: room))
            state.room = room - UInt64(count)
            return count
        }
        guard count > 0 || byteCount == 0 else {
            throw StorageError(operation: "pwrite", path: path, code: ENOSPC)
        }
        return count
    }
}
