import Foundation
import MartletStorage
import MartletTesting
import MartletTestSupport

/// A file system with the part files on another disk than their targets, as in directories that contain mount points:
/// the kernel rejects moving a part file to its target.
struct SplitFileSystem: FileSystem {
    /// Two directories on two file systems of this machine; `nil` if only one is writable.
    static let directories: (String, String)? = {
        let known = ["/tmp", "/dev/shm", "/var/tmp", "/run", "/home"].filter {
            FileManager.default.isWritableFile(atPath: $0)
        }
        let devices = known.compactMap { path in
            (try? LinuxFileSystem().status(at: path + "/.")).map { (path, $0.device) }
        }
        guard let first = devices.first, let second = devices.first(where: { $0.1 != first.1 }) else {
            return nil
        }
        return (first.0, second.0)
    }()

    /// The directory that stores the part files instead.
    let elsewhere: String
    private let base = LinuxFileSystem()

    init(elsewhere: String) {
        self.elsewhere = elsewhere
    }

    private func place(_ path: String) -> String {
        guard path.hasSuffix(".martlet-part") else { return path }
        return elsewhere + "/" + (path.split(separator: "/").last.map(String.init) ?? "")
    }

    func open(_ path: String, for opening: FileOpening) throws(StorageError) -> OpenFile {
        try base.open(place(path), for: opening)
    }
    func status(of file: OpenFile) throws(StorageError) -> FileStatus { try base.status(of: file) }
    func status(at path: String) throws(StorageError) -> FileStatus { try base.status(at: place(path)) }
    func readSome(_ file: OpenFile, limit: Int, at offset: UInt64) throws(StorageError) -> [UInt8] {
        try base.readSome(file, limit: limit, at: offset)
    }
    func writeSome(_ bytes: RawSpan, to file: OpenFile, at offset: UInt64) throws(StorageError) -> Int {
        try base.writeSome(bytes, to: file, at: offset)
    }
    func allocate(_ byteCount: UInt64, for file: OpenFile) throws(StorageError) {
        try base.allocate(byteCount, for: file)
    }
    func truncate(_ file: OpenFile, to byteCount: UInt64) throws(StorageError) {
        try base.truncate(file, to: byteCount)
    }
    func rename(_ path: String, to target: String) throws(StorageError) {
        try base.rename(place(path), to: place(target))
    }
    func renameWithoutReplacing(_ path: String, to target: String) throws(StorageError) {
        try base.renameWithoutReplacing(place(path), to: place(target))
    }
    func sync(_ file: OpenFile) throws(StorageError) { try base.sync(file) }
    func syncDirectory(_ path: String) throws(StorageError) { try base.syncDirectory(path) }
    func setModificationTime(_ seconds: Int64, of file: OpenFile) throws(StorageError) {
        try base.setModificationTime(seconds, of: file)
    }
    func remove(_ path: String) throws(StorageError) { try base.remove(place(path)) }
    func makeDirectory(_ path: String) throws(StorageError) { try base.makeDirectory(path) }
    func names(inDirectory path: String) throws(StorageError) -> [String] { try base.names(inDirectory: path) }
    func tryLock(_ file: OpenFile) throws(StorageError) -> Bool { try base.tryLock(file) }
    func unlock(_ file: OpenFile) { base.unlock(file) }
    func supportsNonBlockingReads(inDirectory path: String) -> Bool {
        base.supportsNonBlockingReads(inDirectory: path)
    }
    func openNonBlocking(_ path: String) throws(StorageError) -> OpenFile {
        try base.openNonBlocking(place(path))
    }
    func readSomeNonBlocking(_ file: OpenFile, limit: Int, at offset: UInt64) throws(StorageError) -> [UInt8] {
        try base.readSomeNonBlocking(file, limit: limit, at: offset)
    }
}
