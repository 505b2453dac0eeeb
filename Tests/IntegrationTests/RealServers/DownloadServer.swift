import Testing

/// The servers that files are downloaded from.
enum DownloadServer: String, CaseIterable, CustomTestStringConvertible {
    case nginx, apache, lighttpd, flask, python10, python11

    /// The location of a server's files.
    struct Place: Sendable {
        /// The port of the server.
        var port: UInt16
        /// The directory of its files.
        var site: String

        /// The URL of a path, for a client.
        func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }
    }

    var testDescription: String { rawValue }

    /// Whether it supports ranges.
    var hasRanges: Bool { self != .python10 && self != .python11 }

    /// The servers that support ranges.
    static let withRanges = allCases.filter(\.hasRanges)

    /// Runs a test with the server.
    func run(_ body: (Place) async throws -> Void) async throws {
        switch self {
        case .nginx:
            try await NginxServer.withServer {
                try await body(Place(port: $0.plainPort, site: $0.directory.appending("site")))
            }
        case .apache:
            try await ApacheServer.withServer {
                try await body(Place(port: $0.plainPort, site: $0.directory.appending("site")))
            }
        case .lighttpd:
            try await LighttpdServer.withServer {
                try await body(Place(port: $0.port, site: $0.directory.appending("site")))
            }
        case .flask:
            try await FlaskServer.withServer {
                try await body(Place(port: $0.port, site: $0.directory.appending("site")))
            }
        case .python10:
            try await PythonServer.withServer(.http10) {
                try await body(Place(port: $0.port, site: $0.directory.appending("site")))
            }
        case .python11:
            try await PythonServer.withServer(.http11) {
                try await body(Place(port: $0.port, site: $0.directory.appending("site")))
            }
        }
    }
}
