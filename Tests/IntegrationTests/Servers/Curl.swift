import MartletCredentials
import Foundation

/// `curl`, the second opinion on what a server answers.
enum Curl {
    /// What curl received.
    struct StreamedResponse {
        /// curl's exit status: 0, or what its manual says under "EXIT CODES".
        let exitCode: Int32
        /// The last response's status; 0 without one.
        let status: Int
        /// The last response's fields, in order, with their names as sent.
        let headers: [(name: String, value: String)]
        /// The last response's content.
        let body: [UInt8]
        /// What curl said on its standard error.
        let message: String

        /// The body as text.
        var text: String { String(decoding: body, as: UTF8.self) }

        /// The first value of the field `name`, in whatever case.
        func header(_ name: String) -> String? {
            headers.first { $0.name.lowercased() == name.lowercased() }?.value
        }
    }

    /// Runs curl without its configuration file, without a proxy, and for five minutes at most.
    ///
    /// - Parameter arguments: more options, and the URL.
    static func run(_ arguments: String...) async throws -> StreamedResponse {
        try await run(arguments)
    }

    /// Runs curl without its configuration file, without a proxy, and for five minutes at most.
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

    /// Reads the last head of those that curl wrote one after another; trailers count as its fields.
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
