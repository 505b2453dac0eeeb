import Foundation

/// Flask on waitress, from httpbin's environment: the files of `Site` from CPython, with ranges and strong ETags.
struct FlaskServer: PortServer, CommonServer {
    let process: PortProcess

    static let shared = SharedServer { try await start() }

    /// Starts the server. It listens when this returns; the caller has to `stop()` it.
    static func start() async throws -> FlaskServer {
        let directory = try TemporaryDirectory()
        let site = try Site.write(in: directory)
        try directory.write(
            """
            from flask import Flask
            app = Flask(__name__, static_folder="\(site)", static_url_path="")

            """, to: "files.py")
        // `Scripts/install.sh test` creates it.
        let python = Repository.root.appendingPathComponent(".build/httpbin/bin/python").path
        return try await listening(python, in: directory) { port in
            ["-u", "-m", "waitress", "--listen=127.0.0.1:\(port)", "--threads=32", "files:app"]
        }
    }
}
