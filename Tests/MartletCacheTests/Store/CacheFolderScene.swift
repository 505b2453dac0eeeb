import Foundation
import MartletStorage
import Synchronization

@testable import MartletCache

/// A folder for a cache, and what caches in it said.
final class CacheFolderScene: Sendable {
    let path: String
    private let heard = Mutex<[DiskCacheEvent]>([])

    init() throws {
        path = FileManager.default.temporaryDirectory.appending(path: "martlet-\(UUID().uuidString)").path
        try LinuxFileSystem().makeFolder(path)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// All that was said.
    var events: [DiskCacheEvent] { heard.withLock { $0 } }

    /// Opens a cache on the folder.
    func cache(
        limit: UInt64 = 16 << 20, order: EvictionOrder = .leastRecentlyUsed,
        files: any FileSystem = LinuxFileSystem()
    ) throws -> DiskCache {
        try DiskCache(directory: path, limit: limit, order: order, files: files) { [weak self] event in
            self?.heard.withLock { $0.append(event) }
        }
    }

    /// The names in the folder.
    var names: [String] {
        get throws { try LinuxFileSystem().names(inFolder: path).sorted() }
    }

    /// The cache's files but lock and index.
    var entryFiles: [String] {
        get throws { try names.filter { $0 != "lock" && $0 != "index" } }
    }

    func contents(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: "\(path)/\(name)")))
    }

    func write(_ bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: "\(path)/\(name)"))
    }

    /// What `du` says of the folder, in bytes.
    var allocated: UInt64 {
        get throws {
            let files = LinuxFileSystem()
            return try names.reduce(try files.status(at: path).allocatedByteCount) { sum, name in
                sum + ((try? files.status(at: "\(path)/\(name)").allocatedByteCount) ?? 0)
            }
        }
    }
}
