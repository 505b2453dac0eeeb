import Foundation

/// A directory for one server, removed when its owner calls `remove()`.
struct TemporaryDirectory {
    /// The absolute path, short enough for a unix socket below it.
    let path: String

    init() throws {
        path = "/tmp/martlet-\(UUID().uuidString.prefix(13))"
        // A server started by root runs as an unprivileged user, which has to be able to read the site.
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    }

    /// The path of a name in the directory.
    func appending(_ name: String) -> String {
        "\(path)/\(name)"
    }

    /// Creates a subdirectory and returns its path.
    func makeDirectory(_ name: String) throws -> String {
        let made = appending(name)
        try FileManager.default.createDirectory(atPath: made, withIntermediateDirectories: true)
        return made
    }

    /// Writes a file of the directory and returns its path.
    @discardableResult
    func write(_ text: String, to name: String) throws -> String {
        let file = appending(name)
        try InputFile.write(Data(text.utf8), to: file)
        return file
    }

    /// Deletes the directory and all below it. Does nothing if it is already deleted.
    func remove() {
        try? FileManager.default.removeItem(atPath: path)
    }
}
