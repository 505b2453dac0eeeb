import MartletClient
import MartletStorage
import MartletTransport
import Synchronization

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

    init(
        _ file: OpenFile, in folder: RecordFolder, _ files: any FileSystem, _ workers: BlockingWorkers
    ) {
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
        try await stored { [self] () throws(StorageError) in
            try folder.finishBody(file)
        }
        let (digest, byteCount) = state.withLock { state in
            (try? state.digest?.finish(), state.byteCount)
        }
        guard let digest else { throw FrozenBodyReader.noDigest }
        return FrozenBody.FileMark(byteCount: byteCount, digest: digest)
    }

    private func stored(_ body: @escaping @Sendable () throws(StorageError) -> Void) async throws(HTTPError) {
        do throws(StorageError) {
            try await workers.run(throwing: body)
        } catch {
            throw HTTPError(storing: error)
        }
    }
}
