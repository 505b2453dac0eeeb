import MartletCaching
import MartletCore
import MartletHosts
import MartletStorage
import MartletTransport
import Synchronization

/// Reads files that are bodies, to tell whether they are what they were.
struct FrozenBodyReader: Sendable {
    /// By what a file is known that was read already: as long as this is the same, so are its bytes.
    struct Stamp: Hashable, Sendable {
        let identity: UInt64
        let byteCount: UInt64
        let modificationTime: Int64
    }

    private static let pieceByteCount = 256 * 1024

    let files: any FileSystem

    /// That this machine's OpenSSL has no SHA-256.
    static var noDigest: HTTPError {
        HTTPError(
            .systemFailed, phase: .preparing, message: "this machine's OpenSSL does not compute SHA-256")
    }

    /// What a file is. Blocks as long as it is read.
    func mark(of path: String) throws(HTTPError) -> (mark: FrozenBody.FileMark, stamp: Stamp) {
        guard let digest = try? MessageDigest(.sha256) else { throw FrozenBodyReader.noDigest }
        var byteCount: UInt64 = 0
        let stamp: Stamp
        do throws(StorageError) {
            let file = try files.open(path, for: .reading)
            stamp = try FrozenBodyReader.stamp(try files.status(of: file), path)
            while true {
                let piece = try files.readSome(file, limit: FrozenBodyReader.pieceByteCount, at: byteCount)
                if piece.isEmpty { break }
                digest.update(piece.span)
                byteCount += UInt64(piece.count)
            }
        } catch {
            throw HTTPError(storing: error)
        }
        guard let sum = try? digest.finish() else { throw FrozenBodyReader.noDigest }
        return (FrozenBody.FileMark(byteCount: byteCount, digest: sum), stamp)
    }

    /// Whether a file is what it was. Blocks.
    /// - Parameter known: What it looked like when that was found out last; where it looks the same it is not read again.
    /// - Returns: What it looks like; `nil` where it is not what it was, or not there.
    /// - Throws: Where it cannot be read just now.
    func check(_ path: String, _ mark: FrozenBody.FileMark, known: Stamp?) throws(HTTPError) -> Stamp? {
        let stamp: Stamp
        do throws(StorageError) {
            stamp = try FrozenBodyReader.stamp(try files.status(at: path), path)
        } catch {
            // Gone, or something else in its place.
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
        return Stamp(
            identity: status.identity, byteCount: status.byteCount, modificationTime: status.modificationTime)
    }
}

/// Writes the body of a request to a file of its own, and hashes it on the way.
final class FrozenBodyWriter: Sendable {
    private struct State {
        var digest: MessageDigest?
        var byteCount: UInt64 = 0
    }

    private let file: OpenFile
    private let files: any FileSystem
    private let folder: RecordFolder
    private let workers: BlockingWorkers
    /// Guards the above: one worker at a time.
    private let state = Mutex(State())

    init(_ file: OpenFile, in folder: RecordFolder, _ files: any FileSystem, _ workers: BlockingWorkers) {
        self.file = file
        self.folder = folder
        self.files = files
        self.workers = workers
        state.withLock { $0.digest = try? MessageDigest(.sha256) }
    }

    /// Writes more of the body.
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

    /// Waits for the disk.
    /// - Returns: What the file is.
    func finish() async throws(HTTPError) -> FrozenBody.FileMark {
        try await stored { [self] () throws(StorageError) in try folder.finishBody(file) }
        let (digest, byteCount) = state.withLock { state in (try? state.digest?.finish(), state.byteCount) }
        guard let digest else { throw FrozenBodyReader.noDigest }
        return FrozenBody.FileMark(byteCount: byteCount, digest: digest)
    }

    private func stored(_ body: @escaping @Sendable () throws(StorageError) -> Void) async throws(HTTPError) {
        try await workers.run { () throws(HTTPError) in try HTTPError.storing(body) }
    }
}
