package import MartletCore

/// The stored downloads of a manager: a ``RecordDirectory`` of items (``DownloadItemCodec``), written by one thread in
/// the order of the calls. Cancelling a task does not interrupt a write.
package final class DownloadStore: Sendable {
    /// The contents of a directory.
    package struct Contents: Sendable {
        /// The downloads in queue order.
        package var items: [DownloadItem] = []
        /// Reports on files that are not downloads.
        package var findings: [DownloadManagerEvent] = []
        /// The highest number that may have been assigned.
        package var lastNumber: UInt64 = 0
    }

    private let directory: RecordDirectory
    private let workers: BlockingThreadPool
    private let files: any FileSystem

    private init(_ directory: RecordDirectory, _ workers: BlockingThreadPool, _ files: any FileSystem) {
        (self.directory, self.workers, self.files) = (directory, workers, files)
    }

    /// Opens or creates a directory, and quarantines damaged files. The store holds its lock until closed or released.
    /// - Throws: An ``HTTPError``: `.fileFailed` if the directory belongs to another user, others may write to it, or
    ///   it cannot be used; `.alreadyInProgress` if another manager has it, in this process or another one.
    package static func open(_ path: String, files: any FileSystem) async throws(HTTPError) -> (DownloadStore, Contents)
    {
        let workers = BlockingThreadPool(threadLimit: 1)
        let (directory, contents) = try await workers.run { () throws(HTTPError) in
            let path = try HTTPError.storing { () throws(StorageError) in try WorkingDirectory.absolute(path) }
            let directory: RecordDirectory
            do throws(RecordDirectory.OpenError) {
                directory = try RecordDirectory(path: path, kind: "item", files: files)
            } catch { throw HTTPError(opening: error, path: path, owner: "download manager", contents: "downloads") }
            var contents = Contents()
            let numbers = try HTTPError.storing { () throws(StorageError) in try directory.numbers() }
            for number in numbers { read(number, directory, into: &contents) }
            contents.lastNumber = directory.lastNumber
            contents.items.sort { ($0.order, $0.id) < ($1.order, $1.id) }
            return (directory, contents)
        }
        return (DownloadStore(directory, workers, files), contents)
    }

    private static func read(_ number: UInt64, _ directory: RecordDirectory, into contents: inout Contents) {
        let here = FilePath(directory.recordPath(number))
        let bytes: [UInt8]
        do throws(StorageError) { bytes = try directory.read(number, limit: DownloadItemCodec.byteLimit) } catch {
            if error.isMissingFile { return }
            contents.findings.append(.itemSkipped(path: here, reason: error.description))
            return
        }
        do throws(RecordEnvelope.FormatError) {
            let item = try DownloadItemCodec.decode(bytes)
            guard item.id.number == number else { throw .field("number", offset: 0) }
            contents.items.append(item)
        } catch {
            // A file of a later version is not moved: it is not damaged.
            var finding = DownloadManagerEvent.itemSkipped(path: here, reason: error.description)
            if case .version = error {
            } else if let path = try? directory.setAside(number) {
                finding = .itemQuarantined(path: FilePath(path), reason: error.description)
            }
            contents.findings.append(finding)
        }
    }

    /// Writes a new download; returns when it is on disk. After a failure nothing of it is left.
    package func add(_ item: DownloadItem) async throws(HTTPError) {
        try await workers.run { [directory] () throws(HTTPError) in
            let bytes = try DownloadItemCodec.encode(item)
            try HTTPError.storing { () throws(StorageError) in try directory.add(item.id.number, bytes) }
        }
    }

    /// Writes downloads, each atomically; returns when they are on disk.
    /// - Returns: The errors of the downloads that were not written, or may not survive a power cut.
    package func save(_ items: [DownloadItem]) async -> [DownloadID: HTTPError] {
        guard !items.isEmpty else { return [:] }
        return await workers.run { [directory] in
            var fileErrors: [DownloadID: HTTPError] = [:]
            for item in items {
                do throws(HTTPError) {
                    let bytes = try DownloadItemCodec.encode(item)
                    try HTTPError.storing { () throws(StorageError) in try directory.replace(item.id.number, bytes) }
                } catch { fileErrors[item.id] = error }
            }
            do throws(StorageError) { try directory.syncNames() } catch {
                for item in items where fileErrors[item.id] == nil { fileErrors[item.id] = HTTPError(storing: error) }
            }
            return fileErrors
        }
    }

    /// Whether a file is missing; `false` if that cannot be determined.
    package func isMissing(_ path: FilePath) async -> Bool {
        await workers.run { [files] in
            do throws(StorageError) { return try files.statusIfPresent(at: path.string) == nil } catch { return false }
        }
    }

    package func remove(_ id: DownloadID) async throws(HTTPError) {
        try await workers.run { [directory] () throws(HTTPError) in
            try HTTPError.storing { () throws(StorageError) in try directory.remove(id.number) }
        }
    }

    /// Records the last assigned number, and releases the directory.
    package func close(lastNumber: UInt64) async {
        await workers.run { [directory] in
            try? directory.note(lastNumber)
            directory.release()
        }
    }
}
