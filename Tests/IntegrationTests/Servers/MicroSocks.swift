/// Microsocks, a small SOCKS5 proxy, open or with user `me` and password `hunter2`.
final class MicroSocks: RealServer {
    let directory: TemporaryDirectory
    let child: ChildProcess
    /// Where it listens.
    let port: UInt16

    private init(directory: TemporaryDirectory, child: ChildProcess, port: UInt16) {
        self.directory = directory
        self.child = child
        self.port = port
    }

    /// Runs `body` with Microsocks, and ends it.
    static func withServer<Value>(
        demandsUser: Bool = false, _ body: (MicroSocks) async throws -> Value
    ) async throws -> Value {
        let directory = try TemporaryDirectory()
        let user = demandsUser ? ["-u", "me", "-P", "hunter2"] : []
        let (child, ports) = try await startListening(program: "microsocks", portCount: 1, in: directory) {
            ports in
            ["-i", "127.0.0.1", "-p", "\(ports[0])"] + user
        }
        let server = MicroSocks(directory: directory, child: child, port: ports[0])
        return try await server.whileRunning(body)
    }
}
