import MartletCore
import Synchronization

/// Reads body files to verify that they are unchanged.
struct QueuedBodyVerifier: Sendable {
    /// The state of a file that was read. While it is the same, the bytes are the same.
    struct Stamp: Hashable, Sendable {
        let identity: UInt64
        let byteCount: UInt64
        let modificationTime: Int64
    }

    private static let pieceByteCount = 256 * 1024

    let files: any FileSystem

    /// The error of an OpenSSL without SHA-256.
    static var noDigest: HTTPError {
        HTTPError(.systemFailed, phase: .preparing, message: "this machine's OpenSSL does not compute SHA-256")
    }

    /// Reads a file, and returns its fingerprint and its state. Blocks.
    func mark(of path: String) throws(HTTPError) -> (mark: QueuedBody.FileIdentity, stamp: Stamp) {
        guard let digest = try? MessageDigest(.sha256) else { throw QueuedBodyVerifier.noDigest }
        let (stamp, byteCount) = try HTTPError.storing { () throws(StorageError) in
            let file = try files.open(path, for: .reading)
            let stamp = try QueuedBodyVerifier.stamp(try files.status(of: file), path)
            var byteCount: UInt64 = 0
            while true {
                let piece = try files.readSome(file, limit: QueuedBodyVerifier.pieceByteCount, at: byteCount)
                if piece.isEmpty { return (stamp, byteCount) }
                digest.update(piece.span)
                byteCount += UInt64(piece.count)
            }
        }
        guard let sum = try? digest.finish() else { throw QueuedBodyVerifier.noDigest }
        return (QueuedBody.FileIdentity(byteCount: byteCount, digest: sum), stamp)
    }

    /// Verifies that a file is unchanged. Blocks.
    /// - Parameter known: The state at the last verification; with the same state the file is not read again.
    /// - Returns: The state; `nil` if the file has changed or does not exist.
    /// - Throws: An `HTTPError` if the file cannot be read at the moment.
    func check(_ path: String, _ mark: QueuedBody.FileIdentity, known: Stamp?) throws(HTTPError) -> Stamp? {
        let stamp: Stamp
        do throws(StorageError) { stamp = try QueuedBodyVerifier.stamp(try files.status(at: path), path) } catch {
            // Removed, or replaced by something that is not a file.
            if error.isMissingFile || error.operation == "open" { return nil }
            throw HTTPError(storing: error)
        }
        guard stamp.byteCount == mark.byteCount else { return nil }
        if stamp == known { return stamp }
        let (found, read) = try self.mark(of: path)
        return found == mark ? read : nil
    }

    private static func stamp(_ status: FileStatus, _ path: String) throws(StorageError) -> Stamp {
        guard status.kind == .file else { throw StorageError(operation: "open", path: path, code: 22) }
        return Stamp(identity: status.identity, byteCount: status.byteCount, modificationTime: status.modificationTime)
    }
}

/// Writes and hashes the body of a request to a file of the queue.
final class QueuedBodyWriter: Sendable {
    private struct State {
        var digest = try? MessageDigest(.sha256)
        var byteCount: UInt64 = 0
    }

    private let file: OpenFile
    private let files: any FileSystem
    private let directory: RecordDirectory
    private let workers: BlockingThreadPool
    /// The lock on the state, used by one worker at a time.
    private let state = Mutex(State())

    init(_ file: OpenFile, in directory: RecordDirectory, _ files: any FileSystem, _ workers: BlockingThreadPool) {
        (self.file, self.directory, self.files, self.workers) = (file, directory, files, workers)
    }

    /// Appends bytes to the file, and to its hash.
    func write(_ bytes: [UInt8]) async throws(HTTPError) {
        try await stored { [self] () throws(StorageError) in
            let offset = state.withLock { state in
                state.digest?.update(bytes.span)
                defer { state.byteCount += UInt64(bytes.count) }
                return state.byteCount
            }
            try files.write(all: bytes, to: file, at: offset)
        }
    }

    /// Syncs and closes the file.
    /// - Returns: The fingerprint of the file.
    func finish() async throws(HTTPError) -> QueuedBody.FileIdentity {
        try await stored { [self] () throws(StorageError) in try directory.finishBody(file) }
        let (digest, byteCount) = state.withLock { state in (try? state.digest?.finish(), state.byteCount) }
        guard let digest else { throw QueuedBodyVerifier.noDigest }
        return QueuedBody.FileIdentity(byteCount: byteCount, digest: digest)
    }

    private func stored(_ body: @escaping @Sendable () throws(StorageError) -> Void) async throws(HTTPError) {
        try await workers.run { () throws(HTTPError) in try HTTPError.storing(body) }
    }
}
