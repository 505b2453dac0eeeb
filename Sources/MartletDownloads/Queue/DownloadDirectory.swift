import Glibc
package import MartletClient
package import MartletStorage
import Synchronization
import SystemPackage

/// The directory of a download manager: a file for each download, and a lock. Its calls block: they belong on a worker, one
/// at a time.
///
/// | name | what it is |
/// |---|---|
/// | `<number>.item` | a download (``DownloadItemCodec``); whole at any time |
/// | `<number>.item.new` | one that is being written; nobody reads it |
/// | `<number>.item.corrupt` | one that was found damaged |
/// | `lock` | locked by the process whose downloads they are; holds the last number that may have been given away |
///
/// Files of other names are left alone.
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

    private static let suffix = ".item"
    private static let newSuffix = ".item.new"
    private static let corruptSuffix = ".item.corrupt"
    /// How many numbers are noted as given away at a time.
    private static let numberBlock: UInt64 = 256

    /// Where it is, absolute.
    package let path: String
    private let files: any FileSystem
    private let lock: OpenFile
    /// The last number that is noted as given away. Read and written by whoever has the worker.
    private let lastNoted = Mutex<UInt64>(0)

    /// Opens a directory, which is made where it is missing, and becomes its owner until ``release()``, or until nobody holds
    /// this object.
    /// - Throws: An ``HTTPError``: `.fileFailed` where it belongs to another user or others may write to it, or it cannot be
    ///   used; `.alreadyInProgress` where another manager has it, in this process or another one.
    package init(path: String, files: any FileSystem) throws(HTTPError) {
        do throws(StorageError) {
            let status: FileStatus
            do throws(StorageError) {
                status = try files.status(at: path + "/.")
            } catch  where error.code == ENOENT {
                try files.makeFolder(path, withParents: true)
                status = try files.status(at: path + "/.")
            }
            if let fault = DownloadDirectory.fault(of: status, path) { throw fault }
            lock = try files.open(path + "/lock", for: .updating)
            guard try files.tryLock(lock) else {
                throw StorageError(operation: "lock", path: path, code: EWOULDBLOCK)
            }
        } catch {
            throw DownloadDirectory.refusal(error, path)
        }
        self.path = path
        self.files = files
    }

    private static func fault(of status: FileStatus, _ path: String) -> StorageError? {
        guard status.kind == .folder else {
            return StorageError(operation: "open", path: path, code: ENOTDIR)
        }
        guard status.access.isOwnedByThisUser else {
            return StorageError(operation: "open", path: path, code: EACCES)
        }
        return status.access.isWritableByOthers
            ? StorageError(operation: "open", path: path, code: EPERM) : nil
    }

    private static func refusal(_ error: StorageError, _ path: String) -> HTTPError {
        var refusal = HTTPError(storing: error)
        switch (error.operation, error.code) {
        case ("lock", EWOULDBLOCK):
            refusal.code = .alreadyInProgress
            refusal.message =
                "\(path): another download manager has this directory, here or in another process"
        case ("open", EACCES) where error.path == path:
            refusal.message =
                "\(path): the directory of the downloads belongs to another user; choose one of your own"
        case ("open", EPERM) where error.path == path:
            refusal.message =
                "\(path): others than its owner may write to the directory of the downloads; chmod 700 it"
        default: break
        }
        return refusal
    }

    /// Lets others have the directory.
    package func release() {
        files.unlock(lock)
    }

    // MARK: Reading

    /// Reads what is there, and sets aside what is damaged.
    package func contents() throws(HTTPError) -> Contents {
        var contents = Contents()
        let names: [String]
        do throws(StorageError) {
            names = try files.names(inFolder: path).sorted()
            contents.lastNumber = try notedNumber()
        } catch {
            throw HTTPError(storing: error)
        }
        for name in names {
            guard let (id, kind) = DownloadDirectory.parse(name) else { continue }
            contents.lastNumber = max(contents.lastNumber, id.number)
            switch kind {
            case .corrupt: break
            case .new: try? files.remove("\(path)/\(name)")
            case .item: read(id, "\(path)/\(name)", into: &contents)
            }
        }
        lastNoted.withLock { $0 = contents.lastNumber }
        contents.items.sort { ($0.order, $0.id) < ($1.order, $1.id) }
        return contents
    }

    private func read(_ id: DownloadID, _ name: String, into contents: inout Contents) {
        let bytes: [UInt8]
        do throws(StorageError) {
            let file = try files.open(name, for: .reading)
            let status = try files.status(of: file)
            guard status.kind == .file else {
                throw StorageError(
                    operation: "open", path: name, code: status.kind == .folder ? EISDIR : EINVAL)
            }
            // One byte more shows that it is too long.
            let limit = min(status.byteCount, UInt64(DownloadItemCodec.byteLimit) + 1)
            bytes = try files.read(file, count: Int(limit), at: 0)
        } catch {
            if error.code == ENOENT { return }
            contents.findings.append(.itemLeftAlone(path: FilePath(name), reason: error.description))
            return
        }
        do throws(DownloadItemFault) {
            let item = try DownloadItemCodec.decode(bytes)
            guard item.id == id else { throw .name }
            contents.items.append(item)
        } catch {
            if case .version = error {
                contents.findings.append(.itemLeftAlone(path: FilePath(name), reason: error.description))
                return
            }
            let aside = "\(path)/\(id.number)\(DownloadDirectory.corruptSuffix)"
            do throws(StorageError) {
                try files.rename(name, to: aside)
                contents.findings.append(.itemSetAside(path: FilePath(aside), reason: error.description))
            } catch {
                contents.findings.append(.itemLeftAlone(path: FilePath(name), reason: error.description))
            }
        }
    }

    private enum Kind { case item, new, corrupt }

    private static func parse(_ name: String) -> (DownloadID, Kind)? {
        let suffixes: [(String, Kind)] = [(newSuffix, .new), (corruptSuffix, .corrupt), (suffix, .item)]
        for (suffix, kind) in suffixes where name.hasSuffix(suffix) {
            let digits = name.dropLast(suffix.count)
            // One spelling of each number, so that no two files are one download's.
            guard let number = UInt64(digits), String(number) == digits else { return nil }
            return (DownloadID(number), kind)
        }
        return nil
    }

    // MARK: Writing

    /// Writes downloads, each of which is whole whatever happens, and waits for the disk.
    /// - Returns: What kept those from being written that were not, or what may keep all of them from being found again.
    package func save(_ items: [DownloadItem]) -> [DownloadID: HTTPError] {
        var faults: [DownloadID: HTTPError] = [:]
        for item in items {
            do throws(HTTPError) {
                try write(item)
            } catch {
                faults[item.id] = error
            }
        }
        do throws(StorageError) {
            try files.syncFolder(path)
        } catch {
            for item in items where faults[item.id] == nil { faults[item.id] = HTTPError(storing: error) }
        }
        return faults
    }

    /// Writes a new download; where that fails nothing of it is left.
    package func add(_ item: DownloadItem) throws(HTTPError) {
        do throws(StorageError) {
            if item.id.number > lastNoted.withLock({ $0 }) {
                let (last, overflows) = item.id.number.addingReportingOverflow(DownloadDirectory.numberBlock)
                try note(overflows ? .max : last)
            }
        } catch {
            throw HTTPError(storing: error)
        }
        if let fault = save([item])[item.id] {
            try? files.remove(name(item.id))
            throw fault
        }
    }

    /// Removes a download.
    package func remove(_ id: DownloadID) throws(HTTPError) {
        do throws(StorageError) {
            do throws(StorageError) {
                try files.remove(name(id))
            } catch  where error.code == ENOENT {
                return
            }
            try files.syncFolder(path)
        } catch {
            throw HTTPError(storing: error)
        }
    }

    private func name(_ id: DownloadID) -> String { "\(path)/\(id.number)\(DownloadDirectory.suffix)" }

    private func write(_ item: DownloadItem) throws(HTTPError) {
        let bytes = try DownloadItemCodec.encode(item)
        let temporary = "\(path)/\(item.id.number)\(DownloadDirectory.newSuffix)"
        do throws(StorageError) {
            do throws(StorageError) {
                let file = try create(temporary)
                try files.write(all: bytes, to: file, at: 0)
                try files.sync(file)
                try files.rename(temporary, to: name(item.id))
            } catch {
                try? files.remove(temporary)
                throw error
            }
        } catch {
            throw HTTPError(storing: error)
        }
    }

    private func create(_ name: String) throws(StorageError) -> OpenFile {
        do throws(StorageError) {
            return try files.open(name, for: .creating)
        } catch  where error.code == EEXIST {
            // What an earlier failure left.
            try files.remove(name)
            return try files.open(name, for: .creating)
        }
    }

    // MARK: Numbers

    /// Notes that numbers up to this one may have been given away, so that none is given twice.
    package func note(_ number: UInt64) throws(StorageError) {
        var writer = RecordWriter()
        writer.write(number)
        writer.write(RecordChecksum(writer.bytes.span).value)
        try files.write(all: writer.bytes, to: lock, at: 0)
        try files.sync(lock)
        lastNoted.withLock { $0 = number }
    }

    /// The number noted last; 0 where there is none, or what is there is no number.
    private func notedNumber() throws(StorageError) -> UInt64 {
        let bytes = try files.read(lock, count: 12, at: 0)
        var reader = RecordReader(bytes[...])
        do throws(RecordReader.Fault) {
            let number: UInt64 = try reader.number("number")
            let checksum: UInt32 = try reader.number("checksum")
            return RecordChecksum(bytes.span.extracting(0..<8)).value == checksum ? number : 0
        } catch {
            return 0
        }
    }
}
