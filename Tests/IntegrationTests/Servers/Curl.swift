import MartletCredentials
import Foundation

/// The `curl` command, as a second opinion on the responses of a server.
enum Curl {
    /// The response that curl received.
    struct StreamedResponse {
        /// The exit status of curl: 0, or a code from "EXIT CODES" in its manual.
        let exitCode: Int32
        /// The status of the last response; 0 without one.
        let status: Int
        /// The fields of the last response, in order, with their names as sent.
        let headers: [(name: String, value: String)]
        /// The content of the last response.
        let body: [UInt8]
        /// The standard error of curl.
        let message: String

        /// The body as text.
        var text: String { String(decoding: body, as: UTF8.self) }

        /// The first value of the field `name`, in any case.
        func header(_ name: String) -> String? {
            headers.first { $0.name.lowercased() == name.lowercased() }?.value
        }
    }

    /// Runs curl without its configuration file, without a proxy, and for at most five minutes.
    ///
    /// - Parameter arguments: more options, and the URL.
    static func run(_ arguments: String...) async throws -> StreamedResponse {
        try await run(arguments)
    }

    /// Runs curl without its configuration file, without a proxy, and for at most five minutes.
    ///
    /// - Parameter arguments: more options, and the URL.
    static func run(_ arguments: [String]) async throws -> StreamedResponse {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let common = [
            "-q", "--silent", "--show-error", "--noproxy", "*", "--max-time", "300",
            "--dump-header", directory.appending("head"), "--output", directory.appending("body"),
        ]
        let (exitCode, message) = try await Command.run("curl", common + arguments)
        let (status, headers) = lastHead(OutputFile.contents(of: directory.appending("head")))
        let body = OutputFile.bytes(of: directory.appending("body"))
        return StreamedResponse(
            exitCode: exitCode, status: status, headers: headers, body: body, message: message)
    }

    /// Reads the last head from curl's output; trailers count as its fields.
    private static func lastHead(_ text: String) -> (status: Int, headers: [(name: String, value: String)]) {
        var status = 0
        var headers: [(name: String, value: String)] = []
        for line in text.split(separator: "\r\n") {
            if line.hasPrefix("HTTP/") {
                status = Int(line.split(separator: " ").dropFirst().first ?? "") ?? 0
                headers = []
            } else if let colon = line.firstIndex(of: ":") {
                let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
                headers.append((String(line[..<colon]), value))
            }
        }
        return (status, headers)
    }
}
