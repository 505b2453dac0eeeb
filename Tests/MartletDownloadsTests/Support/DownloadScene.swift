import FoundationEssentials
import Martlet
import MartletTesting
import SystemPackage

/// A server with files, a target directory, and a session: the common setup of download tests.
final class DownloadScene: Sendable {
    let session: HTTPSession
    private let origin: TestOrigin
    private let root: String

    private init(root: String, validators: FileValidators) async throws {
        self.root = root
        for name in ["site", "files"] {
            try FileManager.default.createDirectory(
                atPath: "\(root)/\(name)", withIntermediateDirectories: true)
        }
        origin = try await TestOrigin.start(
            handler: .files(in: FilePath("\(root)/site"), validators: validators))
        session = HTTPSession(configuration: .default)
    }

    /// Runs a test in a new scene.
    static func run(
        validators: FileValidators = .strong, _ body: (DownloadScene) async throws -> Void
    ) async throws {
        let root = FileManager.default.temporaryDirectory.path + "/martlet-downloads-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: root) }
        let scene = try await DownloadScene(root: root, validators: validators)
        try await body(scene)
    }

    /// Stores a file on the server.
    func serve(_ bytes: [UInt8], as name: String) throws {
        try Data(bytes).write(to: URL(filePath: "\(root)/site/\(name)"))
    }

    /// The number of requests that the server has received.
    var requestCount: Int { origin.requests.count }

    func url(_ path: String) -> String { origin.url(path) }

    /// The path of a name in the target directory.
    func path(_ name: String) -> FilePath { FilePath("\(root)/files/\(name)") }

    func read(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(filePath: path(name).string)))
    }

    /// The names in the target directory, sorted.
    func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "\(root)/files").sorted()
    }
}
