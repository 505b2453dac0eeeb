import Foundation

/// The directory `Fuzz` of the checkout from which these tests were compiled.
enum FuzzDirectory {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Fuzz")

    /// The kinds of stored inputs.
    static let kinds = ["Seeds", "Corpus", "Regressions"]

    /// An input with its path relative to the directory.
    struct Input: Sendable {
        let path: String
        let bytes: [UInt8]
    }

    /// Returns the inputs of a kind for an entry in order; empty without a directory.
    static func inputs(_ kind: String, of entry: String) throws -> [Input] {
        try names(in: "\(kind)/\(entry)").map { name in
            let path = "\(kind)/\(entry)/\(name)"
            return Input(path: path, bytes: Array(try Data(contentsOf: root.appendingPathComponent(path))))
        }
    }

    /// Returns the names in a directory in order; empty if it does not exist.
    static func names(in directory: String) throws -> [String] {
        let path = root.appendingPathComponent(directory).path
        guard FileManager.default.fileExists(atPath: path) else { return [] }
        return try FileManager.default.contentsOfDirectory(atPath: path).sorted()
    }

    /// Returns the text of a file.
    static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }
}
