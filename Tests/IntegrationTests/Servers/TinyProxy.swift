/// Tinyproxy, a small HTTP proxy: HTTP/1.0 to its clients, one request per connection, Basic for all.
struct TinyProxy: PortServer {
    let process: PortProcess

    /// Runs `body` with Tinyproxy, which accepts `me` with the password `hunter2`, and ends it.
    static func withServer<Value>(_ body: (TinyProxy) async throws -> Value) async throws -> Value {
        try await start().whileRunning(body)
    }

    private static func start() async throws -> TinyProxy {
        let directory = try TemporaryDirectory()
        return try await listening("tinyproxy", in: directory) { port in
            let configuration = try directory.write(
                """
                Port \(port)
                Listen 127.0.0.1
                Timeout 600
                MaxClients 64
                LogLevel Info
                BasicAuth me hunter2

                """, to: "tinyproxy.conf")
            return ["-d", "-c", configuration]
        }
    }
}
