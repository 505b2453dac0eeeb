package import MartletCore
import MartletHosts
package import MartletStorage
import MartletTransport
import SystemPackage

/// What of a manager's downloads outlives the process: a ``RecordFolder`` of items (``DownloadItemCodec``), written in the
/// order in which it is told, by one thread.
///
/// What is told synchronously before a call suspends is written before what is told later: the manager decides, and the disk
/// follows. Nothing of it is cut short when a task is cancelled.
package final class DownloadStore: Sendable {
    /// What was found in the directory.
    package struct Contents: Sendable {
        /// The downloads, those first that came first.
        package var items: [DownloadItem] = []
        /// What was found that is no download.
        package var findings: [DownloadManagerEvent] = []
        /// The highest number that may have been given away.
        package var lastNumber: UInt64 = 0
    }

    private let folder: RecordFolder
    private let workers: BlockingWorkers

    private init(_ folder: RecordFolder, _ workers: BlockingWorkers) {
        self.folder = folder
        self.workers = workers
    }

    /// Opens a directory, which is made where it is missing, reads what is there, and sets aside what is damaged. Its owner is
    /// this store until ``close(lastNumber:)``, or until nobody holds it.
    /// - Throws: An ``HTTPError``: `.fileFailed` where it belongs to another user or others may write to it, or it cannot be
    ///   used; `.alreadyInProgress` where another manager has it, in this process or another one.
    package static func open(
        _ path: String, files: any FileSystem
    ) async throws(HTTPError) -> (DownloadStore, Contents) {
        let workers = BlockingWorkers(threadLimit: 1)
        let (folder, contents) = try await workers.run { () throws(HTTPError) in
            let path = try HTTPError.storing { () throws(StorageError) in try WorkingFolder.absolute(path) }
            let folder: RecordFolder
            do throws(RecordFolder.Refusal) {
                folder = try RecordFolder(path: path, kind: "item", files: files)
            } catch {
                throw HTTPError(refusing: error, path: path, owner: "download manager", contents: "downloads")
            }
            return (folder, try DownloadStore.contents(of: folder))
        }
        return (DownloadStore(folder, workers), contents)
    }

    // MARK: Reading

    private static func contents(of folder: RecordFolder) throws(HTTPError) -> Contents {
        var contents = Contents()
        let numbers = try HTTPError.storing { () throws(StorageError) in try folder.numbers() }
        for number in numbers { read(number, folder, into: &contents) }
        contents.lastNumber = folder.lastNumber
        contents.items.sort { ($0.order, $0.id) < ($1.order, $1.id) }
        return contents
    }

    private static func read(_ number: UInt64, _ folder: RecordFolder, into contents: inout Contents) {
        let here = FilePath(folder.recordPath(number))
        let bytes: [UInt8]
        do throws(StorageError) {
            bytes = try folder.read(number, limit: DownloadItemCodec.byteLimit)
        } catch {
            if error.isMissingFile { return }
            contents.findings.append(.itemLeftAlone(path: here, reason: error.description))
            return
        }
        do throws(RecordEnvelope.Fault) {
            let item = try DownloadItemCodec.decode(bytes)
            guard item.id.number == number else { throw .field("number", offset: 0) }
            contents.items.append(item)
        } catch {
            // It is moved out of the way unless it is whole and of a later version.
            var finding = DownloadManagerEvent.itemLeftAlone(path: here, reason: error.description)
            if case .version = error {
            } else if let path = try? folder.setAside(number) {
                finding = .itemSetAside(path: FilePath(path), reason: error.description)
            }
            contents.findings.append(finding)
        }
    }

    // MARK: Writing

    /// Writes a new download; returns when it is on the disk. Where that fails nothing of it is left.
    package func add(_ item: DownloadItem) async throws(HTTPError) {
        try await workers.run { [folder] () throws(HTTPError) in
            let bytes = try DownloadItemCodec.encode(item)
            try HTTPError.storing { () throws(StorageError) in try folder.add(item.id.number, bytes) }
        }
    }

    /// Writes downloads, each of which is whole whatever happens; returns when they are on the disk.
    /// - Returns: What kept those from being written that were not, or what may keep all of them from being found again.
    package func save(_ items: [DownloadItem]) async -> [DownloadID: HTTPError] {
        guard !items.isEmpty else { return [:] }
        return await workers.run { [folder] in
            var faults: [DownloadID: HTTPError] = [:]
            for item in items {
                do throws(HTTPError) {
                    let bytes = try DownloadItemCodec.encode(item)
                    try HTTPError.storing { () throws(StorageError) in
                        try folder.replace(item.id.number, bytes)
                    }
                } catch {
                    faults[item.id] = error
                }
            }
            do throws(StorageError) {
                try folder.syncNames()
            } catch {
                for item in items where faults[item.id] == nil {
                    faults[item.id] = HTTPError(storing: error)
                }
            }
            return faults
        }
    }

    /// Removes a download; returns what failed.
    package func remove(_ id: DownloadID) async -> HTTPError? {
        await workers.run { [folder] in
            do throws(StorageError) {
                try folder.remove(id.number)
                return nil
            } catch {
                return HTTPError(storing: error)
            }
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
