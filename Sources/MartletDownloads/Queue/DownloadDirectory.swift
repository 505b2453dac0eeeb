package import MartletCore
import MartletHosts
package import MartletStorage
import MartletTransport
import SystemPackage

/// The directory of a download manager: a ``RecordFolder`` of items (``DownloadItemCodec``). Its calls block: they belong on a
/// worker, one at a time.
package final class DownloadDirectory: Sendable {
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

    /// Opens a directory, which is made where it is missing, and becomes its owner until ``release()``, or until nobody holds
    /// this object.
    /// - Parameter path: Absolute.
    /// - Throws: An ``HTTPError``: `.fileFailed` where it belongs to another user or others may write to it, or it cannot be
    ///   used; `.alreadyInProgress` where another manager has it, in this process or another one.
    package init(path: String, files: any FileSystem) throws(HTTPError) {
        do throws(RecordFolder.Refusal) {
            folder = try RecordFolder(path: path, kind: "item", files: files)
        } catch {
            throw HTTPError(refusing: error, path: path, owner: "download manager", contents: "downloads")
        }
    }

    /// Lets others have the directory.
    package func release() {
        folder.release()
    }

    // MARK: Reading

    /// Reads what is there, and sets aside what is damaged.
    package func contents() throws(HTTPError) -> Contents {
        var contents = Contents()
        let numbers = try HTTPError.storing { () throws(StorageError) in try folder.numbers() }
        for number in numbers { read(number, into: &contents) }
        contents.lastNumber = folder.lastNumber
        contents.items.sort { ($0.order, $0.id) < ($1.order, $1.id) }
        return contents
    }

    private func read(_ number: UInt64, into contents: inout Contents) {
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
            contents.findings.append(finding(number, error, here))
        }
    }

    /// What is told of a file that is no download's, which is moved out of the way unless it is whole and of a later version.
    private func finding(
        _ number: UInt64, _ fault: RecordEnvelope.Fault, _ here: FilePath
    ) -> DownloadManagerEvent {
        if case .version = fault { return .itemLeftAlone(path: here, reason: fault.description) }
        do throws(StorageError) {
            return .itemSetAside(
                path: FilePath(try folder.setAside(number)), reason: fault.description)
        } catch {
            return .itemLeftAlone(path: here, reason: fault.description)
        }
    }

    // MARK: Writing

    /// Writes downloads, each of which is whole whatever happens, and waits for the disk.
    /// - Returns: What kept those from being written that were not, or what may keep all of them from being found again.
    package func save(_ items: [DownloadItem]) -> [DownloadID: HTTPError] {
        var faults: [DownloadID: HTTPError] = [:]
        for item in items {
            do throws(HTTPError) {
                let bytes = try DownloadItemCodec.encode(item)
                try HTTPError.storing { () throws(StorageError) in try folder.replace(item.id.number, bytes) }
            } catch {
                faults[item.id] = error
            }
        }
        do throws(StorageError) {
            try folder.syncNames()
        } catch {
            for item in items where faults[item.id] == nil { faults[item.id] = HTTPError(storing: error) }
        }
        return faults
    }

    /// Writes a new download; where that fails nothing of it is left.
    package func add(_ item: DownloadItem) throws(HTTPError) {
        let bytes = try DownloadItemCodec.encode(item)
        try HTTPError.storing { () throws(StorageError) in try folder.add(item.id.number, bytes) }
    }

    /// Removes a download.
    package func remove(_ id: DownloadID) throws(HTTPError) {
        try HTTPError.storing { () throws(StorageError) in try folder.remove(id.number) }
    }

    /// Notes that numbers up to this one may have been given away, so that none is given twice.
    package func note(_ number: UInt64) throws(StorageError) {
        try folder.note(number)
    }
}

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
