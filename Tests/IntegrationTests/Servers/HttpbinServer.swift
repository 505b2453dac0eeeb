import Foundation

/// httpbin, which answers as its paths say, under waitress: both from PyPI.
///
/// See https://httpbin.org for its paths. Its digest endpoints keep their state in cookies.
final class HttpbinServer: RealServer {
    let directory: TemporaryDirectory
    let child: ChildProcess
    /// HTTP without TLS.
    let port: UInt16

    private init(directory: TemporaryDirectory, child: ChildProcess, port: UInt16) {
        self.directory = directory
        self.child = child
        self.port = port
    }

    private static let shared = SharedServer { try await start() }

    /// Runs `body` with the server. Other tests may use it at the same time, so `body` leaves it running.
    static func withServer<Value>(_ body: (HttpbinServer) async throws -> Value) async throws -> Value {
        try await shared.whileRunning(body)
    }

    /// Starts the server. It listens when this returns; the caller has to `stop()` it.
    static func start() async throws -> HttpbinServer {
        let directory = try TemporaryDirectory()
        // `Scripts/install.sh test` makes it.
        let python = Repository.root.appendingPathComponent(".build/httpbin/bin/python").path
        let (child, ports) = try await startListening(program: python, portCount: 1, in: directory) { ports in
            // Endpoints that wait hold a thread for as long.
            ["-u", "-m", "waitress", "--listen=127.0.0.1:\(ports[0])", "--threads=32", "httpbin:app"]
        }
        return HttpbinServer(directory: directory, child: child, port: ports[0])
    }

    /// The URL of a path.
    func url(_ path: String) -> String { url(port, path) }
}
