import Foundation

/// The checkout that these tests were compiled from.
enum Repository {
    /// The directory that holds `Package.swift`.
    static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// The text of a file, by its path from the root.
    static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    /// All Swift files below a directory, by their paths from the root, sorted; empty if it does not exist.
    static func swiftFiles(below directory: String) -> [String] {
        let paths = FileManager.default.enumerator(atPath: root.appendingPathComponent(directory).path)
        let names = (paths?.allObjects ?? []).compactMap { $0 as? String }
        return names.filter { $0.hasSuffix(".swift") }.sorted().map { "\(directory)/\($0)" }
    }

    /// The names of the direct entries of a directory, sorted.
    static func contents(of directory: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: root.appendingPathComponent(directory).path)
            .sorted()
    }
}
