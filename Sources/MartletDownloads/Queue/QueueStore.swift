package import MartletCore

/// An item of a queue in a directory, stored as one record.
package protocol QueueItem: Sendable {
    /// The part of the names of its files, and the words for the queue and its items in messages.
    static var words: (file: String, owner: String, contents: String) { get }
    /// The maximum length of a record in bytes.
    static var byteLimit: Int { get }
    /// The number of the item in its directory.
    var number: UInt64 { get }
    /// The position in the queue, lower numbers first.
    var order: UInt64 { get }

    /// Reads a record.
    init(record: [UInt8]) throws(RecordEnvelope.FormatError)
    /// Returns the record of the item.
    func record() throws(HTTPError) -> [UInt8]
}

/// The stored items of a queue: a ``RecordDirectory``, written by one thread in the order of the calls. Cancelling a
/// task does not interrupt a write.
package final class QueueStore<Item: QueueItem>: Sendable {
    /// A file of the directory that is not an item.
    package struct Finding: Sendable {
        /// The path of the file.
        package var path: FilePath
        /// The reason why it cannot be read.
        package let reason: String
        /// Whether the file is damaged, and was moved to this path. Otherwise it was left in place.
        package var isMoved = false
    }

    /// The contents of a directory.
    package struct Contents: Sendable {
        /// The items in queue order.
        package var items: [Item] = []
        /// Reports on files that are not items.
        package var findings: [Finding] = []
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
    ///   it cannot be used; `.alreadyInProgress` if another queue has it, in this process or another one.
    package static func open(_ path: String, files: any FileSystem) async throws(HTTPError) -> (QueueStore, Contents) {
        let workers = BlockingThreadPool(threadLimit: 1)
        let (directory, contents) = try await workers.run { () throws(HTTPError) in
            let (words, path) = (
                Item.words, try HTTPError.storing { () throws(StorageError) in try WorkingDirectory.absolute(path) }
            )
            let directory: RecordDirectory
            do throws(RecordDirectory.OpenError) {
                directory = try RecordDirectory(path: path, kind: words.file, files: files)
            } catch { throw HTTPError(opening: error, path: path, owner: words.owner, contents: words.contents) }
            var contents = Contents()
            let numbers = try HTTPError.storing { () throws(StorageError) in try directory.numbers() }
            for number in numbers { read(number, directory, into: &contents) }
            contents.lastNumber = directory.lastNumber
            contents.items.sort { ($0.order, $0.number) < ($1.order, $1.number) }
            return (directory, contents)
        }
        return (QueueStore(directory, workers, files), contents)
    }

    private static func read(_ number: UInt64, _ directory: RecordDirectory, into contents: inout Contents) {
        let here = FilePath(directory.recordPath(number))
        let bytes: [UInt8]
        do throws(StorageError) { bytes = try directory.read(number, limit: Item.byteLimit) } catch {
            if !error.isMissingFile { contents.findings.append(Finding(path: here, reason: error.description)) }
            return
        }
        do throws(RecordEnvelope.FormatError) {
            let item = try Item(record: bytes)
            guard item.number == number else { throw .field("number", offset: 0) }
            contents.items.append(item)
        } catch {
            var finding = Finding(path: here, reason: error.description)
            // A file of a later version is not moved: it is not damaged.
            if case .version = error {
            } else if let path = try? directory.setAside(number) {
                (finding.path, finding.isMoved) = (FilePath(path), true)
            }
            contents.findings.append(finding)
        }
    }

    /// Writes a new item; returns when it is on disk. After a failure nothing of it is left.
    package func add(_ item: Item) async throws(HTTPError) {
        try await workers.run { [directory] () throws(HTTPError) in
            let bytes = try item.record()
            try HTTPError.storing { () throws(StorageError) in try directory.add(item.number, bytes) }
        }
    }

    /// Writes items, each atomically; returns when they are on disk.
    /// - Returns: The errors of the items that were not written, or may not survive a power cut, by their numbers.
    package func save(_ items: [Item]) async -> [UInt64: HTTPError] {
        guard !items.isEmpty else { return [:] }
        return await workers.run { [directory] in
            var fileErrors: [UInt64: HTTPError] = [:]
            for item in items {
                do throws(HTTPError) {
                    let bytes = try item.record()
                    try HTTPError.storing { () throws(StorageError) in try directory.replace(item.number, bytes) }
                } catch { fileErrors[item.number] = error }
            }
            do throws(StorageError) { try directory.syncNames() } catch {
                for item in items where fileErrors[item.number] == nil {
                    fileErrors[item.number] = HTTPError(storing: error)
                }
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

    /// Removes the record of an item.
    package func remove(_ number: UInt64) async throws(HTTPError) {
        try await workers.run { [directory] () throws(HTTPError) in
            try HTTPError.storing { () throws(StorageError) in try directory.remove(number) }
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
