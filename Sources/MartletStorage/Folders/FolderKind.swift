import Glibc

/// A kind of folder that Martlet keeps files in, and how one is told from a folder with files of somebody else, in which
/// nothing may be touched.
///
/// The mark of the kind is part of the file `lock`. So it is there as soon as the folder is used, and it cannot be lost while
/// the rest stays.
package struct FolderKind: Sendable {
    /// The result of a look at a folder.
    package enum Finding: Hashable, Sendable {
        /// It has the mark of the kind.
        case marked
        /// It is empty, or of this kind without a mark, as an earlier version or a power cut leaves it. The process that opens it
        /// writes the mark.
        case unmarked
        /// It is somebody else's. The text says what shows that, such as `it holds “notes.txt”`.
        case foreign(String)
    }

    /// The meaning of a name in a folder without a mark.
    package enum Name: Sendable {
        /// A file that begins with `MRT`, unless a power cut took its beginning. Other programs may use the name.
        case typed
        /// A file with any content. No other program uses the name.
        case unmistakable
        /// A file or a folder with any content, which counts only beside a typed file. Other programs may use the name.
        case companion
        /// It is not one of this kind.
        case other
    }

    /// The content of a file, judged by its beginning.
    private enum Content {
        /// It begins with `MRT`.
        case ours
        /// It is empty, zeros, or the first bytes of one of ours, as after a power cut. Nothing is lost with it.
        case torn
        /// It is neither, or is not a file.
        case foreign
    }

    /// The lock file of a folder, or the thing in its place.
    private enum Lock {
        case missing
        /// A file, with its first bytes.
        case file([UInt8])
        /// A link, a folder or a device, none of which Martlet makes.
        case notAFile
    }

    /// The name of the file that has the mark.
    package static let lockName = "lock"
    /// The offset of the mark of a folder of records, behind the number that its lock file holds.
    package static let recordMarkOffset = 12
    private static let cacheMark = Array("MRTl".utf8)
    private static let recordMark = Array("MRT:".utf8)
    /// The first bytes of each file of Martlet's that has a type.
    private static let fileMark = Array("MRT".utf8)
    /// The bytes that are read of a file. A file system loses at least so many together.
    private static let pieceByteCount = 512

    /// The kind of a response cache.
    package static let cache = FolderKind(mark: cacheMark, offset: 0, newLock: cacheMark)

    /// The kind of a folder of records.
    /// - Parameter suffix: What the records are called, such as `request`.
    package static func records(_ suffix: String) -> FolderKind {
        let mark = recordMark + suffix.utf8 + [0x0A]
        return FolderKind(mark: mark, offset: recordMarkOffset, newLock: RecordFolder.noted(0) + mark)
    }

    /// The bytes that the lock file has.
    package let mark: [UInt8]
    /// Their offset in the lock file, in bytes.
    package let offset: Int
    /// The lock file of a new folder. A kill may leave a part of it.
    private let newLock: [UInt8]

    private init(mark: [UInt8], offset: Int, newLock: [UInt8]) {
        self.mark = mark
        self.offset = offset
        self.newLock = newLock
    }

    /// Looks at a folder, and changes nothing.
    ///
    /// A folder without a mark is accepted in three cases: its lock file is one of an earlier version; it has a file of this
    /// kind by name and content; or a power cut can have left all of it, so that nothing of another program is lost.
    /// - Parameters:
    ///   - path: The folder, which is there.
    ///   - isLock: Whether the bytes of a lock file without a mark are those that an earlier version wrote.
    ///   - judge: The meaning of a name other than that of the lock file.
    package func look(
        at path: String, _ files: any FileSystem, isLock: ([UInt8]) -> Bool, judge: (String) -> Name
    ) throws(StorageError) -> Finding {
        var isForeignLock = false
        switch try FolderKind.lock(in: path, files) {
        case .missing: break
        case .notAFile: return .foreign("its “\(FolderKind.lockName)” is not a file")
        case .file(let bytes):
            if bytes.dropFirst(offset).starts(with: mark) { return .marked }
            if let other = FolderKind.name(ofMarkIn: bytes) {
                return .foreign("it is the folder of \(other)")
            }
            if isLock(bytes) { return .unmarked }
            isForeignLock = !newLock.starts(with: bytes) && !bytes.allSatisfy { $0 == 0 }
        }
        let names = try files.names(inFolder: path).filter { $0 != FolderKind.lockName }.sorted()
        var reason: String?
        var companion: String?
        for name in names {
            switch judge(name) {
            case .typed:
                switch try FolderKind.content(of: "\(path)/\(name)", files) {
                case .ours: return .unmarked
                case .torn: break
                case .foreign: reason = reason ?? "another program wrote its file “\(name)”"
                }
            case .unmistakable: break
            case .companion: companion = companion ?? name
            case .other: reason = reason ?? "it holds “\(name)”"
            }
        }
        if isForeignLock { reason = reason ?? "another program wrote its file “\(FolderKind.lockName)”" }
        if let reason = reason ?? companion.map({ "it holds “\($0)”" }) { return .foreign(reason) }
        return .unmarked
    }

    /// The lock file of a folder.
    private static func lock(in path: String, _ files: any FileSystem) throws(StorageError) -> Lock {
        do throws(StorageError) {
            guard let bytes = try beginning(of: "\(path)/\(lockName)", files) else { return .notAFile }
            return .file(bytes)
        } catch  where error.code == ENOENT {
            return .missing
        }
    }

    private static func content(of path: String, _ files: any FileSystem) throws(StorageError) -> Content {
        do throws(StorageError) {
            guard let bytes = try beginning(of: path, files) else { return .foreign }
            if bytes.starts(with: fileMark) { return .ours }
            return fileMark.starts(with: bytes) || bytes.allSatisfy { $0 == 0 } ? .torn : .foreign
        } catch  where error.code == ENOENT {
            // Another process has just removed it.
            return .torn
        }
    }

    /// The first bytes of a file; `nil` for a link, a folder, or anything else that is not a file.
    private static func beginning(of path: String, _ files: any FileSystem) throws(StorageError) -> [UInt8]? {
        guard try files.status(at: path).kind == .file else { return nil }
        let file: OpenFile
        do throws(StorageError) {
            file = try files.open(path, for: .reading)
        } catch  where error.code == ELOOP {
            return nil
        }
        guard try files.status(of: file).kind == .file else { return nil }
        return try files.read(file, count: pieceByteCount, at: 0)
    }

    /// The kind of folder whose mark a lock file has.
    private static func name(ofMarkIn lock: [UInt8]) -> String? {
        if lock.starts(with: cacheMark) { return "a response cache" }
        let mark = lock.dropFirst(recordMarkOffset)
        guard mark.starts(with: recordMark) else { return nil }
        switch String(decoding: mark.dropFirst(recordMark.count).prefix { $0 != 0x0A }, as: UTF8.self) {
        case "request": return "an offline queue"
        case "item": return "a download queue"
        case let suffix: return "records of the kind “\(suffix)”"
        }
    }
}
