import Martlet
import MartletTesting
import MartletTransport
import Synchronization
import SystemPackage

/// The steps of large bodies.
enum DemoTransfers {
    private static let mebibyte: UInt64 = 1 << 20

    static let steps = [
        Demo.Step(title: "Upload 32 MiB that are made on the way, with progress", run: upload),
        Demo.Step(title: "Stream 128 MiB in constant memory", run: stream),
        Demo.Step(title: "Download 16 MiB to a file, with progress, and check it", run: download),
    ]

    /// Pieces of the pattern, made as they are asked for.
    private struct Generated: AsyncSequence, Sendable {
        typealias Element = [UInt8]
        let byteCount: UInt64

        struct Iterator: AsyncIteratorProtocol {
            var offset: UInt64 = 0
            let byteCount: UInt64

            mutating func next() async throws -> [UInt8]? {
                guard offset < byteCount else { return nil }
                defer { offset += 131_042 }
                return TestPattern.bytes(from: offset, count: Int(Swift.min(131_042, byteCount - offset)))
            }

            mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
                try await next()
            }
        }

        func makeAsyncIterator() -> Iterator { Iterator(byteCount: byteCount) }
    }

    private static func upload(_ stage: DemoStage) async throws -> [String] {
        let size = 32 * mebibyte
        let last = Mutex(TransferProgress())
        let exchange = try await stage.session.upload(
            .stream(length: size) { Generated(byteCount: size) }, to: try stage.request(.post, "/upload"),
            progress: { value in last.withLock { $0 = value } }
        ).validated()
        let report: UploadReport = try exchange.decode()
        try DemoFailure.check(report.length == size, "\(report.length) bytes arrived")
        let progress = last.withLock { $0 }
        try DemoFailure.check(
            progress.isFinished && progress.completedByteCount == size, "the progress ended early")
        let expected = await BlockingWorkers.shared.run { checksum(of: size) }
        try DemoFailure.check(report.crc32 == expected, "CRC-32 is \(report.crc32), not \(expected)")
        return [
            "\(report.length) bytes arrived, CRC-32 \(report.crc32); the last progress was 100 %",
            Timeline.line("POST /upload 200", exchange.metrics),
        ]
    }

    private static func checksum(of size: UInt64) -> String {
        var checksum = CRC32()
        var offset: UInt64 = 0
        while offset < size {
            let piece = TestPattern.bytes(from: offset, count: Int(min(131_042, size - offset)))
            checksum.update(with: piece)
            offset += UInt64(piece.count)
        }
        return checksum.text
    }

    private static func stream(_ stage: DemoStage) async throws -> [String] {
        let size = 128 * mebibyte
        let before = ResidentMemory.byteCount ?? 0
        let (highest, metrics) = try await stage.session.streamDetailed(
            try stage.request(.get, "/bytes/\(size)"), to: try HTTPURL(stage.origin.url("/bytes/\(size)"))
        ) { response in
            var offset: UInt64 = 0
            var highest = before
            var next: UInt64 = 0
            for try await piece in response.body {
                // The ends of each piece are enough to see that nothing was lost, doubled or moved.
                let ends = [piece[0], piece[piece.count - 1]]
                let wanted = [
                    TestPattern.byte(at: offset), TestPattern.byte(at: offset + UInt64(piece.count) - 1),
                ]
                try DemoFailure.check(ends == wanted, "wrong bytes at \(offset)")
                offset += UInt64(piece.count)
                if offset >= next {
                    highest = max(highest, ResidentMemory.byteCount ?? 0)
                    next += 8 * mebibyte
                }
            }
            try DemoFailure.check(offset == size, "\(offset) bytes came")
            return (highest, response.metrics)
        }
        let growth = "\((highest - before) >> 10) KiB"
        try DemoFailure.check(highest - before < 32 << 20, "memory grew by \(growth)")
        return [
            "\(size) bytes came; memory grew by \(growth), the origin's own included",
            Timeline.line("GET /bytes/\(size) 200", metrics),
        ]
    }

    private static func download(_ stage: DemoStage) async throws -> [String] {
        let size = 16 * mebibyte
        let path = stage.folder.appending("download.bin")
        let states = Mutex((count: 0, last: TransferProgress()))
        let exchange = try await stage.session.download(
            try stage.request(.get, "/bytes/\(size)"), to: path,
            progress: { value in states.withLock { $0 = ($0.count + 1, value) } })
        let (count, last) = states.withLock { $0 }
        try DemoFailure.check(last.isFinished && last.completedByteCount == size, "the progress ended early")
        let length = await patternLength(of: path)
        try DemoFailure.check(length == size, "the file is not what was sent")
        return [
            "\(size) bytes in the file, each as it was sent; \(count) states of progress",
            Timeline.line("GET /bytes/\(size) 200", exchange.metrics),
        ]
    }

    /// The length of a file that holds nothing but the pattern; `nil` for any other.
    static func patternLength(of path: FilePath) async -> UInt64? {
        let name = path.string
        return await BlockingWorkers.shared.run { patternLength(ofFileNamed: name) }
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
