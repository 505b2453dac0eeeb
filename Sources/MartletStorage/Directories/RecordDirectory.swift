import Glibc
import Synchronization

/// A locked directory of numbered records, which are always complete files. The methods block: one worker calls them.
///
/// | name | content |
/// |---|---|
/// | `<number>.<kind>` | a record |
/// | `<number>.<kind>.new` | a record that is being written; never read |
/// | `<number>.body` | large data of a record, if the kind has bodies |
/// | `corrupt/<number>.<kind>` | a damaged record; its body is beside it |
/// | `lock` | locked by the owning process; the last number that may have been assigned, and the mark of the kind |
///
/// A directory with other files and neither mark nor records is rejected (``DirectoryKind``). In a marked one, other
/// files are ignored.
package final class RecordDirectory: Sendable {
    /// The reason why a directory was not opened.
    package enum OpenError: Error, Hashable, Sendable {
        /// A file operation failed.
        case storage(StorageError)
        /// The directory belongs to another user.
        case foreign
        /// Users other than the owner may write to the directory.
        case writableByOthers
        /// Another object owns the directory, in this process or another one.
        case inUse
        /// The directory has files of another program. The text is the reason, such as the name of a file.
        case otherFiles(String)
    }

    /// The count of record numbers that are reserved on disk together.
    private static let numberBlock: UInt64 = 256
    private static let bodySuffix = ".body"

    package let path: String
    /// The suffix of the records, with its dot.
    private let suffix: String
    private let hasBodies: Bool
    private let files: any FileSystem
    private let lock: OpenFile
    /// The last number that is reserved on disk. Used only by the worker.
    private let lastStored = Mutex<UInt64>(0)
    /// The mark that the lock file lacks; `nil` if the file has the mark. Used only by the worker.
    private let missingMark: Mutex<[UInt8]?>

    /// Opens or creates a directory by its absolute path, and owns it until ``release()`` or deallocation.
    /// - Parameters:
    ///   - kind: The suffix of the records, such as `request`.
    ///   - hasBodies: Whether records may have bodies in separate files.
    package init(path: String, kind: String, hasBodies: Bool = false, files: any FileSystem) throws(OpenError) {
        let status = try RecordDirectory.stored { () throws(StorageError) in
            do throws(StorageError) { return try files.status(at: path + "/.") } catch  where error.code == ENOENT {
                try files.makeDirectory(path, withParents: true)
                // The name of the directory must survive a power cut, too.
                try files.syncDirectory(path + "/..")
                return try files.status(at: path + "/.")
            }
        }
        guard status.kind == .directory else {
            throw .storage(StorageError(operation: "open", path: path, code: ENOTDIR))
        }
        guard status.access.isOwnedByThisUser else { throw .foreign }
        guard !status.access.isWritableByOthers else { throw .writableByOthers }
        let directoryKind = DirectoryKind.records(kind)
        let finding = try RecordDirectory.stored { () throws(StorageError) in
            try directoryKind.inspect(path, files, isLock: { RecordDirectory.number(in: $0) != nil }) { name in
                RecordDirectory.meaning(of: name, kind: kind, hasBodies: hasBodies)
            }
        }
        if case .foreign(let reason) = finding { throw .otherFiles(reason) }
        let lock = try RecordDirectory.stored { () throws(StorageError) in
            let lock = try files.open(path + "/lock", for: .updating)
            return try files.tryLock(lock) ? lock : nil
        }
        guard let lock else { throw .inUse }
        (self.lock, self.path) = (lock, path)
        suffix = "." + kind
        (self.hasBodies, self.files) = (hasBodies, files)
        missingMark = Mutex(finding == .unmarked ? directoryKind.mark : nil)
        // A full disk must not prevent reading the records. The mark is written again before a file is created.
        try? mark()
    }

    private static func stored<Value>(_ body: () throws(StorageError) -> Value) throws(OpenError) -> Value {
        do throws(StorageError) { return try body() } catch { throw .storage(error) }
    }

    /// The meaning of a name in a directory without a mark.
    private static func meaning(of name: String, kind: String, hasBodies: Bool) -> DirectoryKind.Name {
        if number(of: name, "." + kind) != nil || number(of: name, ".\(kind).new") != nil { return .typed }
        let isCompanion = name == "corrupt" || hasBodies && number(of: name, bodySuffix) != nil
        return isCompanion ? .companion : .other
    }

    /// Writes and syncs the mark of the kind if it is missing, so that the directory is recognized after a power cut.
    private func mark() throws(StorageError) {
        guard let mark = missingMark.withLock({ $0 }) else { return }
        try files.write(all: RecordDirectory.encoded(storedNumber()) + mark, to: lock, at: 0)
        try files.sync(lock)
        try files.syncDirectory(path)
        missingMark.withLock { $0 = nil }
    }

    /// Releases the directory for other owners.
    package func release() { files.unlock(lock) }

    // MARK: Reading

    /// Returns the numbers of the records in ascending order. Removes unfinished files, and bodies without a record.
    package func numbers() throws(StorageError) -> [UInt64] {
        var numbers: [UInt64] = []
        var bodies: [UInt64] = []
        var last = try storedNumber()
        for name in try files.names(inDirectory: path) {
            if let number = RecordDirectory.number(of: name, suffix) {
                numbers.append(number)
            } else if let number = RecordDirectory.number(of: name, suffix + ".new") {
                last = max(last, number)
                try? files.remove("\(path)/\(name)")
            } else if hasBodies, let number = RecordDirectory.number(of: name, RecordDirectory.bodySuffix) {
                bodies.append(number)
            }
        }
        numbers.sort()
        let known = Set(numbers)
        for body in bodies where !known.contains(body) { removeBody(body) }
        let names = (try? files.names(inDirectory: path + "/corrupt")) ?? []
        let setAside = names.compactMap { RecordDirectory.number(of: $0, suffix) }
        last = max(last, numbers.last ?? 0, bodies.max() ?? 0, setAside.max() ?? 0)
        lastStored.withLock { $0 = last }
        return numbers
    }

    /// The last number that may have been assigned, valid after ``numbers()``.
    package var lastNumber: UInt64 { lastStored.withLock { $0 } }

    /// The number in a name. Each number has exactly one spelling, so that no two files belong to one record.
    private static func number(of name: String, _ suffix: String) -> UInt64? {
        guard name.hasSuffix(suffix) else { return nil }
        let digits = name.dropLast(suffix.count)
        guard let number = UInt64(digits), String(number) == digits else { return nil }
        return number
    }

    /// Reads a record.
    /// - Parameter limit: The maximum length of a record; of a longer one, that many bytes and one more are returned.
    package func read(_ number: UInt64, limit: Int) throws(StorageError) -> [UInt8] {
        let name = recordPath(number)
        let file = try files.open(name, for: .reading)
        let status = try files.status(of: file)
        guard status.kind == .file else {
            throw StorageError(operation: "open", path: name, code: status.kind == .directory ? EISDIR : EINVAL)
        }
        return try files.read(file, count: Int(min(status.byteCount, UInt64(limit) + 1)), at: 0)
    }

    package func recordPath(_ number: UInt64) -> String { "\(path)/\(number)\(suffix)" }

    package func bodyPath(_ number: UInt64) -> String { "\(path)/\(number)\(RecordDirectory.bodySuffix)" }

    // MARK: Writing

    /// Writes a new record. After a failure neither the record nor its body exists.
    package func add(_ number: UInt64, _ bytes: [UInt8]) throws(StorageError) {
        do throws(StorageError) {
            if number > lastNumber {
                let (last, overflows) = number.addingReportingOverflow(RecordDirectory.numberBlock)
                try note(overflows ? .max : last)
            }
            try write(number, bytes)
        } catch {
            try? files.remove(recordPath(number))
            if hasBodies { removeBody(number) }
            throw error
        }
    }

    /// Replaces a record and waits for the disk. After a failure, the record is either the old or the new one.
    package func write(_ number: UInt64, _ bytes: [UInt8]) throws(StorageError) {
        try replace(number, bytes)
        try syncNames()
    }

    /// Replaces a record. It is complete at any time, and durable after the next ``syncNames()``.
    package func replace(_ number: UInt64, _ bytes: [UInt8]) throws(StorageError) {
        let temporary = recordPath(number) + ".new"
        do throws(StorageError) {
            let file = try create(temporary)
            try files.write(all: bytes, to: file, at: 0)
            try files.sync(file)
            file.close()
            try files.rename(temporary, to: recordPath(number))
        } catch {
            try? files.remove(temporary)
            throw error
        }
    }

    /// Waits until the names of the records are on the disk.
    package func syncNames() throws(StorageError) { try files.syncDirectory(path) }

    /// Creates the empty body of a record that will be added. Only its owner can access it.
    package func createBody(_ number: UInt64) throws(StorageError) -> OpenFile { try create(bodyPath(number)) }

    /// Closes a body after it and its name are on the disk, because the record to be added must not exist without it.
    package func finishBody(_ file: OpenFile) throws(StorageError) {
        try files.sync(file)
        file.close()
        try syncNames()
    }

    package func removeBody(_ number: UInt64) { try? files.remove(bodyPath(number)) }

    private func create(_ name: String) throws(StorageError) -> OpenFile {
        try mark()
        do throws(StorageError) { return try files.open(name, for: .creating) } catch  where error.code == EEXIST {
            // Left by an earlier failure.
            try files.remove(name)
            return try files.open(name, for: .creating)
        }
    }

    /// Removes a record and its body; a missing record is not an error. The record is removed first, durably, because
    /// without its body it would be damaged. A body without its record is removed when the directory is next opened.
    package func remove(_ number: UInt64) throws(StorageError) {
        do throws(StorageError) { try files.remove(recordPath(number)) } catch  where error.code == ENOENT {}
        try syncNames()
        if hasBodies { removeBody(number) }
    }

    /// Moves an invalid record and its body to the directory `corrupt`.
    /// - Returns: The new path of the record.
    package func setAside(_ number: UInt64) throws(StorageError) -> String {
        let aside = path + "/corrupt"
        try files.makeDirectory(aside, withParents: false)
        // The body, if there is one, is moved first: without a record it would be removed by the next process.
        if hasBodies {
            let body = "\(aside)/\(number)\(RecordDirectory.bodySuffix)"
            try? files.renameWithoutReplacing(bodyPath(number), to: body)
        }
        let target = "\(aside)/\(number)\(suffix)"
        // Numbers are assigned only once, so a file that already has the name belongs to another program.
        try files.renameWithoutReplacing(recordPath(number), to: target)
        try files.syncDirectory(aside)
        try syncNames()
        return target
    }

    // MARK: Numbers

    /// Records that numbers up to this one may have been assigned, so that none is assigned twice.
    package func note(_ number: UInt64) throws(StorageError) {
        try files.write(all: RecordDirectory.encoded(number), to: lock, at: 0)
        try files.sync(lock)
        lastStored.withLock { $0 = number }
    }

    /// The number in the lock file; 0 without a valid one.
    private func storedNumber() throws(StorageError) -> UInt64 {
        RecordDirectory.number(in: try files.read(lock, count: DirectoryKind.recordMarkOffset, at: 0)) ?? 0
    }

    /// The bytes in the lock file for a number.
    static func encoded(_ number: UInt64) -> [UInt8] {
        var writer = RecordWriter()
        writer.write(number)
        writer.write(RecordChecksum(writer.bytes.span).value)
        return writer.bytes
    }

    /// The number that the bytes of a lock file hold.
    private static func number(in bytes: [UInt8]) -> UInt64? {
        var reader = RecordReader(bytes[...])
        guard let number: UInt64 = try? reader.number("number"), let checksum: UInt32 = try? reader.number("checksum"),
            checksum == RecordChecksum(bytes.span.extracting(0..<8)).value
        else { return nil }
        return number
    }
}
