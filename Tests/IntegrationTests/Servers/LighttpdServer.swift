import Foundation

/// lighttpd: the files of `Site` with ranges and strong ETags.
struct LighttpdServer: PortServer, CommonServer {
    let process: PortProcess

    static let shared = SharedServer { try await start() }

    /// Starts lighttpd. It listens when this returns; the caller has to `stop()` it.
    static func start() async throws -> LighttpdServer {
        let directory = try TemporaryDirectory()
        let site = try Site.write(in: directory)
        return try await listening("lighttpd", in: directory) { port in
            let configuration = try directory.write(
                """
                server.bind = "127.0.0.1"
                server.port = \(port)
                server.document-root = "\(site)"
                server.errorlog = "\(directory.path)/error.log"
                server.max-keep-alive-requests = 1000
                # No test waits for its clocks, and a machine that stands still must not make them end.
                server.max-keep-alive-idle = 600
                server.max-read-idle = 600
                server.max-write-idle = 600
                mimetype.assign = ( ".txt" => "text/plain", ".json" => "application/json", "" => "application/octet-stream" )

                """, to: "lighttpd.conf")
            return ["-D", "-f", configuration]
        }
    }

    /// The program's output, then its error log.
    var log: String { child.output + OutputFile.contents(of: directory.appending("error.log")) }
}
