import Martlet
import MartletTesting
import Synchronization

/// The steps with large bodies.
enum DemoTransfers {
    private static let mebibyte: UInt64 = 1 << 20

    static let steps = [
        Demo.Step(title: "Upload 32 MiB that are made on the way, with progress", run: upload),
        Demo.Step(title: "Stream 128 MiB in constant memory", run: stream),
        Demo.Step(title: "Download 16 MiB to a file, with progress, and check it", run: download),
    ]

    /// The pieces of the pattern, for a body that is made on demand.
    private struct Generated: AsyncSequence, Sendable {
        let byteCount: UInt64

        struct Iterator: AsyncIteratorProtocol {
            var pieces: UnfoldSequence<[UInt8], UInt64>

            mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
                pieces.next()
            }
        }

        func makeAsyncIterator() -> Iterator { Iterator(pieces: DemoTransfers.pieces(of: byteCount)) }
    }

    /// The pieces of the pattern.
    static func pieces(of byteCount: UInt64) -> UnfoldSequence<[UInt8], UInt64> {
        sequence(state: 0 as UInt64) { offset -> [UInt8]? in
            guard offset < byteCount else { return nil }
            defer { offset += 131_042 }
            return TestPattern.bytes(from: offset, count: Int(min(131_042, byteCount - offset)))
        }
    }

    private static func upload(_ stage: DemoEnvironment) async throws -> [String] {
        let size = 32 * mebibyte
        let last = Mutex(TransferProgress())
        let exchange = try await stage.session.upload(
            .stream(length: size) { Generated(byteCount: size) }, to: try stage.request(.post, "/upload"),
            progress: { value in last.withLock { $0 = value } }
        ).validated()
        let report: UploadReport = try exchange.decode()
        try check(report.length == size, "\(report.length) bytes arrived")
        let progress = last.withLock { $0 }
        try check(progress.isFinished && progress.completedByteCount == size, "the progress ended early")
        let expected = await BlockingThreadPool.shared.run {
            var checksum = CRC32()
            for piece in pieces(of: size) { checksum.update(with: piece) }
            return checksum.text
        }
        try check(report.crc32 == expected, "CRC-32 is \(report.crc32), not \(expected)")
        return [
            "\(report.length) bytes arrived, CRC-32 \(report.crc32); the last progress was 100 %",
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
                // The ends of each piece show that no byte was lost, repeated or moved.
                let ends = [piece[0], piece[piece.count - 1]]
                let wanted = [
                    TestPattern.byte(at: offset), TestPattern.byte(at: offset + UInt64(piece.count) - 1),
                ]
                try check(ends == wanted, "wrong bytes at \(offset)")
                offset += UInt64(piece.count)
                if offset >= next {
                    highest = max(highest, ResidentMemory.byteCount ?? 0)
                    next += 8 * mebibyte
                }
            }
            try check(offset == size, "\(offset) bytes came")
            return (highest, response.metrics)
        }
        let growth = "\((highest - before) >> 10) KiB"
        try check(highest - before < 32 << 20, "memory grew by \(growth)")
        return [
            "\(size) bytes came; memory grew by \(growth), the origin's own included",
            Timeline.line("GET /bytes/\(size) 200", metrics),
        ]
    }

    private static func download(_ stage: DemoEnvironment) async throws -> [String] {
        let size = 16 * mebibyte
        let path = stage.folder.appending("download.bin")
        let states = Mutex((count: 0, last: TransferProgress()))
        let exchange = try await stage.session.download(
            try stage.request(.get, "/bytes/\(size)"), to: path, overwrites: false,
            progress: { value in states.withLock { $0 = ($0.count + 1, value) } })
        let (count, last) = states.withLock { $0 }
        try check(last.isFinished && last.completedByteCount == size, "the progress ended early")
        let length = await patternLength(of: path)
        try check(length == size, "the file is not what was sent")
        return [
            "\(size) bytes in the file, each as it was sent; \(count) states of progress",
            Timeline.line("GET /bytes/\(size) 200", exchange.metrics),
        ]
    }

    /// The length of a file with the pattern; `nil` for any other contents.
    static func patternLength(of path: FilePath) async -> UInt64? {
        let name = path.string
        return await BlockingThreadPool.shared.run { patternLength(ofFileNamed: name) }
    }

    private static func patternLength(ofFileNamed name: String) -> UInt64? {
        guard let file = try? FileDescriptor.open(FilePath(name), .readOnly, options: .closeOnExec) else {
            return nil
        }
        defer { try? file.close() }
        var offset: UInt64 = 0
        while let piece = try? file.bytes(atMost: 131_042) {
            if piece.isEmpty { return offset }
            guard TestPattern.bytes(from: offset, count: piece.count) == piece else { return nil }
            offset += UInt64(piece.count)
        }
        return nil
    }
}
