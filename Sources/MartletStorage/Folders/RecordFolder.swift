import Glibc
import Synchronization

/// A folder of numbered records, each a file of its own that is whole at any time, and a lock. Its calls block: they belong on
/// a worker, one at a time.
///
/// | name | what it is |
/// |---|---|
/// | `<number>.<kind>` | a record |
/// | `<number>.<kind>.new` | one that is being written; nobody reads it |
/// | `<number>.body` | what belongs to a record and is too large for it, where records have such |
/// | `corrupt/<number>.<kind>` | one that was found damaged, and what belonged to it |
/// | `lock` | locked by the process whose records they are; holds the last number that may have been given away, and the mark of the kind |
///
/// A folder that has other files, and neither the mark nor records, is refused (``FolderKind``). Other files in a folder with
/// the mark are left alone.
package final class RecordFolder: Sendable {
    /// Why a folder was not opened.
    package enum Refusal: Error, Hashable, Sendable {
        /// The system refused it.
        case storage(StorageError)
        /// It belongs to another user.
        case foreign
        /// Others than its owner may write to it.
        case writableByOthers
        /// Another object has it, in this process or another one.
        case inUse
        /// It has files of another program. The text says what was found.
        case otherFiles(String)
    }

    /// How many numbers are noted as given away at a time.
    private static let numberBlock: UInt64 = 256
    private static let bodySuffix = ".body"

    /// Where it is.
    package let path: String
    /// What its records are called, behind their numbers, with the point.
    private let suffix: String
    /// Whether what is called a body is one.
    private let hasBodies: Bool
    private let files: any FileSystem
    private let lock: OpenFile
    /// The last number that is noted as given away. Read and written by whoever has the worker.
    private let lastNoted = Mutex<UInt64>(0)
    /// The mark that the lock file lacks; `nil` where it has it. Read and written by whoever has the worker.
    private let missingMark: Mutex<[UInt8]?>

    /// Opens a folder, which is made where it is missing, and becomes its owner until ``release()``, or until nobody holds this
    /// object.
    /// - Parameters:
    ///   - path: Absolute.
    ///   - kind: What records are called, such as `request`.
    ///   - hasBodies: Whether records may have something beside them.
    package init(path: String, kind: String, hasBodies: Bool = false, files: any FileSystem) throws(Refusal) {
        let status = try RecordFolder.stored { () throws(StorageError) in
            do throws(StorageError) {
                return try files.status(at: path + "/.")
            } catch  where error.code == ENOENT {
                try files.makeFolder(path, withParents: true)
                // Its name, too, is to be there after a power cut.
                try files.syncFolder(path + "/..")
                return try files.status(at: path + "/.")
            }
        }
        guard status.kind == .folder else {
            throw .storage(StorageError(operation: "open", path: path, code: ENOTDIR))
        }
        guard status.access.isOwnedByThisUser else { throw .foreign }
        guard !status.access.isWritableByOthers else { throw .writableByOthers }
        let folderKind = FolderKind.records(kind)
        let finding = try RecordFolder.stored { () throws(StorageError) in
            try folderKind.look(at: path, files, isLock: { RecordFolder.number(noted: $0) != nil }) { name in
                RecordFolder.meaning(of: name, kind: kind, hasBodies: hasBodies)
            }
        }
        if case .foreign(let reason) = finding { throw .otherFiles(reason) }
        lock = try RecordFolder.stored { () throws(StorageError) in
            try files.open(path + "/lock", for: .updating)
        }
        let lock = lock
        guard try RecordFolder.stored({ () throws(StorageError) in try files.tryLock(lock) }) else {
            throw .inUse
        }
        self.path = path
        suffix = "." + kind
        self.hasBodies = hasBodies
        self.files = files
        missingMark = Mutex(finding == .unmarked ? folderKind.mark : nil)
        // A full disk does not keep the records from being read. Before a file is made, this is tried again.
        try? mark()
    }

    private static func stored<Value>(_ body: () throws(StorageError) -> Value) throws(Refusal) -> Value {
        do throws(StorageError) {
            return try body()
        } catch {
            throw .storage(error)
        }
    }

    /// The meaning of a name in a folder without a mark.
    private static func meaning(of name: String, kind: String, hasBodies: Bool) -> FolderKind.Name {
        if number(of: name, "." + kind) != nil || number(of: name, ".\(kind).new") != nil { return .typed }
        let isCompanion = name == "corrupt" || hasBodies && number(of: name, bodySuffix) != nil
        return isCompanion ? .companion : .other
    }

    /// Writes the mark of the kind where it is missing, and waits until it is on the disk: after a power cut the folder must
    /// not look like another program's.
    private func mark() throws(StorageError) {
        guard let mark = missingMark.withLock({ $0 }) else { return }
        try files.write(all: RecordFolder.noted(notedNumber()) + mark, to: lock, at: 0)
        try files.sync(lock)
        try files.syncFolder(path)
        missingMark.withLock { $0 = nil }
    }

    /// Lets others have the folder.
    package func release() { files.unlock(lock) }

    // MARK: Looking

    /// The numbers of the records, in order. What was being written when a process died is removed, and so is what belongs
    /// to no record.
    package func numbers() throws(StorageError) -> [UInt64] {
        var numbers: [UInt64] = []
        var bodies: [UInt64] = []
        var last = try notedNumber()
        for name in try files.names(inFolder: path) {
            if let number = number(of: name, suffix) {
                numbers.append(number)
            } else if let number = number(of: name, suffix + ".new") {
                last = max(last, number)
                try? files.remove("\(path)/\(name)")
            } else if hasBodies, let number = number(of: name, RecordFolder.bodySuffix) {
                bodies.append(number)
            }
        }
        numbers.sort()
        let known = Set(numbers)
        for body in bodies where !known.contains(body) { try? files.remove(bodyPath(body)) }
        last = max(last, numbers.last ?? 0, bodies.max() ?? 0, numbersSetAside().max() ?? 0)
        lastNoted.withLock { $0 = last }
        return numbers
    }

    /// The last number that may have been given away, once ``numbers()`` has looked.
    package var lastNumber: UInt64 { lastNoted.withLock { $0 } }

    private func numbersSetAside() -> [UInt64] {
        do throws(StorageError) {
            return try files.names(inFolder: path + "/corrupt").compactMap { number(of: $0, suffix) }
        } catch {
            return []
        }
    }

    private func number(of name: String, _ suffix: String) -> UInt64? {
        RecordFolder.number(of: name, suffix)
    }

    /// One spelling of each number, so that no two files are one record's.
    private static func number(of name: String, _ suffix: String) -> UInt64? {
        guard name.hasSuffix(suffix) else { return nil }
        let digits = name.dropLast(suffix.count)
        guard let number = UInt64(digits), String(number) == digits else { return nil }
        return number
    }

    /// The bytes of a record.
    /// - Parameter limit: The longest a record is; of a longer one that many bytes and one come back.
    package func read(_ number: UInt64, limit: Int) throws(StorageError) -> [UInt8] {
        let name = recordPath(number)
        let file = try files.open(name, for: .reading)
        let status = try files.status(of: file)
        guard status.kind == .file else {
            throw StorageError(operation: "open", path: name, code: status.kind == .folder ? EISDIR : EINVAL)
        }
        return try files.read(file, count: Int(min(status.byteCount, UInt64(limit) + 1)), at: 0)
    }

    /// Where a record is.
    package func recordPath(_ number: UInt64) -> String { "\(path)/\(number)\(suffix)" }

    /// Where what belongs to a record is.
    package func bodyPath(_ number: UInt64) -> String { "\(path)/\(number)\(RecordFolder.bodySuffix)" }

    // MARK: Changing

    /// Writes a new record; where that fails nothing of it is left, nor of what belongs to it.
    package func add(_ number: UInt64, _ bytes: [UInt8]) throws(StorageError) {
        do throws(StorageError) {
            if number > lastNumber {
                let (last, overflows) = number.addingReportingOverflow(RecordFolder.numberBlock)
                try note(overflows ? .max : last)
            }
            try write(number, bytes)
        } catch {
            try? files.remove(recordPath(number))
            if hasBodies { removeBody(number) }
            throw error
        }
    }

    /// Writes a record in place of what it was, and waits for the disk. Whatever fails, it is the one or the other.
    package func write(_ number: UInt64, _ bytes: [UInt8]) throws(StorageError) {
        try replace(number, bytes)
        try syncNames()
    }

    /// Writes a record in place of what it was. It is whole at any time, and surely there behind the next ``syncNames()``.
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
    package func syncNames() throws(StorageError) { try files.syncFolder(path) }

    /// Begins the file of what belongs to a record that is about to be added: for its owner alone, and empty.
    package func createBody(_ number: UInt64) throws(StorageError) -> OpenFile {
        try create(bodyPath(number))
    }

    /// Waits until what belongs to a record is on the disk, and its name: the record that is added next may not be there
    /// without it.
    package func finishBody(_ file: OpenFile) throws(StorageError) {
        try files.sync(file)
        file.close()
        try files.syncFolder(path)
    }

    /// Removes what belongs to a record, if there is something.
    package func removeBody(_ number: UInt64) { try? files.remove(bodyPath(number)) }

    private func create(_ name: String) throws(StorageError) -> OpenFile {
        try mark()
        do throws(StorageError) {
            return try files.open(name, for: .creating)
        } catch  where error.code == EEXIST {
            // What an earlier failure left.
            try files.remove(name)
            return try files.open(name, for: .creating)
        }
    }

    /// Removes a record and what belongs to it. The record goes first, and for good: one without what belongs to it would be
    /// damaged, and what is left without a record is removed when the folder is opened the next time.
    package func remove(_ number: UInt64) throws(StorageError) {
        do throws(StorageError) {
            try files.remove(recordPath(number))
        } catch  where error.code == ENOENT {
            // Gone already, which is what is wanted.
        }
        try syncNames()
        if hasBodies { removeBody(number) }
    }

    /// Moves a record that makes no sense out of the way, and what belongs to it.
    /// - Returns: Where the record is now.
    package func setAside(_ number: UInt64) throws(StorageError) -> String {
        let aside = path + "/corrupt"
        try files.makeFolder(aside, withParents: false)
        let target = "\(aside)/\(number)\(suffix)"
        // What belongs to it first: without a record it would be removed when the folder is opened the next time.
        do throws(StorageError) {
            if hasBodies {
                try files.renameWithoutReplacing(
                    bodyPath(number), to: "\(aside)/\(number)\(RecordFolder.bodySuffix)")
            }
        } catch {
            // There is none, as for most.
        }
        // Numbers are given once: what has the name already was put there by somebody else, and stays.
        try files.renameWithoutReplacing(recordPath(number), to: target)
        try files.syncFolder(aside)
        try files.syncFolder(path)
        return target
    }

    // MARK: Numbers

    /// Notes that numbers up to this one may have been given away, so that none is given twice.
    package func note(_ number: UInt64) throws(StorageError) {
        try files.write(all: RecordFolder.noted(number), to: lock, at: 0)
        try files.sync(lock)
        lastNoted.withLock { $0 = number }
    }

    /// The number noted last; 0 where there is none, or what is there is no number.
    private func notedNumber() throws(StorageError) -> UInt64 {
        RecordFolder.number(noted: try files.read(lock, count: FolderKind.recordMarkOffset, at: 0)) ?? 0
    }

    /// A number as the lock file holds it.
    static func noted(_ number: UInt64) -> [UInt8] {
        var writer = RecordWriter()
        writer.write(number)
        writer.write(RecordChecksum(writer.bytes.span).value)
        return writer.bytes
    }

    /// The number that a lock file holds; `nil` where it holds none.
    private static func number(noted bytes: [UInt8]) -> UInt64? {
        var reader = RecordReader(bytes[...])
        do throws(RecordReader.Fault) {
            let number: UInt64 = try reader.number("number")
            let checksum: UInt32 = try reader.number("checksum")
            return RecordChecksum(bytes.span.extracting(0..<8)).value == checksum ? number : nil
        } catch {
            return nil
        }
    }
}
