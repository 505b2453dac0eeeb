/// nginx or Apache as a reverse proxy in front of one origin. It passes on bodies of requests while they arrive, and
/// WebSocket connections.
///
/// Apache also passes on interim responses, and decodes the content coding of request bodies. It passes WebSocket
/// connections on with `mod_proxy_http`, and below `/tunnel/` with `mod_proxy_wstunnel`, which sends a path without
/// `/tunnel`.
struct ReverseProxy: PortServer {
    enum Program: String, CaseIterable, Sendable {
        case nginx
        case apache2
    }

    let process: PortProcess

    /// Runs `body` with a proxy in front of an origin on this port of 127.0.0.1, and ends it.
    static func withServer<Value>(
        _ program: Program, before origin: Int, _ body: (ReverseProxy) async throws -> Value
    ) async throws -> Value {
        let directory = try TemporaryDirectory()
        let proxy = try await listening(program.rawValue, in: directory) { port in
            let configuration = try directory.write(
                program == .nginx ? nginx(directory, port, origin) : apache(directory, port, origin),
                to: "proxy.conf")
            return program == .nginx
                ? NginxConfiguration.arguments(directory, configuration)
                : ["-X", "-d", directory.path, "-f", configuration]
        }
        return try await proxy.whileRunning(body)
    }

    private static func nginx(_ directory: TemporaryDirectory, _ port: UInt16, _ origin: Int) throws -> String {
        try NginxConfiguration.text(
            directory,
            http: """
                map $http_upgrade $connection_field { default upgrade; "" close; }
                server {
                    listen 127.0.0.1:\(port);
                    location / {
                        proxy_pass http://127.0.0.1:\(origin);
                        proxy_http_version 1.1;
                        proxy_set_header Upgrade $http_upgrade;
                        proxy_set_header Connection $connection_field;
                        proxy_request_buffering off;
                        client_max_body_size 0;
                    }
                }
                """)
    }

    private static func apache(_ directory: TemporaryDirectory, _ port: UInt16, _ origin: Int) -> String {
        let modules = ["authz_core", "filter", "deflate", "proxy", "proxy_http", "proxy_wstunnel"]
        return ApacheServer.preamble(directory, modules: modules) + """

            Listen 127.0.0.1:\(port)
            Timeout 600
            # Without a pause after a failed request.
            ProxyPass /tunnel/ ws://127.0.0.1:\(origin)/ retry=0
            ProxyPass / http://127.0.0.1:\(origin)/ retry=0 upgrade=websocket
            # Otherwise mod_proxy_http serves ws: URLs, too.
            ProxyWebsocketFallbackToProxyHttp Off
            <Location />
                SetInputFilter DEFLATE
            </Location>

            """
    }

    /// The program's output, then its error log.
    var log: String { NginxConfiguration.log(self) }
}
