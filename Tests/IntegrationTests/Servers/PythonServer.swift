/// CPython's `http.server`: the files of `Site`, without ranges, ETags or compression.
struct PythonServer: PortServer {
    /// The HTTP version. The default of `http.server` is HTTP/1.0, which closes the connection after each response.
    enum Version: String {
        case http10 = "HTTP/1.0"
        case http11 = "HTTP/1.1"
    }

    let process: PortProcess

    private static let shared10 = SharedServer { try await start(.http10) }
    private static let shared11 = SharedServer { try await start(.http11) }

    /// Runs `body` with the server. Other tests may use it at the same time, so `body` leaves it running.
    static func withServer<Value>(
        _ version: Version, _ body: (PythonServer) async throws -> Value
    ) async throws -> Value {
        switch version {
        case .http10: try await shared10.whileRunning(body)
        case .http11: try await shared11.whileRunning(body)
        }
    }

    /// Starts the server. It listens when this returns; the caller has to `stop()` it.
    static func start(_ version: Version) async throws -> PythonServer {
        let directory = try TemporaryDirectory()
        let site = try Site.write(in: directory)
        return try await listening("python3", in: directory) { port in
            [
                "-u", "-m", "http.server", "--bind", "127.0.0.1", "--protocol", version.rawValue,
                "--directory", site, "\(port)",
            ]
        }
    }
}
