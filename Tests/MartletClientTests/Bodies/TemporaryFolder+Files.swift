import FoundationEssentials
import Martlet

extension TemporaryFolder {
    /// The path of a file in it.
    func path(_ name: String) -> FilePath { FilePath(path + "/" + name) }

    /// Writes a file anew.
    func write(_ bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: URL(filePath: path + "/" + name))
    }
}
