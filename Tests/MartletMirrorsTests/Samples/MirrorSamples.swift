import Martlet
import MartletMetalink

/// The samples of the article about downloads that use mirrors; compiled, never run.
enum MirrorSamples {
    static func mirrors(_ session: HTTPSession, _ digits: String) async throws {
        let result = try await session.download(
            "https://example.org/disk.img", to: "/data/disk.img",
            options: .init(
                checksum: .sha256(digits),
                mirrors: [
                    HTTPURL("https://eu.example.net/disk.img"),
                    HTTPURL("https://us.example.net/disk.img"),
                ]))
        for (url, count) in result.metrics?.receivedByteCounts ?? [:] { print(url, count) }
    }

    static func metalink(_ session: HTTPSession) async throws {
        let document = try await session.get("https://example.org/disk.meta4").body
        for file in try Metalink(document).downloads {
            try await session.download(
                file.url, to: "/data/\(file.name)", options: file.options)
        }
    }
}
