/// nginx as a shared cache in front of one origin, by the configuration that the documentation quotes. A client uses it
/// as if it were the origin.
struct NginxCache: PortServer {
    let process: PortProcess

    /// Runs `body` with nginx in front of an origin on this port of 127.0.0.1, and ends it.
    static func withServer<Value>(
        before origin: Int, _ body: (NginxCache) async throws -> Value
    ) async throws -> Value {
        try await start(origin).whileRunning(body)
    }

    private static func start(_ origin: Int) async throws -> NginxCache {
        let directory = try TemporaryDirectory()
        // The text around the file in `/etc/nginx/nginx.conf`.
        let around = try directory.write(
            NginxConfiguration.text(directory, http: "    include \(directory.path)/shared.conf;"),
            to: "nginx.conf")
        return try await listening("nginx", in: directory) { port in
            let example = try ExampleConfiguration.text(
                "nginx.conf",
                replacing: [
                    "listen 3128": "listen 127.0.0.1:\(port)",
                    "127.0.0.1:8080": "127.0.0.1:\(origin)",
                    "/var/cache/nginx": directory.appending("cache"),
                ])
            try directory.write(example, to: "shared.conf")
            return NginxConfiguration.arguments(directory, around)
        }
    }

    /// The program's output, then its error log.
    var log: String { NginxConfiguration.log(self) }
}
