import Foundation
import Glibc

/// Squid as a shared cache, by the configuration that the documentation quotes.
///
/// Tests share it, and a port of one origin may later be that of another: each test chooses a unique path.
struct SquidCache: PortServer, CommonServer {
    let process: PortProcess

    static let shared = SharedServer { try await start() }

    /// Runs `body` with a separate Squid, which opens tunnels only to this port, and ends it.
    static func withServer<Value>(
        tunnellingTo port: Int, _ body: (SquidCache) async throws -> Value
    ) async throws -> Value {
        try await start(tunnelPort: port).whileRunning(body)
    }

    private static func start(tunnelPort: Int = 443) async throws -> SquidCache {
        let directory = try TemporaryDirectory()
        // When started by root it runs as its own user, which writes the logs and the stored responses.
        for path in [directory.path, try directory.makeDirectory("spool")] {
            try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: path)
        }
        func write(port: UInt16) throws -> String {
            let text = try ExampleConfiguration.text(
                "squid.conf",
                replacing: [
                    "http_port 3128": "http_port 127.0.0.1:\(port)",
                    "acl tls port 443": "acl tls port \(tunnelPort)",
                    "/var/spool/squid": directory.appending("spool"),
                    "/var/log/squid": directory.path,
                    "/run/squid.pid": "none",
                ])
            return try directory.write(text, to: "squid.conf")
        }
        // A run without listeners creates its directories before it serves.
        let made = try write(port: 1)
        try await Command.succeed("squid", ["-N", "-z", "-n", "nest\(getpid())", "-f", made])
        return try await listening("squid", in: directory) { port in
            // Its shared memory is named after the service: two instances must not share it.
            ["-N", "-n", "nest\(port)", "-f", try write(port: port)]
        }
    }

    /// The program's output, then its logs.
    var log: String {
        child.output + OutputFile.contents(of: directory.appending("cache.log"))
            + OutputFile.contents(of: directory.appending("access.log"))
    }
}
