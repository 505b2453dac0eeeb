import FoundationEssentials
@testable import MartletDownloads
import MartletStorage
import MartletTesting

/// A temporary directory, and the files of one download in it.
final class PartDirectory {
    let path: String
    let names: PartNames

    init(target: String = "a.bin") throws {
        path = FileManager.default.temporaryDirectory.path + "/martlet-part-\(UUID().uuidString)"
        names = PartNames(target: "\(path)/\(target)")
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func open(
        _ files: any FileSystem = LinuxFileSystem(), durability: DownloadOptions.Durability = .synced
    ) throws -> PartFile? {
        try PartFile.open(names, durability: durability, files: files)
    }

    /// The names in the directory, sorted.
    func list() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: path).sorted() }

    func read(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(filePath: "\(path)/\(name)")))
    }

    func write(_ bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: URL(filePath: "\(path)/\(name)"))
    }

    /// Makes the record of a file with these ranges.
    static func record(
        _ written: [Range<UInt64>], total: UInt64, version: Int = 1, owner: UInt64
    ) -> ResumeRecord {
        ResumeRecord(
            url: "http://files.example/a.bin",
            representation: Representation.sample(("ETag", "\"\(version)\"")), total: total,
            written: RangeSet(written), isUnproven: false, generation: 1, digests: [], modified: nil,
            owner: owner)
    }

    /// The bytes of a version of a file; no byte is the same in two versions, and all are nonzero.
    static func bytes(_ range: Range<UInt64>, version: Int) -> [UInt8] {
        range.map { UInt8(truncatingIfNeeded: $0 % 120) + (version == 1 ? 1 : 128) }
    }

    /// Writes bytes of a version at their offsets.
    static func fill(
        _ file: OpenFile, _ range: Range<UInt64>, version: Int = 1, files: any FileSystem = LinuxFileSystem()
    ) throws(StorageError) {
        try files.write(all: bytes(range, version: version), to: file, at: range.lowerBound)
    }
}

extension PartFile {
    /// Publishes the complete file in all of its steps, in a directory that can be synced.
    func publish(
        total: UInt64, _ collision: DownloadOptions.Collision, modified: Int64?
    ) throws(StorageError) -> String {
        _ = try seal(total: total, modified: modified)
        var name = try publish(collision)
        if name == nil {
            _ = try copy(total: total, modified: modified)
            name = try publishCopy(collision)
        }
        if let fault = name?.syncError { throw fault }
        return name?.path ?? ""
    }
}
