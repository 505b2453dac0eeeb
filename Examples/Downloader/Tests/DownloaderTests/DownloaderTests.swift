import Foundation
import Martlet
import MartletTesting
import Synchronization
import Testing

@testable import downloader

@Suite("The downloader", .timeLimit(.minutes(1)))
struct DownloaderTests {
    @Test("Several files are downloaded, and a missing one is reported")
    func downloads() async throws {
        try await withOrigin { origin, directory in
            let urls = ["/one.bin", "/two.bin", "/missing.bin"].map { origin.url($0) }
            let run = try await Program("downloader", urls + ["--dir", directory]).finish()
            #expect(run.exitCode == 1)
            #expect(run.lines.filter { $0.hasPrefix("finished ") }.count == 2)
            #expect(run.lines.contains { $0.hasPrefix("failed \(origin.url("/missing.bin")): ") })
            try expectFiles(["one.bin", "two.bin"], in: directory)
        }
    }

    @Test("Ctrl-C pauses, and the next run continues without URLs")
    func resuming() async throws {
        try await withOrigin { origin, directory in
            let program = try Program(
                "downloader", [origin.url("/stalling.bin"), origin.url("/two.bin"), "--dir", directory])
            try await origin.waitForRequests(count: 2)
            try await waitForBytes(of: "\(directory)/stalling.bin.martlet-part")
            program.interrupt()
            let interrupted = await program.finish()
            #expect(interrupted.exitCode == 130)
            #expect(interrupted.lines.last == "paused; to continue: downloader --dir \(directory)")

            server.repair()
            let run = try await Program("downloader", ["--dir", directory]).finish()
            #expect(run.exitCode == 0)
            try expectFiles(["stalling.bin", "two.bin"], in: directory)
            let resumed = origin.requests.filter { $0.target == "/stalling.bin" }
            #expect(resumed.contains { $0.headers["Range"].map { !$0.hasPrefix("bytes=0-") } ?? false })
        }
    }

    @Test("A bar fits the width of the terminal", arguments: [24, 40, 80, 200])
    func bars(width: Int) {
        let line = ProgressBars.line(
            "a-movie-with-a-rather-long-name.mp4", 5_000_000, 0.5, rate: 1_500_000, timeLeft: .seconds(65),
            width: width)
        #expect(line.count < width)
        if width >= 80 {
            #expect(
                line.contains("#.") && line.contains(" 50 %") && line.contains("1.5 MB/s")
                    && line.contains("1:05"))
        }
    }

    private let server = FileServer()

    private func withOrigin(_ run: (TestOrigin, _ directory: String) async throws -> Void) async throws {
        let directory = NSTemporaryDirectory() + "downloader-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try await TestOrigin.withOrigin { [server] request in
            server.response(to: request)
        } run: { origin in
            try await run(origin, directory)
        }
    }

    private func expectFiles(_ names: [String], in directory: String) throws {
        for name in names {
            let data = try Data(contentsOf: URL(filePath: "\(directory)/\(name)"))
            #expect(data == FileServer.data, "\(name)")
        }
    }

    /// Waits until another process has written bytes to a file.
    private func waitForBytes(of path: String) async throws {
        while (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0 == 0 {
            try await Task.sleep(for: .milliseconds(10))
        }
    }
}

/// A server of resumable files. One of them stalls after a third until the server is repaired.
private final class FileServer: Sendable {
    private static let byteCount: UInt64 = 300_000

    /// The bytes of each file.
    static let data = Data(TestPattern.bytes(from: 0, count: Int(byteCount)))

    private let isRepaired = Mutex(false)

    func repair() { isRepaired.withLock { $0 = true } }

    func response(to request: OriginRequest) -> OriginResponse {
        guard request.path != "/missing.bin" else { return .text("not here", status: 404) }
        let content = OriginContent(body: .pattern(Self.byteCount), entityTag: #""v1""#)
        var response = content.response(to: request)
        if request.path == "/stalling.bin", !isRepaired.withLock({ $0 }) {
            response.fault = OriginFault(.stall, afterBodyBytes: Self.byteCount / 3)
        }
        return response
    }
}
