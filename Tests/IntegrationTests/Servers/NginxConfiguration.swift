import Glibc

/// The common part of all nginx configurations in the tests.
enum NginxConfiguration {
    /// A complete configuration: one process, with its files in a directory, and timeouts that never expire in a test.
    /// - Parameters:
    ///   - http: the additional text of its `http` block.
    static func text(_ directory: TemporaryDirectory, http: String) throws -> String {
        let scratch = try directory.makeDirectory("scratch")
        return """
            daemon off;
            # One process: none is left over when it is killed.
            master_process off;
            \(getuid() == 0 ? "user root;" : "")
            pid \(directory.path)/nginx.pid;
            events { worker_connections 4096; }
            http {
                access_log off;
                client_body_temp_path \(scratch)/body;
                proxy_temp_path \(scratch)/proxy;
                fastcgi_temp_path \(scratch)/fastcgi;
                uwsgi_temp_path \(scratch)/uwsgi;
                scgi_temp_path \(scratch)/scgi;
                # No test waits for its clocks, and a machine that stands still must not make them end.
                keepalive_timeout 600;
                client_header_timeout 600;
                client_body_timeout 600;
                send_timeout 600;
                proxy_connect_timeout 600;
                proxy_read_timeout 600;
                lingering_time 600;
                lingering_timeout 600;
            \(http)
            }

            """
    }

    /// The arguments that start nginx with a configuration in its directory.
    static func arguments(_ directory: TemporaryDirectory, _ configuration: String) -> [String] {
        ["-p", directory.path, "-e", directory.appending("error.log"), "-c", configuration]
    }

    /// The program's output and its error log so far.
    static func log(_ server: some RealServer) -> String {
        server.child.output + OutputFile.contents(of: server.directory.appending("error.log"))
    }
}
