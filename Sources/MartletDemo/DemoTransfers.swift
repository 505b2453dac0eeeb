import Martlet
import MartletTesting
import Synchronization

enum DemoTransfers {
    private static let mebibyte: UInt64 = 1 << 20
    /// The size of a piece in bytes: not a power of two.
    private static let pieceByteCount: UInt64 = 131_042

    static let steps = [
        Demo.Step(title: "Upload 32 MiB generated during the upload, with progress", run: upload),
        Demo.Step(title: "Stream 128 MiB in constant memory", run: stream),
        Demo.Step(title: "Download 16 MiB to a file, with progress, and verify it", run: download),
    ]

    /// The first bytes of the pattern in pieces, generated on demand.
    private static func generated(_ byteCount: UInt64) -> AsyncStream<[UInt8]> {
        let next = Atomic(0 as UInt64)
        return AsyncStream(unfolding: {
            piece(at: next.add(pieceByteCount, ordering: .relaxed).oldValue, of: byteCount)
        })
    }

    static func pieces(of byteCount: UInt64) -> some Sequence<[UInt8]> {
        stride(from: 0, to: byteCount, by: Int(pieceByteCount)).lazy.compactMap { piece(at: $0, of: byteCount) }
    }

    /// The piece of the pattern at an offset; `nil` at the end.
    private static func piece(at offset: UInt64, of byteCount: UInt64) -> [UInt8]? {
        offset < byteCount ? TestPattern.bytes(from: offset, count: Int(min(pieceByteCount, byteCount - offset))) : nil
    }

    private static func upload(_ stage: DemoEnvironment) async throws -> [String] {
        let size = 32 * mebibyte
        let last = Mutex(TransferProgress())
        let exchange = try await stage.session.upload(
            .stream(length: size) { generated(size) }, to: try stage.request(.post, "/upload"),
            progress: { value in last.withLock { $0 = value } }
        ).validated()
        let report: UploadReport = try exchange.decode()
        try check("the received length", report.length, is: size)
        let complete = TransferProgress(completedByteCount: size, totalByteCount: size, isFinished: true)
        try check("the last progress", last.withLock { $0 }, is: complete)
        let expected = await BlockingThreadPool.shared.run {
            var checksum = CRC32()
            for piece in pieces(of: size) { checksum.update(with: piece) }
            return checksum.text
        }
        try check("CRC-32", report.crc32, is: expected)
        return [
            "\(report.length) bytes received, CRC-32 \(report.crc32); the last progress was 100 %",
            Timeline.line("POST /upload 200", exchange.metrics),
        ]
    }

    private static func stream(_ stage: DemoEnvironment) async throws -> [String] {
        let size = 128 * mebibyte
        let before = ResidentMemory.byteCount ?? 0
        let (highest, metrics) = try await stage.session.streamDetailed(
            try stage.request(.get, "/bytes/\(size)"), to: try HTTPURL(stage.origin.url("/bytes/\(size)"))
        ) { response in
            var offset: UInt64 = 0
            var highest = before
            var next: UInt64 = 0
            for try await piece in response.body {
                // Checking both ends of each piece shows that no byte was lost, repeated or moved.
                let ends = [piece[0], piece[piece.count - 1]]
                let wanted = [TestPattern.byte(at: offset), TestPattern.byte(at: offset + UInt64(piece.count) - 1)]
                try check(ends == wanted, "wrong bytes at \(offset)")
                offset += UInt64(piece.count)
                if offset >= next {
                    highest = max(highest, ResidentMemory.byteCount ?? 0)
                    next += 8 * mebibyte
                }
            }
            try check("the length", offset, is: size)
            return (highest, response.metrics)
        }
        let growth = "\((highest - before) >> 10) KiB"
        try check(highest - before < 32 << 20, "memory grew by \(growth)")
        return [
            "\(size) bytes received; memory grew by \(growth), including that of the origin",
            Timeline.line("GET /bytes/\(size) 200", metrics),
        ]
    }

