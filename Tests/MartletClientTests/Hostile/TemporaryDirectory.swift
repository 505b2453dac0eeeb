import FoundationEssentials

/// A directory that is removed when its last reference is released.
final class TemporaryDirectory: Sendable {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.path + "/martlet-hostile-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    func contents() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path)
    }
}
