import Foundation
import Glibc

/// nginx as a shared cache before one origin, by the configuration that the documentation quotes.
final class NginxCache: RealServer {
    let directory: TemporaryDirectory
    let child: ChildProcess
    /// Where clients reach it, as if it were the origin.
    let port: UInt16

    private init(directory: TemporaryDirectory, child: ChildProcess, port: UInt16) {
        self.directory = directory
        self.child = child
        self.port = port
    }

    /// Runs `body` with nginx before an origin on this port of 127.0.0.1, and ends it.
    static func withServer<Value>(
        before origin: Int, _ body: (NginxCache) async throws -> Value
    ) async throws -> Value {
        try await start(origin).whileRunning(body)
    }

    private static func start(_ origin: Int) async throws -> NginxCache {
        let directory = try TemporaryDirectory()
        _ = try directory.makeDirectory("scratch")
        let (child, ports) = try await startListening(program: "nginx", portCount: 1, in: directory) {
            ports in
            let example = try ExampleConfiguration.text(
                "nginx.conf",
                replacing: [
                    "listen 3128": "listen 127.0.0.1:\(ports[0])",
                    "127.0.0.1:8080": "127.0.0.1:\(origin)",
                    "/var/cache/nginx": directory.appending("cache"),
                ])
            try directory.write(example, to: "shared.conf")
            let around = try directory.write(configuration(directory), to: "nginx.conf")
            return ["-p", directory.path, "-e", directory.appending("error.log"), "-c", around]
        }
        return NginxCache(directory: directory, child: child, port: ports[0])
    }

    /// What stands around the file in `/etc/nginx/nginx.conf`.
    private static func configuration(_ directory: TemporaryDirectory) -> String {
        """
        daemon off;
        # One process: none is left over when it is killed.
        master_process off;
        \(getuid() == 0 ? "user root;" : "")
        pid \(directory.path)/nginx.pid;
        events { worker_connections 1024; }
        http {
            access_log off;
            client_body_temp_path \(directory.path)/scratch/body;
            proxy_temp_path \(directory.path)/scratch/proxy;
            fastcgi_temp_path \(directory.path)/scratch/fastcgi;
            uwsgi_temp_path \(directory.path)/scratch/uwsgi;
            scgi_temp_path \(directory.path)/scratch/scgi;
            # A machine that stands still must not make its clocks end.
            keepalive_timeout 600;
            client_header_timeout 600;
            client_body_timeout 600;
            send_timeout 600;
            proxy_connect_timeout 600;
            proxy_read_timeout 600;
            include \(directory.path)/shared.conf;
        }

        """
    }

    /// Its error log, after what it wrote to its outputs.
    var log: String {
        child.output + OutputFile.contents(of: directory.appending("error.log"))
    }
}
