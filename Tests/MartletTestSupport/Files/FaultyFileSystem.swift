import Glibc
package import MartletStorage
import Synchronization

/// A file system whose calls fail as configured: the nth call of a kind, calls on a path, or all calls from one on.
package final class FaultyFileSystem: FileSystem {
    /// A kind of call.
    package enum Call: Hashable, Sendable, CaseIterable {
        /// A call that opens a file for reading.
        case open
        /// A call that opens a file for writing and may create it.
        case create
        /// A call that reads a file's status.
        case status
        /// A call that reads bytes.
        case read
        /// A call that writes bytes.
        case write
        /// A call that preallocates space.
        case allocate
        /// A call that truncates a file.
        case truncate
        /// A call that renames a file.
        case rename
        /// A call that removes a name.
        case remove
        /// A call that creates a directory.
        case makeDirectory
        /// A call that lists a directory.
        case names
        /// A call that acquires a lock.
        case lock
        /// A call that syncs a file or a directory to disk.
        case sync
        /// A call that sets a file's modification time.
        case setTime
    }

    /// The calls that fail, and their error.
    package struct Fault: Sendable {
        /// The kind of the calls; `nil` for all.
        package var call: Call?
        /// A text that the path must contain; empty for any path.
        package var path: String
        /// The number of matching calls that succeed first.
        package var skipped: Int
        /// The number of calls that then fail.
        package var times: Int
        /// The `errno` of the failures.
        package var code: Int32

        /// Creates a fault; by default all calls of the kind fail.
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
        /// The remaining space in bytes; `nil` for no limit.
        var room: UInt64?
        /// The maximum number of bytes that a call reads or writes.
        var pieceLimit = Int.max
        /// The number of calls before all calls fail, as after the end of the process.
        var callsLeft = Int.max
        /// The actions before the next call of a kind, on one path or on any.
        var interludes: [Call: (path: String?, body: @Sendable () -> Void)] = [:]
    }

    private let base: any FileSystem
    private let isAtHand: Bool
    /// The state, which the test and each calling thread change.
    private let state = Mutex(State())

    /// Creates a file system without faults.
    ///
    /// - Parameter isAtHand: Whether all files count as cached, so that nonblocking reads succeed. These reads count
    ///   like the other calls of their kinds.
    package init(_ base: any FileSystem = LinuxFileSystem(), isAtHand: Bool = false) {
        self.base = base
        self.isAtHand = isAtHand
    }

    /// Adds a fault.
    package func fail(_ fault: Fault) {
        state.withLock { $0.faults.append(fault) }
    }

    /// Limits each read and write to a number of bytes, at least 1.
    package func limitPieces(to byteCount: Int) {
        state.withLock { $0.pieceLimit = max(1, byteCount) }
    }

    /// Makes the disk full after `byteCount` more bytes were written or preallocated.
    package func fill(after byteCount: UInt64) {
        state.withLock { $0.room = byteCount }
    }

    /// Lets `calls` more calls succeed and then none. The disk then has the state that a killed process leaves.
    package func stop(after calls: Int) {
        state.withLock { $0.callsLeft = calls }
    }

    /// Runs an action once just before the next call of a kind, on the calling thread. The action can set another one
    /// for the following call.
    /// - Parameter path: The exact path of the call; `nil` for any. A rename matches its new path.
    package func interrupt(_ call: Call, at path: String? = nil, with body: @escaping @Sendable () -> Void) {
        state.withLock { $0.interludes[call] = (path, body) }
    }

    /// Removes all faults.
    package func mend() {
        state.withLock { state in
            state.faults = []
            state.room = nil
            state.pieceLimit = .max
            state.callsLeft = .max
        }
    }

    /// Returns the number of calls of a kind, or of all kinds for `nil`.
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

    package func syncDirectory(_ path: String) throws(StorageError) {
        try check(.sync, path)
        try base.syncDirectory(path)
    }

    package func setModificationTime(_ seconds: Int64, of file: OpenFile) throws(StorageError) {
        try check(.setTime, file.path)
        try base.setModificationTime(seconds, of: file)
    }

    package func remove(_ path: String) throws(StorageError) {
        try check(.remove, path)
        try base.remove(path)
    }

    package func makeDirectory(_ path: String) throws(StorageError) {
        try check(.makeDirectory, path)
        try base.makeDirectory(path)
    }

    package func names(inDirectory path: String) throws(StorageError) -> [String] {
        try check(.names, path)
        return try base.names(inDirectory: path)
    }

    package func tryLock(_ file: OpenFile) throws(StorageError) -> Bool {
        try check(.lock, file.path)
        return try base.tryLock(file)
    }

    package func unlock(_ file: OpenFile) {
        base.unlock(file)
    }

    package func supportsNonBlockingReads(inDirectory path: String) -> Bool { isAtHand }

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

    /// Returns how many of the bytes can be written now.
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
