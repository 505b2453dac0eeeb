import Martlet
import MartletTesting
import MartletTestSupport
import SystemPackage
import Testing

/// A session, an origin that serves one file in ranges, and a target directory.
struct RangeScene: Sendable {
    let origin: TestOrigin
    let ranges: RangeOrigin
    let directory: DownloadDirectory
    let session: HTTPSession

    /// The name of the file.
    static let name = "file.bin"

    var url: String { origin.url("/\(RangeScene.name)") }
    var path: FilePath { directory.file(RangeScene.name) }

    /// Runs a closure in a scene.
    static func with(
        _ conduct: RangeBehavior, isSecure: Bool = false,
        configure: (inout SessionConfiguration) -> Void = { _ in },
        run body: (RangeScene) async throws -> Void
    ) async throws {
        try await RangeOrigin.with(conduct, isSecure ? .tls() : .plain) { ranges, origin in
            let scene = RangeScene(
                origin: origin, ranges: ranges, directory: try DownloadDirectory(),
                session: .own(origin, configure))
            try await body(scene)
            await scene.session.invalidateAndCancel()
            ranges.release()
            // A leaked connection would be found here.
            try await origin.recorder.waitForOpenConnections(atMost: 0)
        }
    }

    /// The default options of the tests: short waits, and 300 s before a stall or a takeover.
    static var options: DownloadOptions {
        var options = DownloadOptions(
            retry: DownloadRetry(
                maximumRetries: 8, initialDelay: .milliseconds(1), maximumDelay: .milliseconds(5),
                maximumRetryAfter: .milliseconds(20)),
            stallTimeout: .seconds(300), checkpointInterval: .milliseconds(50))
        options.takeoverThreshold = .seconds(300)
        return options
    }

    /// The default options with a change.
    static func options(_ change: (inout DownloadOptions) throws -> Void) rethrows -> DownloadOptions {
        var options = options
        try change(&options)
        return options
    }

    // MARK: Running

    /// Downloads the file and waits for the end.
    func run(_ options: DownloadOptions = options, from url: String? = nil) async throws -> RangeRun {
        let download = try session.startDownload(url ?? self.url, to: .file(path), options: options)
        let result: Result<DownloadResult, any Error>
        do {
            result = .success(try await download.value)
        } catch {
            result = .failure(error)
        }
        return RangeRun(
            result: result, events: await RangeScene.events(of: download), requests: ranges.requests,
            sentByteCount: ranges.sentByteCount)
    }

    /// The events of a finished download.
    static func events(of download: Download) async -> [DownloadEvent] {
        var events: [DownloadEvent] = []
        for await event in download.events {
            events.append(event)
            switch event {
            case .finished, .failed, .cancelled: return events
            default: continue
            }
        }
        return events
    }

    // MARK: Invariants

    /// Checks that the file is one of some versions or absent, and that only the files of a download exist.
    func expectOrder(
        after run: RangeRun, versions: [RangeVersion], sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let names = try directory.names()
        let others = names.filter { $0 != RangeScene.name && !DownloadDirectory.isPart($0) }
        #expect(others.isEmpty, "left behind", sourceLocation: sourceLocation)
        if run.value != nil {
            #expect(names == [RangeScene.name], "\(run.log)", sourceLocation: sourceLocation)
            let version = try directory.version(of: RangeScene.name, among: versions)
            #expect(version != nil, "a mixed file\n\(run.log)", sourceLocation: sourceLocation)
        } else {
            #expect(
                !names.contains(RangeScene.name), "a file without success\n\(run.log)",
                sourceLocation: sourceLocation)
        }
        let most = versions.map(\.byteCount).max() ?? 0
        for part in names where part.hasSuffix(".martlet-part") {
            #expect((directory.byteCount(of: part) ?? 0) <= most, sourceLocation: sourceLocation)
        }
        let isClosed = await eventually { directory.openFiles().isEmpty }
        #expect(isClosed, "\(directory.openFiles())", sourceLocation: sourceLocation)
        for request in ranges.requests {
            #expect(request.method == .get, sourceLocation: sourceLocation)
            #expect(request.fields["Accept-Encoding"] == "identity", sourceLocation: sourceLocation)
            #expect(
                request.ifRange?.hasPrefix("W/") != true, "a weak tag in If-Range",
                sourceLocation: sourceLocation)
        }
    }
}