    private static func download(_ stage: DemoEnvironment) async throws -> [String] {
        let size = 16 * mebibyte
        let path = stage.directory.appending("download.bin")
        let states = Mutex((count: 0, last: TransferProgress()))
        let exchange = try await stage.session.save(
            try stage.request(.get, "/bytes/\(size)"), to: path, overwrites: false,
            progress: { value in states.withLock { $0 = ($0.count + 1, value) } })
        let (count, last) = states.withLock { $0 }
        try check(last.isFinished && last.completedByteCount == size, "the last progress is \(last)")
        try await checkPattern(path, size)
        return [
            "\(size) bytes in the file, as sent; \(count) progress updates",
            Timeline.line("GET /bytes/\(size) 200", exchange.metrics),
        ]
    }

    /// Checks that a file contains exactly the first `byteCount` bytes of the pattern.
    static func checkPattern(_ path: FilePath, _ byteCount: UInt64) async throws {
        let length = await BlockingThreadPool.shared.run { patternLength(of: path) }
        try check("the length of the pattern in the file", length, is: byteCount)
    }

    private static func patternLength(of path: FilePath) -> UInt64? {
        guard let file = try? FileDescriptor.open(path, .readOnly, options: .closeOnExec) else { return nil }
        defer { try? file.close() }
        var offset: UInt64 = 0
        while let piece = try? file.bytes(atMost: Int(pieceByteCount)) {
            if piece.isEmpty { return offset }
            guard TestPattern.bytes(from: offset, count: piece.count) == piece else { return nil }
            offset += UInt64(piece.count)
        }
        return nil
    }
}

/// The step with a download that is cut, paused and resumed.
enum DemoDownloads {
    private static let byteCount: UInt64 = 24 << 20

    static let steps = [
        Demo.Step(title: "Download 24 MiB in segments: cut by the server, paused, resumed and verified", run: download)
    ]

    private static func download(_ stage: DemoEnvironment) async throws -> [String] {
        let requests = Atomic(0)
        let handler = OriginHandler { request in
            let number = requests.add(1, ordering: .relaxed).newValue
            let content = OriginContent(body: .pattern(byteCount), entityTag: "\"demo\"")
            return content.response(to: request).with { response in
                response.pacing = .bytesPerSecond(8 << 20)
                // One connection is cut, over TLS and without a `close_notify`.
                if number == 2 { response.fault = OriginFault(.cut, afterBodyBytes: 1 << 20) }
            }
        }
        return try await TestOrigin.withOrigin(.tls(.trusted), handler: handler) { origin in
            try await stopAndResume(origin, stage) { requests.load(ordering: .relaxed) }
        }
    }

    /// - Parameter count: The number of requests so far.
    private static func stopAndResume(_ origin: TestOrigin, _ stage: DemoEnvironment, _ count: () -> Int) async throws
        -> [String]
    {
        let session = stage.session(trusting: origin)
        let path = stage.directory.appending("segments.bin")
        let first = try session.startDownload(origin.url("/file"), to: .file(path))
        var most = 0
        for await progress in first.progress {
            most = max(most, progress.connectionCount)
            if progress.completedByteCount >= byteCount / 2 || progress.isFinished { break }
        }
        await first.pause()
        guard case .paused = first.state else { throw DemoError("the download is \(first.state), expected paused") }
        let before = count()
        let sum = await BlockingThreadPool.shared.run { () -> [UInt8]? in try? digest() }
        var options = DownloadOptions()
        options.checksum = sum.flatMap { Checksum(.sha256, $0) }
        let result = try await session.download(origin.url("/file"), to: path, options: options)
        try check(result.resumedByteCount >= byteCount / 2, "only \(result.resumedByteCount) bytes were resumed")
        try await DemoTransfers.checkPattern(path, byteCount)
        try check("the number of verified checksums", result.verified.count, is: 1)
        return [
            "up to \(most) connections, \(before) requests, one cut; paused after \(result.resumedByteCount) bytes",
            "resumed with \(count() - before) requests; \(result.verified[0].description)",
        ]
    }

    private static func digest() throws -> [UInt8] {
        let digest = try MessageDigest(.sha256)
        for piece in DemoTransfers.pieces(of: byteCount) { digest.update(piece.span) }
        return try digest.finish()
    }
}

