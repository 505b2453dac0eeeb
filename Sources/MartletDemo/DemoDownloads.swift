import Martlet
import MartletTesting
import Synchronization

/// The step with a download that is cut, stopped and resumed.
enum DemoDownloads {
    private static let byteCount: UInt64 = 24 << 20

    static let steps = [
        Demo.Step(
            title: "Download 24 MiB in segments, cut by the server, stopped by us, resumed and verified",
            run: download)
    ]

    private static func download(_ stage: DemoEnvironment) async throws -> [String] {
        let requests = Atomic(0)
        let handler = OriginHandler { request in
            let number = requests.add(1, ordering: .relaxed).newValue
            let content = OriginContent(body: .pattern(byteCount), entityTag: "\"demo\"")
            return content.response(to: request).with { response in
                response.pacing = .bytesPerSecond(8 << 20)
                // One connection breaks, over TLS and without a closing message.
                if number == 2 { response.fault = OriginFault(.cut, afterBodyBytes: 1 << 20) }
            }
        }
        return try await TestOrigin.withOrigin(.tls(.trusted), handler: handler) { origin in
            try await stopAndResume(origin, stage) { requests.load(ordering: .relaxed) }
        }
    }

    /// - Parameter count: The number of requests so far.
    private static func stopAndResume(
        _ origin: TestOrigin, _ stage: DemoEnvironment, _ count: () -> Int
    ) async throws -> [String] {
        let session = stage.session(trusting: origin)
        let path = stage.folder.appending("segments.bin")
        let first = try session.startDownload(origin.url("/file"), to: .file(path))
        var most = 0
        for await progress in first.progress {
            most = max(most, progress.connectionCount)
            if progress.completedByteCount >= byteCount / 2 || progress.isFinished { break }
        }
        await first.pause()
        guard case .paused = first.state else { throw DemoFailure("it is \(first.state), and not paused") }
        let before = count()
        let sum = await BlockingThreadPool.shared.run { () -> [UInt8]? in try? digest() }
        var options = DownloadOptions()
        options.checksum = sum.flatMap { Checksum(.sha256, $0) }
        let result = try await session.download(origin.url("/file"), to: path, options: options)
        try check(result.byteCount == byteCount, "\(result.byteCount) bytes came")
        try check(result.resumedByteCount >= byteCount / 2, "only \(result.resumedByteCount) bytes were kept")
        let length = await DemoTransfers.patternLength(of: path)
        try check(length == byteCount, "the file is not what was sent")
        try check(result.verified.count == 1, "the checksum was not looked at")
        return [
            "up to \(most) connections, \(before) requests, one of them cut; stopped with "
                + "\(result.resumedByteCount) bytes",
            "resumed with \(count() - before) more for the rest; \(result.verified[0].description)",
        ]
    }

    private static func digest() throws -> [UInt8] {
        let digest = try MessageDigest(.sha256)
        for piece in DemoTransfers.pieces(of: byteCount) { digest.update(piece.span) }
        return try digest.finish()
    }
}
