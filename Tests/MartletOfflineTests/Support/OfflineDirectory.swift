import Foundation
import SystemPackage

/// A directory for a queue, removed with the last reference to it.
final class OfflineDirectory: Sendable {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.path + "/martlet-offline-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    var directory: FilePath { FilePath(path) }

    /// The names in the directory except the lock, sorted.
    func names(in directory: String = "") throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path + "/" + directory).sorted().filter {
            $0 != "lock"
        }
    }

    func contents(of name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(fileURLWithPath: "\(path)/\(name)")))
    }

    /// The length of a file in bytes; `nil` if it does not exist.
    func byteCount(of name: String) -> Int? {
        let attributes = try? FileManager.default.attributesOfItem(atPath: "\(path)/\(name)")
        return (attributes?[.size] as? NSNumber)?.intValue
    }

    func write(_ bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: "\(path)/\(name)"))
    }

    func remove(_ name: String) throws {
        try FileManager.default.removeItem(atPath: "\(path)/\(name)")
    }

    func makeDirectory(_ name: String) throws {
        try FileManager.default.createDirectory(atPath: "\(path)/\(name)", withIntermediateDirectories: true)
    }

    func permissions(of name: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: "\(path)/\(name)")
        return (attributes[.posixPermissions] as? NSNumber)?.intValue ?? 0
    }

    func setPermissions(_ permissions: Int, of name: String) throws {
        try FileManager.default.setAttributes(
            [.posixPermissions: permissions], ofItemAtPath: "\(path)/\(name)")
    }

    /// The bytes of all files in the directory, whatever their names.
    func allBytes() throws -> [UInt8] {
        let names = FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []
        return names.flatMap { (try? contents(of: $0)) ?? [] }
    }
}