/// The steps with paused and cancelled transfers, and with a body for several sinks.
enum DemoTasks {
    static let steps = [
        Demo.Step(title: "Pause a transfer of 64 MiB, resume it, cancel another", run: control),
        Demo.Step(title: "Write one body to a file and a digest concurrently", run: tee),
    ]

    private static func control(_ stage: DemoEnvironment) async throws -> [String] {
        let size: UInt64 = 64 << 20
        let piece = 1 << 20
        let (gate, opening) = AsyncStream.makeStream(of: Void.self)
        let handler = OriginHandler { _ in
            OriginResponse(
                body: .stream(length: size) { writer in
                    try await writer.write(TestPattern.bytes(from: 0, count: piece))
                    for await _ in gate {}
                    for offset in stride(from: UInt64(piece), to: size, by: piece) {
                        try await writer.write(TestPattern.bytes(from: offset, count: piece))
                    }
                })
        }
        return try await TestOrigin.withOrigin(.plain, handler: handler) { origin in
            defer { opening.finish() }
            let path = stage.directory.appending("paused.bin")
            let task = await stage.session.downloadTask(
                for: try HTTPRequest(method: .get, url: origin.url("/large")), to: path)
            for await progress in task.downloadProgress where progress.completedByteCount == piece { break }
            try check("the list of downloads", await stage.session.tasks(of: .download).map(\.id), is: [task.id])
            await task.pause()
            // The origin may send the rest of the body now, until the full TCP window blocks it.
            opening.finish()
            let sent = try await standstill(of: origin, beside: stage)
            let received = task.downloadProgress.current.completedByteCount
            try check(received < sent && sent < size, "\(received) bytes were received, \(sent) of \(size) sent")
            try check("the state", await task.state, is: .paused)
            await task.resume()
            let exchange = try await task.value
            try await DemoTransfers.checkPattern(path, size)
            try check("the number of downloads", await stage.session.tasks(of: .download).count, is: 0)
            return [
                "paused after \(received) bytes: the origin was blocked after sending \(sent)",
                "resumed, and all \(size) bytes are in the file", try await cancel(stage),
                Timeline.line("GET /large 200", exchange.metrics),
            ]
        }
    }

    /// Waits until the origin stops sending, and returns the number of sent bytes. Sending has stopped if this number
    /// stays the same during several slow requests to another origin.
    private static func standstill(of origin: TestOrigin, beside stage: DemoEnvironment) async throws -> UInt64 {
        var (last, checks): (UInt64, Int) = (0, 0)
        while checks < 4 {
            let sent = origin.recorder.counts.bytesSent
            (last, checks) = (sent, sent == last ? checks + 1 : 0)
            _ = try await stage.session.get(stage.origin.url("/delay/0.04")).validated()
        }
        return last
    }

    private static func cancel(_ stage: DemoEnvironment) async throws -> String {
        let path = stage.directory.appending("cancelled.bin")
        let task = await stage.session.downloadTask(for: try stage.request(.get, "/stall/1000"), to: path)
        for await progress in task.downloadProgress where progress.completedByteCount > 0 { break }
        await task.cancel()
        do {
            _ = try await task.value
            throw DemoError("the cancelled task returned a value")
        } catch is CancellationError {}
        try check((try? FileDescriptor.open(path, .readOnly)) == nil, "the cancelled task left a file")
        return "the cancelled task threw CancellationError and left no file"
    }

    private static func tee(_ stage: DemoEnvironment) async throws -> [String] {
        let size = 4 << 20
        let path = stage.directory.appending("tee.bin")
        let digest = DigestSink(.sha256)
        let results = try await stage.session.stream(try stage.request(.get, "/bytes/\(size)")) { _, body in
            try await body.tee(to: [FileSink(path), digest])
        }
        let counts = results.map { $0.isFinished ? $0.byteCount : 0 }
        try check("the list of byte counts", counts, is: [UInt64(size), UInt64(size)])
        try await DemoTransfers.checkPattern(path, UInt64(size))
        let expected = DigestSink(.sha256)
        try await expected.write(TestPattern.bytes(from: 0, count: size))
        try await expected.finish()
        let found = await digest.hexadecimal ?? "missing"
        try check("SHA-256", found, is: await expected.hexadecimal ?? "")
        return ["\(size) bytes in the file, and SHA-256 \(found)"]
    }
}
