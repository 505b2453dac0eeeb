import Glibc

/// A kind of directory that Martlet stores files in, and the rules that distinguish it from a directory of another
/// program, which must not be changed. Its mark is in the file `lock`, and exists as soon as a directory is used.
package struct DirectoryKind: Sendable {
    /// The result of inspecting a directory.
    package enum Finding: Hashable, Sendable {
        /// The directory has the mark of the kind.
        case marked
        /// The directory is empty, or of this kind without a mark, for example after a power cut or from an earlier
        /// version. The process that opens it writes the mark.
        case unmarked
        /// The directory belongs to another program. The text is the reason, such as `it contains “notes.txt”`.
        case foreign(String)
    }

    /// The meaning of a name in a directory without a mark.
    package enum Name: Sendable {
        /// The name of a file that starts with `MRT`, unless a power cut lost its start. Other programs may use it.
        case typed
        /// The name of a file with any content. No other program uses it.
        case unmistakable
        /// The name of a file or a directory that proves nothing without a typed file. Other programs may use it.
        case companion
        /// A name that is not of this kind.
        case other
    }

    /// The owner of a file, by its first bytes.
    private enum Content {
        /// The file starts with `MRT`.
        case ours
        /// The file is empty, or contains only zeros or the start of the mark, as after a power cut.
        case torn
        /// Anything else, or not a file.
        case foreign
    }

    /// The name of the file that has the mark.
    package static let lockName = "lock"
    /// The offset of the mark in a directory of records, after the number in its lock file.
    package static let recordMarkOffset = 12
    private static let cacheMark = Array("MRTl".utf8)
    private static let recordMark = Array("MRT:".utf8)
    /// The first bytes of every Martlet file that has a type.
    private static let fileMark = Array("MRT".utf8)
    /// The number of bytes to read of a file. A file system loses at least that many together.
    private static let pieceByteCount = 512
    /// The kind of a response cache.
    package static let cache = DirectoryKind(mark: cacheMark, offset: 0, newLock: cacheMark)

    /// The kind of a directory of records.
    /// - Parameter suffix: The suffix of the records, such as `request`.
    package static func records(_ suffix: String) -> DirectoryKind {
        let mark = recordMark + suffix.utf8 + [0x0A]
        return DirectoryKind(mark: mark, offset: recordMarkOffset, newLock: RecordDirectory.encoded(0) + mark)
    }

    /// The mark in the lock file.
    package let mark: [UInt8]
    /// The offset of the mark in the lock file, in bytes.
    package let offset: Int
    /// The lock file of a new directory. A kill may leave a part of it.
    private let newLock: [UInt8]

    /// Inspects a directory without changing it. A directory without a mark is accepted in three cases: its lock file
    /// is one of an earlier version; the name and content of a file are of this kind; or all of it may be what a power
    /// cut left of such a directory.
    /// - Parameters:
    ///   - isLock: Whether the bytes of a lock file without a mark are those of an earlier version.
    ///   - classify: Returns the meaning of a name other than that of the lock file.
    package func inspect(_ path: String, _ files: any FileSystem, isLock: ([UInt8]) -> Bool, classify: (String) -> Name)
        throws(StorageError) -> Finding
    {
        var isForeignLock = false
        do throws(StorageError) {
            guard let lock = try DirectoryKind.beginning(of: "\(path)/\(DirectoryKind.lockName)", files) else {
                // Martlet never creates a link, directory or device of that name.
                return .foreign("its “\(DirectoryKind.lockName)” is not a file")
            }
            if lock.dropFirst(offset).starts(with: mark) { return .marked }
            if let other = DirectoryKind.name(ofMarkIn: lock) { return .foreign("it is the directory of \(other)") }
            if isLock(lock) { return .unmarked }
            isForeignLock = !newLock.starts(with: lock) && !lock.allSatisfy { $0 == 0 }
        } catch  where error.code == ENOENT {}
        let names = try files.names(inDirectory: path).filter { $0 != DirectoryKind.lockName }.sorted()
        var reason: String?
        var companion: String?
        for name in names {
            switch classify(name) {
            case .typed:
                switch try DirectoryKind.content(of: "\(path)/\(name)", files) {
                case .ours: return .unmarked
                case .torn: break
                case .foreign: reason = reason ?? "another program wrote its file “\(name)”"
                }
            case .unmistakable: break
            case .companion: companion = companion ?? name
            case .other: reason = reason ?? "it contains “\(name)”"
            }
        }
        if isForeignLock { reason = reason ?? "another program wrote its file “\(DirectoryKind.lockName)”" }
        if let reason = reason ?? companion.map({ "it contains “\($0)”" }) { return .foreign(reason) }
        return .unmarked
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

    /// The first bytes of a file; `nil` for a link, a directory, or anything else that is not a file.
    private static func beginning(of path: String, _ files: any FileSystem) throws(StorageError) -> [UInt8]? {
        guard try files.status(at: path).kind == .file else { return nil }
        let file: OpenFile
        do throws(StorageError) { file = try files.open(path, for: .reading) } catch  where error.code == ELOOP {
            return nil
        }
        guard try files.status(of: file).kind == .file else { return nil }
        return try files.read(file, count: pieceByteCount, at: 0)
    }

    /// The kind of directory whose mark a lock file has.
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
