/// Tinyproxy, a small HTTP proxy: HTTP/1.0 towards its clients, a connection for each request, Basic for all.
final class TinyProxy: RealServer {
    let directory: TemporaryDirectory
    let child: ChildProcess
    /// Where it listens.
    let port: UInt16

    private init(directory: TemporaryDirectory, child: ChildProcess, port: UInt16) {
        self.directory = directory
        self.child = child
        self.port = port
    }

    /// Runs `body` with Tinyproxy, which takes `me` with the password `hunter2`, and ends it.
    static func withServer<Value>(_ body: (TinyProxy) async throws -> Value) async throws -> Value {
        try await start().whileRunning(body)
    }

    private static func start() async throws -> TinyProxy {
        let directory = try TemporaryDirectory()
        let (child, ports) = try await startListening(program: "tinyproxy", portCount: 1, in: directory) {
            ports in
            let configuration = try directory.write(
                """
                Port \(ports[0])
                Listen 127.0.0.1
                Timeout 600
                MaxClients 64
                LogLevel Info
                BasicAuth me hunter2

                """, to: "tinyproxy.conf")
            return ["-d", "-c", configuration]
        }
        return TinyProxy(directory: directory, child: child, port: ports[0])
    }
}
