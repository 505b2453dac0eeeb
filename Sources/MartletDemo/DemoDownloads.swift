import Martlet
import MartletTesting
import MartletTransport
import Synchronization
import SystemPackage

/// The step of the download that is cut, stopped and resumed.
enum DemoDownloads {
    private static let byteCount: UInt64 = 24 << 20

    static let steps = [
        Demo.Step(
            title: "Download 24 MiB in segments, cut by the server, stopped by us, resumed and verified",
            run: download)
    ]

    /// What the origin has seen.
    private final class Requests: Sendable {
        private let ranges = Mutex<[String]>([])

        /// Notes a request.
        /// - Returns: How many there were.
        func add(_ range: String?) -> Int {
            ranges.withLock { ranges in
                ranges.append(range ?? "all of it")
                return ranges.count
            }
        }

        var count: Int { ranges.withLock { $0.count } }
    }

    private static func download(_ stage: DemoStage) async throws -> [String] {
        let requests = Requests()
        let handler = OriginHandler { request in
            let number = requests.add(request.fields["Range"])
            let content = OriginContent(body: .pattern(byteCount), entityTag: "\"demo\"")
            return content.response(to: request).with { response in
                response.pacing = .bytesPerSecond(8 << 20)
                // One connection breaks, over TLS and without a word.
                if number == 2 { response.fault = OriginFault(.cut, afterBodyBytes: 1 << 20) }
            }
        }
        return try await TestOrigin.withOrigin(.tls(.trusted), handler: handler) { origin in
            try await stopAndResume(origin, stage, requests)
        }
    }

    private static func stopAndResume(
        _ origin: TestOrigin, _ stage: DemoStage, _ requests: Requests
    ) async throws -> [String] {
        let session = stage.session(trusting: origin)
        let path = stage.folder.appending("segments.bin")
        let first = try session.beginDownload(origin.url("/file"), to: .file(path))
        var most = 0
        for await progress in first.progress {
            most = max(most, progress.connectionCount)
            if progress.completedByteCount >= byteCount / 2 || progress.isFinished { break }
        }
        await first.pause()
        guard case .paused = first.state else { throw DemoFailure("it is \(first.state), and not paused") }
        let before = requests.count
        let sum = await BlockingWorkers.shared.run { () -> [UInt8]? in try? digest() }
        var options = DownloadOptions()
        options.checksum = sum.flatMap { Checksum(.sha256, $0) }
        let result = try await session.download(origin.url("/file"), to: path, options: options)
        try DemoFailure.check(result.byteCount == byteCount, "\(result.byteCount) bytes came")
        try DemoFailure.check(
            result.resumedByteCount >= byteCount / 2, "only \(result.resumedByteCount) bytes were kept")
        let length = await DemoTransfers.patternLength(of: path)
        try DemoFailure.check(length == byteCount, "the file is not what was sent")
        try DemoFailure.check(result.verified.count == 1, "the checksum was not looked at")
        let kept = "\(result.resumedByteCount) bytes"
        return [
            "up to \(most) connections, \(before) requests, one of them cut; stopped with \(kept)",
            "resumed with \(requests.count - before) more for the rest; \(result.verified[0].description)",
        ]
    }

    private static func digest() throws -> [UInt8] {
        let digest = try MessageDigest(.sha256)
        var offset: UInt64 = 0
        while offset < byteCount {
            let piece = TestPattern.bytes(from: offset, count: Int(min(1 << 20, byteCount - offset)))
            digest.update(piece.span)
            offset += UInt64(piece.count)
        }
        return try digest.finish()
    }
}
