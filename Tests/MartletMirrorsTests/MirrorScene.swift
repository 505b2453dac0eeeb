import Foundation
import Martlet
import MartletDownloads
import MartletTestSupport
import MartletTesting
import MartletTransport
import SystemPackage
import Testing

/// Files and behaviors that most tests use.
enum Sample {
    static let one = RangeVersion(300_000, entityTag: "\"one\"")
    /// A file of the same length, with a difference in each byte.
    static let other = RangeVersion(300_000, place: 20_011, entityTag: "\"other\"")
    static let longer = RangeVersion(310_001, place: 9_001, entityTag: "\"longer\"")
    /// The number of bytes after which a response is cut.
    static let cut: UInt64 = 100_000

    /// Returns the same file with another tag, as another server sends it.
    static func tagged(_ version: RangeVersion, _ tag: String?) -> RangeVersion {
        RangeVersion(version.byteCount, place: version.place, entityTag: tag)
    }

    static func sha256(_ version: RangeVersion) throws -> Checksum {
        try #require(Checksum(.sha256, try MessageDigest.digest(.sha256, of: version.contents)))
    }

    /// Serves the start of a file, and then only an error.
    static func dying(_ version: RangeVersion, after count: UInt64 = cut, _ status: Int = 404) -> RangeBehavior {
        RangeBehavior(version, acts: [.cut(request: 1, after: count), .answer(from: 2, OriginResponse(status))])
    }

    static func dead(_ status: Int) -> RangeBehavior {
        RangeBehavior(one, acts: [.answer(from: 1, OriginResponse(status))])
    }
}

/// Several origins that serve one file in ranges, a session, and a target directory.
struct MirrorScene: Sendable {
    let ranges: [RangeOrigin]
    let origins: [TestOrigin]
    let session: HTTPSession
    let directory: String

    var urls: [HTTPURL] { get throws { try origins.map { try HTTPURL($0.url("/file.bin")) } } }
    var path: FilePath { FilePath("\(directory)/file.bin") }

    static func with(_ behaviors: [RangeBehavior], run body: (MirrorScene) async throws -> Void) async throws {
        try await with(behaviors[...], [], [], run: body)
    }

    private static func with(
        _ rest: ArraySlice<RangeBehavior>, _ ranges: [RangeOrigin], _ origins: [TestOrigin],
        run body: (MirrorScene) async throws -> Void
    ) async throws {
        if let behavior = rest.first {
            return try await RangeOrigin.with(behavior) { range, origin in
                try await with(rest.dropFirst(), ranges + [range], origins + [origin], run: body)
            }
        }
        let directory = FileManager.default.temporaryDirectory.path + "/martlet-mirrors-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let session = HTTPSession(configuration: .ephemeral)
        let scene = MirrorScene(ranges: ranges, origins: origins, session: session, directory: directory)
        // The gates are opened also after an error, so that no origin waits.
        let result: Result<Void, any Error>
        do { result = .success(try await body(scene)) } catch { result = .failure(error) }
        await session.invalidateAndCancel()
        for range in ranges { range.release() }
        for origin in origins { try await origin.recorder.waitForOpenConnections(atMost: 0) }
        try result.get()
    }

    /// Options with the other origins as mirrors, short delays, and takeovers only if a test enables them.
    func options(_ change: (inout DownloadOptions) throws -> Void = { _ in }) throws -> DownloadOptions {
        var options = DownloadOptions(
            retry: DownloadRetry(maximumRetries: 2, initialDelay: .milliseconds(1), maximumDelay: .milliseconds(5)),
            stallTimeout: .seconds(300), checkpointInterval: .milliseconds(50), mirrors: Array(try urls.dropFirst()))
        options.takeoverThreshold = .seconds(300)
        try change(&options)
        return options
    }

    struct Run {
        var result: Result<DownloadResult, any Error>
        var events: [DownloadEvent]

        var error: HTTPError? { if case .failure(let error) = result { error as? HTTPError } else { nil } }
        var restarts: [DownloadEvent.RestartReason] {
            events.compactMap { if case .restarted(let reason) = $0 { reason } else { nil } }
        }
        var used: [HTTPURL] { events.compactMap { if case .urlUsed(let url) = $0 { url } else { nil } } }
        var failed: [HTTPURL] { events.compactMap { if case .urlFailed(let url, _) = $0 { url } else { nil } } }
    }

    /// Downloads the file of the first origin, and waits for the end.
    func run(_ options: DownloadOptions) async throws -> Run {
        let download = try session.startDownload(try urls[0], to: .file(path), options: options)
        let result: Result<DownloadResult, any Error>
        do { result = .success(try await download.value) } catch { result = .failure(error) }
        var events: [DownloadEvent] = []
        loop: for await event in download.events {
            events.append(event)
            switch event {
            case .finished, .failed, .cancelled: break loop
            default: continue
            }
        }
        return Run(result: result, events: events)
    }

    /// Whether the file exists and is a version, byte for byte.
    func isFile(_ version: RangeVersion) -> Bool {
        guard let bytes = try? Data(contentsOf: URL(fileURLWithPath: path.string)) else { return false }
        return UInt64(bytes.count) == version.byteCount && version.firstMismatch(in: [UInt8](bytes)) == nil
    }

    var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []).sorted() }
}
