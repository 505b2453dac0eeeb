import Martlet
import MartletTesting

/// The steps with paused calls, and with bodies for several sinks.
enum DemoTasks {
    static let steps = [
        Demo.Step(title: "Pause a transfer of 64 MiB, resume it, cancel another", run: control),
        Demo.Step(title: "Send one body to a file and a digest at once", run: tee),
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
            let path = stage.folder.appending("paused.bin")
            let task = await stage.session.downloadTask(
                for: try HTTPRequest(method: .get, url: origin.url("/large")), to: path)
            for await progress in task.downloadProgress where progress.completedByteCount == piece { break }
            let listed = await stage.session.tasks(of: .download).map(\.id)
            try check(listed == [task.id], "the session lists the downloads \(listed)")
            await task.pause()
            // The origin may send the whole body now, and is blocked by the TCP window.
            opening.finish()
            let sent = try await standstill(of: origin, beside: stage)
            let received = task.downloadProgress.current.completedByteCount
            try check(sent < size, "all was sent although nobody reads")
            try check(received < sent, "\(received) bytes were received, and \(sent) sent")
            let state = await task.state
            try check(state == .paused, "the task is \(state)")
            await task.resume()
            let exchange = try await task.value
            let length = await DemoTransfers.patternLength(of: path)
            try check(length == size, "the file is not what was sent")
            let rest = await stage.session.tasks(of: .download).count
            try check(rest == 0, "the session still lists \(rest) downloads")
            return [
                "paused with \(received) bytes received: the origin stood still with "
                    + "\(sent) sent into the kernel's buffers",
                "resumed, and each of the \(size) bytes is in the file", try await cancel(stage),
                Timeline.line("GET /large 200", exchange.metrics),
            ]
        }
    }

    /// The bytes that the origin has sent when it sends no more: nothing was sent during several slow requests to another
    /// origin.
    private static func standstill(of origin: TestOrigin, beside stage: DemoEnvironment) async throws
        -> UInt64
    {
        var last: UInt64?
        var looks = 0
        while looks < 4 {
            let sent = origin.recorder.counts.bytesSent
            looks = sent == last ? looks + 1 : 0
            last = sent
            _ = try await stage.session.get(stage.origin.url("/delay/0.04")).validated()
        }
        return last ?? 0
    }

    private static func cancel(_ stage: DemoEnvironment) async throws -> String {
        let path = stage.folder.appending("cancelled.bin")
        let task = await stage.session.downloadTask(for: try stage.request(.get, "/stall/1000"), to: path)
        for await progress in task.downloadProgress where progress.completedByteCount > 0 { break }
        await task.cancel()
        var wasCancelled = false
        do { _ = try await task.value } catch is CancellationError { wasCancelled = true }
        try check(wasCancelled, "the cancelled task did not say so")
        try check((try? FileDescriptor.open(path, .readOnly)) == nil, "the cancelled file is there")
        return "the cancelled task threw CancellationError and left no file"
    }

    private static func tee(_ stage: DemoEnvironment) async throws -> [String] {
        let size = 4 << 20
        let path = stage.folder.appending("tee.bin")
        let digest = DigestSink(.sha256)
        let results = try await stage.session.stream(try stage.request(.get, "/bytes/\(size)")) { _, body in
            try await body.tee(to: [FileSink(path), digest])
        }
        let counts = results.map { $0.isFinished ? $0.byteCount : 0 }
        try check(counts == [UInt64(size), UInt64(size)], "the sinks ended as \(results)")
        let length = await DemoTransfers.patternLength(of: path)
        try check(length == UInt64(size), "the file is not what was sent")
        let expected = DigestSink(.sha256)
        try await expected.write(TestPattern.bytes(from: 0, count: size))
        try await expected.finish()
        let (found, wanted) = (await digest.hexadecimal, await expected.hexadecimal)
        try check(found != nil && found == wanted, "SHA-256 is \(found ?? "missing")")
        return ["\(size) bytes in the file, and SHA-256 \(found ?? "") on the way"]
    }
}
