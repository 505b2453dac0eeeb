import Martlet

/// The samples about compressed bodies, compiled; a test compares them with the documentation.
enum CompressionSamples {
    struct Report: Encodable {}

    static func compressed(_ session: HTTPSession, _ url: HTTPURL, _ report: Report) async throws {
        _ = try await session.post(url, body: .json(report).compressed(.gzip))
        _ = try await session.put(
            url, body: .file("/data/log.txt").compressed(.gzip, level: 9))
    }
}
