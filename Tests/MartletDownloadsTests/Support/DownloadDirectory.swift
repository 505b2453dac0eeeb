import Foundation
import MartletTesting
import MartletTestSupport
import SystemPackage

/// A directory for one download, removed with the last reference to it.
final class DownloadDirectory: Sendable {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.path + "/martlet-downloads-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    func file(_ name: String) -> FilePath {
        FilePath("\(path)/\(name)")
    }

    /// The names in the directory, sorted.
    func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path).sorted()
    }

    /// The files next to the target from which a download resumes.
    func parts() throws -> [String] {
        try names().filter { DownloadDirectory.isPart($0) }
    }

    static func isPart(_ name: String) -> Bool {
        // A trailing dash marks the replacement of the other file once it is complete.
        [".martlet-part", ".martlet-record", ".martlet-part-", ".martlet-record-"].contains {
            name.hasSuffix($0)
        }
    }

    /// The record of the unfinished download.
    func record() throws -> String? {
        try names().first { $0.hasSuffix(".martlet-record") }
    }

    func contents(of name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(fileURLWithPath: "\(path)/\(name)")))
    }

    func write(_ bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: "\(path)/\(name)"))
    }

    /// The length of a file in bytes; `nil` if it does not exist.
    func byteCount(of name: String) -> UInt64? {
        let attributes = try? FileManager.default.attributesOfItem(atPath: "\(path)/\(name)")
        return (attributes?[.size] as? NSNumber)?.uint64Value
    }

    /// The version that a file equals byte by byte; `nil` if it equals none.
    func version(of name: String, among versions: [RangeVersion]) throws -> Int? {
        guard let count = byteCount(of: name) else { return nil }
        return try versions.firstIndex { version in
            guard version.byteCount == count else { return false }
            let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: "\(path)/\(name)"))
            defer { try? file.close() }
            var offset: UInt64 = 0
            while let piece = try file.read(upToCount: 1 << 20), !piece.isEmpty {
                if version.firstMismatch(in: [UInt8](piece), at: offset) != nil { return false }
                offset += UInt64(piece.count)
            }
            return offset == count
        }
    }

    /// The files in the directory that this process has open.
    func openFiles() -> [String] {
        let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return descriptors.compactMap { name in
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")
        }.filter { $0.hasPrefix(path + "/") }
    }
}
