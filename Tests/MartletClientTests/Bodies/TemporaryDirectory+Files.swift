import FoundationEssentials
import Martlet

extension TemporaryDirectory {
    /// The path of a file in the directory.
    func path(_ name: String) -> FilePath { FilePath(path + "/" + name) }

    /// Writes a file, replacing an existing one.
    func write(_ bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: URL(filePath: path + "/" + name))
    }

    /// Returns the content of a file.
    func bytes(of name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(filePath: path + "/" + name)))
    }

    /// Whether the directory contains a file of this name.
    func contains(_ name: String) -> Bool { FileManager.default.fileExists(atPath: path + "/" + name) }
}
