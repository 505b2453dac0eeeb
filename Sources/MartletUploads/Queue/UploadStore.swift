import MartletCore

/// The stored uploads of a manager: a `RecordDirectory` of items, written by one thread in the order of the calls.
/// Cancelling a task does not interrupt a write.
final class UploadStore: Sendable {
    /// The contents of a directory.
    struct Contents: Sendable {
        /// The uploads in queue order.
        var items: [UploadItem] = []
        /// Reports on files that are not uploads.
        var findings: [UploadManager.Finding] = []
        /// The highest number that may have been assigned.
        var lastNumber: UInt64 = 0
    }

    private let directory: RecordDirectory
    private let workers: BlockingThreadPool

    private init(_ directory: RecordDirectory, _ workers: BlockingThreadPool) {
        (self.directory, self.workers) = (directory, workers)
    }

    /// Opens or creates a directory, and moves damaged files. The store holds its lock until closed or released.
    static func open(_ path: String, files: any FileSystem) async throws(HTTPError) -> (UploadStore, Contents) {
        let workers = BlockingThreadPool(threadLimit: 1)
        let (directory, contents) = try await workers.run { () throws(HTTPError) in
            let path = try HTTPError.storing { () throws(StorageError) in try WorkingDirectory.absolute(path) }
            let directory: RecordDirectory
            do throws(RecordDirectory.OpenError) {
                directory = try RecordDirectory(path: path, kind: "upload", files: files)
            } catch { throw HTTPError(opening: error, path: path, owner: "upload manager", contents: "uploads") }
            var contents = Contents()
            let numbers = try HTTPError.storing { () throws(StorageError) in try directory.numbers() }
            for number in numbers { read(number, directory, into: &contents) }
            contents.lastNumber = directory.lastNumber
            contents.items.sort { ($0.order, $0.id) < ($1.order, $1.id) }
            return (directory, contents)
        }
        return (UploadStore(directory, workers), contents)
    }

    private static func read(_ number: UInt64, _ directory: RecordDirectory, into contents: inout Contents) {
        var finding = UploadManager.Finding(path: FilePath(directory.recordPath(number)), reason: "")
        do throws(StorageError) {
            let bytes = try directory.read(number, limit: UploadItemCodec.byteLimit)
            do throws(RecordEnvelope.FormatError) {
                let item = try UploadItemCodec.decode(bytes)
                guard item.id.number == number else { throw .field("number", offset: 0) }
                contents.items.append(item)
                return
            } catch {
                finding.reason = error.description
                // A file of a later version is not moved: it is not damaged.
                if case .version = error { finding.isMoved = false } else { finding.isMoved = true }
            }
            if finding.isMoved { finding.path = FilePath(try directory.setAside(number)) }
        } catch {
            if error.isMissingFile { return }
            (finding.reason, finding.isMoved) = (finding.reason + error.description, false)
        }
        contents.findings.append(finding)
    }

    /// Writes a new upload; returns when it is on disk. After a failure nothing of it is left.
    func add(_ item: UploadItem) async throws(HTTPError) {
        try await write(item) { (directory, bytes) throws(StorageError) in try directory.add(item.id.number, bytes) }
    }

    /// Replaces the record of an upload; returns when it is on disk.
    func save(_ item: UploadItem) async throws(HTTPError) {
        try await write(item) { (directory, bytes) throws(StorageError) in try directory.write(item.id.number, bytes) }
    }

    private func write(
        _ item: UploadItem, _ body: @escaping @Sendable (RecordDirectory, [UInt8]) throws(StorageError) -> Void
    ) async throws(HTTPError) {
        try await workers.run { [directory] () throws(HTTPError) in
            let bytes = try UploadItemCodec.encode(item)
            try HTTPError.storing { () throws(StorageError) in try body(directory, bytes) }
        }
    }

    func remove(_ id: UploadID) async throws(HTTPError) {
        try await workers.run { [directory] () throws(HTTPError) in
            try HTTPError.storing { () throws(StorageError) in try directory.remove(id.number) }
        }
    }

    /// Records the last assigned number, and releases the directory.
    func close(lastNumber: UInt64) async {
        await workers.run { [directory] in
            try? directory.note(lastNumber)
            directory.release()
        }
    }
}
