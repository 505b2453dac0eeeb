import Foundation
import MartletStorage
import Synchronization

@testable import MartletCache

/// A directory for caches, and the events of the caches in it.
final class CacheDirectoryScene: Sendable {
    let path: String
    private let heard = Mutex<[DiskCacheEvent]>([])

    init() throws {
        path = FileManager.default.temporaryDirectory.appending(path: "martlet-\(UUID().uuidString)").path
        try LinuxFileSystem().makeDirectory(path)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// All events so far.
    var events: [DiskCacheEvent] { heard.withLock { $0 } }

    /// Opens a cache on the directory.
    func cache(
        limit: UInt64 = 16 << 20, order: EvictionOrder = .leastRecentlyUsed,
        files: any FileSystem = LinuxFileSystem()
    ) throws -> DiskCache {
        try DiskCache(directory: path, limit: limit, order: order, files: files) { [weak self] event in
            self?.heard.withLock { $0.append(event) }
        }
    }

    /// The file names in the directory.
    var names: [String] {
        get throws { try LinuxFileSystem().names(inDirectory: path).sorted() }
    }

    /// The cache's files, except the lock and the index.
    var entryFiles: [String] {
        get throws { try names.filter { $0 != "lock" && $0 != "index" } }
    }

    func contents(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: "\(path)/\(name)")))
    }

    func write(_ bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: "\(path)/\(name)"))
    }

    /// The disk usage of the directory in bytes, as `du` reports it.
    var allocated: UInt64 {
        get throws {
            let files = LinuxFileSystem()
            return try names.reduce(try files.status(at: path).allocatedByteCount) { sum, name in
                sum + ((try? files.status(at: "\(path)/\(name)").allocatedByteCount) ?? 0)
            }
        }
    }
}
