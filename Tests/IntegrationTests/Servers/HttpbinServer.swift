import Foundation

/// httpbin on waitress, both from PyPI. The path selects the response.
///
/// See https://httpbin.org for its paths. Its digest endpoints keep their state in cookies.
struct HttpbinServer: PortServer, CommonServer {
    let process: PortProcess

    static let shared = SharedServer { try await start() }

    /// Starts the server. It listens when this returns; the caller has to `stop()` it.
    static func start() async throws -> HttpbinServer {
        let directory = try TemporaryDirectory()
        // `Scripts/install.sh test` creates it.
        let python = Repository.root.appendingPathComponent(".build/httpbin/bin/python").path
        return try await listening(python, in: directory) { port in
            // Endpoints that wait block a thread for that time.
            ["-u", "-m", "waitress", "--listen=127.0.0.1:\(port)", "--threads=32", "httpbin:app"]
        }
    }

    /// The URL of a path.
    func url(_ path: String) -> String { url(port, path) }
}
