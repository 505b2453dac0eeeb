import Foundation

/// The folder `Fuzz` of the checkout that these tests were compiled from.
enum FuzzFolder {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Fuzz")

    /// The kinds of inputs that are checked in.
    static let kinds = ["Seeds", "Corpus", "Regressions"]

    /// An input by its path from the folder.
    struct Input: Sendable {
        let path: String
        let bytes: [UInt8]
    }

    /// The inputs of a kind for an entry, in order; none when there is no folder of them.
    static func inputs(_ kind: String, of entry: String) throws -> [Input] {
        try names(in: "\(kind)/\(entry)").map { name in
            let path = "\(kind)/\(entry)/\(name)"
            return Input(path: path, bytes: Array(try Data(contentsOf: root.appendingPathComponent(path))))
        }
    }

    /// The names of what is directly in a folder, in order; none when it does not exist.
    static func names(in folder: String) throws -> [String] {
        let path = root.appendingPathComponent(folder).path
        guard FileManager.default.fileExists(atPath: path) else { return [] }
        return try FileManager.default.contentsOfDirectory(atPath: path).sorted()
    }

    /// The text of a file.
    static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }
}
