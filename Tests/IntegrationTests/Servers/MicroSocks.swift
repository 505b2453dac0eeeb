/// Microsocks, a small SOCKS5 proxy, open or with user `me` and password `hunter2`.
struct MicroSocks: PortServer {
    let process: PortProcess

    /// Runs `body` with Microsocks, and ends it.
    static func withServer<Value>(
        demandsUser: Bool = false, _ body: (MicroSocks) async throws -> Value
    ) async throws -> Value {
        let directory = try TemporaryDirectory()
        let user = demandsUser ? ["-u", "me", "-P", "hunter2"] : []
        let server = try await listening("microsocks", in: directory) { port in
            ["-i", "127.0.0.1", "-p", "\(port)"] + user
        }
        return try await server.whileRunning(body)
    }
}
