package import MartletClient
package import MartletStorage
import MartletTransport

/// What of a manager's downloads outlives the process, written in the order in which it is told, by one thread.
///
/// What is told synchronously before a call suspends is written before what is told later: the manager decides, and the disk
/// follows. Nothing of it is cut short when a task is cancelled.
package final class DownloadStore: Sendable {
    private let folder: DownloadDirectory
    private let workers: BlockingWorkers

    private init(_ folder: DownloadDirectory, _ workers: BlockingWorkers) {
        self.folder = folder
        self.workers = workers
    }

    /// Opens a directory and reads what is there.
    /// - Throws: As ``DownloadDirectory/init(path:files:)``.
    package static func open(
        _ path: String, files: any FileSystem
    ) async throws(HTTPError) -> (DownloadStore, DownloadDirectory.Contents) {
        let workers = BlockingWorkers(threadLimit: 1)
        let (folder, contents) = try await workers.run { () throws(HTTPError) in
            let absolute = try HTTPError.storing { () throws(StorageError) in try WorkingFolder.absolute(path)
            }
            let folder = try DownloadDirectory(path: absolute, files: files)
            return (folder, try folder.contents())
        }
        return (DownloadStore(folder, workers), contents)
    }

    /// Writes a new download; returns when it is on the disk.
    package func add(_ item: DownloadItem) async throws(HTTPError) {
        try await workers.run { [folder] () throws(HTTPError) in try folder.add(item) }
    }

    /// Writes downloads; returns when they are on the disk, with what failed.
    package func save(_ items: [DownloadItem]) async -> [DownloadID: HTTPError] {
        guard !items.isEmpty else { return [:] }
        return await workers.run { [folder] in folder.save(items) }
    }

    /// Removes a download; returns what failed.
    package func remove(_ id: DownloadID) async -> HTTPError? {
        do throws(HTTPError) {
            try await workers.run { [folder] () throws(HTTPError) in try folder.remove(id) }
            return nil
        } catch {
            return error
        }
    }

    /// Notes the last number that was given away, and lets others have the directory.
    package func close(lastNumber: UInt64) async {
        await workers.run { [folder] in
            try? folder.note(lastNumber)
            folder.release()
        }
    }
}
