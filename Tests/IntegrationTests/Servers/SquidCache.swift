import Foundation
import Glibc

/// Squid as a shared cache, by the configuration that the documentation quotes.
///
/// Others use it at the same time, and a port may be an origin's again after another's: whoever asks it for something
/// chooses a path that nobody else has.
struct SquidCache: PortServer, CommonServer {
    let process: PortProcess

    static let shared = SharedServer { try await start() }

    /// Runs `body` with a Squid of its own, which opens tunnels to this port alone, and ends it.
    static func withServer<Value>(
        tunnellingTo port: Int, _ body: (SquidCache) async throws -> Value
    ) async throws -> Value {
        try await start(tunnelPort: port).whileRunning(body)
    }

    private static func start(tunnelPort: Int = 443) async throws -> SquidCache {
        let directory = try TemporaryDirectory()
        // Started by root it serves as a user of its own, who writes the logs and what is stored.
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
        // Its directories are made before it serves, by a run that listens nowhere.
        let made = try write(port: 1)
        try await Command.succeed("squid", ["-N", "-z", "-n", "nest\(getpid())", "-f", made])
        return try await listening("squid", in: directory) { port in
            // Its shared memory is named after the service: two of them must not be one.
            ["-N", "-n", "nest\(port)", "-f", try write(port: port)]
        }
    }

    /// Its logs, after what it wrote to its outputs.
    var log: String {
        child.output + OutputFile.contents(of: directory.appending("cache.log"))
            + OutputFile.contents(of: directory.appending("access.log"))
    }
}
