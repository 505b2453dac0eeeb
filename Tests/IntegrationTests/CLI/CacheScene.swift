import Foundation
import MartletCache
import MartletStorage
import MartletWire
import Testing

/// A cache directory for the program, removed when its owner calls `remove()`.
struct CacheScene {
    /// The parent directory, which is the working directory of the program.
    let directory: TemporaryDirectory
    /// The cache directory, which is private to its owner.
    let path: String
    /// The cache as another process has it open.
    let cache: DiskCache

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.appending("cache")
        cache = try DiskCache(directory: path, limit: 1 << 30)
    }

    func remove() { directory.remove() }

    /// Stores a response that arrived a number of seconds ago.
    func put(
        _ url: String, _ fields: [(String, String)] = [("Cache-Control", "max-age=1000000")],
        age: Double = 0, body: [UInt8] = Array("body".utf8), partition: String = "",
        selections: [StoredHead.Selection] = []
    ) throws {
        let time = WallTime(milliseconds: Int64((Date().timeIntervalSince1970 - age) * 1000))
        let head = StoredHead(
            key: CacheKey(url: url, partition: partition), status: 200, reason: "OK",
            fields: FieldBlock(fields), selections: selections, requestTime: time, responseTime: time)
        let writer = try #require(cache.begin(head, expectedByteCount: UInt64(body.count)))
        try #require(writer.append(body) && writer.commit())
    }

    /// Runs `martlet cache` with a command on the directory.
    func run(_ command: String, _ arguments: String...) async throws -> Program.Run {
        try await Program.run(["cache", command, "--cache", path] + arguments, in: directory)
    }

    /// The names of the files in the directory that are entries or their bodies.
    var entryFiles: [String] {
        get throws {
            try FileManager.default.contentsOfDirectory(atPath: path).filter { $0.utf8.count >= 34 }.sorted()
        }
    }

    /// The directory and its files: names, contents, and modification times.
    var snapshot: [String: String] {
        get throws {
            var snapshot: [String: String] = [:]
            for name in try FileManager.default.contentsOfDirectory(atPath: path) {
                let status = try LinuxFileSystem().status(at: "\(path)/\(name)")
                snapshot[name] = "\(status.identity) \(status.modificationTime) \(status.byteCount)"
            }
            snapshot["."] = "\(try LinuxFileSystem().status(at: path).modificationTime)"
            return snapshot
        }
    }

    /// Sets the attributes of a file.
    static func set(_ attributes: [FileAttributeKey: Any], of path: String) throws {
        try FileManager.default.setAttributes(attributes, ofItemAtPath: path)
    }

    /// Flips the last bit of a file.
    func damage(_ name: String) throws {
        let url = URL(fileURLWithPath: "\(path)/\(name)")
        var data = try Data(contentsOf: url)
        data[data.count - 1] ^= 1
        try data.write(to: url)
    }
}

extension Program.Run {
    /// Each line of the output as a JSON object.
    var objects: [[String: Any]] {
        get throws {
            try text.split(separator: "\n").map { line in
                try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            }
        }
    }
}
