import MartletURL
import Foundation
import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletDownloads

/// System calls that transfer fewer bytes than requested, or are interrupted.
@Suite("Short and interrupted calls")
struct ShortCallTests {
    @Test("A download is complete if the disk reads and writes a few bytes at a time")
    func shortWrites() async throws {
        let conduct = RangeBehavior(Samples.one, acts: [.cut(request: 1, after: Samples.cut)])
        try await RangeScene.with(conduct) { scene in
            let files = FaultyFileSystem()
            files.limitPieces(to: 777)
            var options = RangeScene.options
            options.checksum = try Samples.sha256(Samples.one)
            let status = DownloadStatus(.running)
            let job = DownloadJob(
                DownloadJob.Plan(url: try HTTPURL(scene.url), target: .file(scene.path), options: options),
                session: scene.session, status: status, files: files)
            let result = try await job.run()
            #expect(result.byteCount == Samples.one.byteCount && !result.verified.isEmpty)
            #expect(files.count(of: .write) >= Int(Samples.one.byteCount) / 777)
            #expect(try scene.directory.names() == [RangeScene.name])
            #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
        }
    }

    @Test("A download is complete if a signal interrupts the process a thousand times a second")
    func signals() async throws {
        let conduct = RangeBehavior(Samples.one).with { $0.pace = RangePace(600_000) }
        try await RangeScene.with(conduct) { scene in
            let child = try await DownloadsChild.run(
                ["one", scene.url, scene.path.string, "interrupts=1000", "checkpoint=50", "segments=1"])
            #expect(child.line("finished bytes=\(Samples.one.byteCount)") != nil, "\(child)")
            #expect(try scene.directory.names() == [RangeScene.name])
            #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
            #expect(scene.ranges.requests.count == 1)
        }
    }

    @Test(
        "Calls that a signal interrupts are repeated",
        arguments: ["pwrite64", "fdatasync", "fsync", "fallocate", "flock", "recvfrom", "sendto"])
    func interrupted(_ call: String) async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            // Every third call of the kind is interrupted.
            let trace =
                "exec strace -f -qq -o /dev/null -e trace=\(call)"
                + " -e inject=\(call):error=EINTR:when=1+3 \"$0\" \"$@\""
            let child = try await DownloadsChild.run(
                ["one", scene.url, scene.path.string, "checkpoint=50", "segments=1"], through: trace)
            #expect(child.line("finished bytes=\(Samples.one.byteCount)") != nil, "\(child)")
            #expect(try scene.directory.names() == [RangeScene.name])
            #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
            #expect(scene.ranges.requests.count == 1)
        }
    }
}
