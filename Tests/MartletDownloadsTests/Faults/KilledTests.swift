import Foundation
import Martlet
import MartletTesting
import MartletTestSupport
import Testing

/// Processes that are killed: at any byte, and between any two steps on the disk.
@Suite("Killed downloads")
struct KilledTests {
    /// The system calls that change what is on the disk.
    private static let calls = [
        "pwrite64", "pwritev", "write", "fdatasync", "fsync", "rename", "renameat2", "unlink", "unlinkat",
        "ftruncate", "fallocate", "openat",
    ]

    /// Completes what was left, and checks it.
    /// - Returns: The run.
    private func complete(_ scene: RangeScene, _ comment: Comment) async throws -> RangeRun {
        scene.ranges.play(RangeBehavior(Samples.one))
        let run = try await scene.run()
        #expect(run.value != nil, "\(comment)\n\(run.log)")
        try await scene.expectOrder(after: run, versions: [Samples.one])
        return run
    }

    @Test("A process killed at any byte leaves what another one completes")
    func anyByte() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        var generator = SeededGenerator(seed: seed)
        let points =
            [0, 1, Samples.one.byteCount]
            + (0..<9).map { _ in
                UInt64.random(in: 0...Samples.one.byteCount, using: &generator)
            }
        for point in points {
            let held = RangeBehavior(Samples.one, acts: [.hold(request: 1, after: point, "there")])
            try await RangeScene.with(held) { scene in
                let child = try await DownloadsChild.start(
                    ["one", scene.url, scene.path.string, "checkpoint=50", "segments=1"])
                try await scene.ranges.signals.wait(for: "there")
                child.killAtOnce()
                let ending = try await child.end()
                // All of it may have been there, and the file complete, before the signal came.
                if try scene.folder.names() == [RangeScene.name] {
                    #expect(point == Samples.one.byteCount)
                    let version = try scene.folder.version(of: RangeScene.name, among: [Samples.one])
                    #expect(version == 0)
                    return
                }
                #expect(ending.isKilled)
                #expect(try !scene.folder.names().contains(RangeScene.name))
                let run = try await complete(scene, "killed at \(point), seed \(seed)")
                #expect((run.value?.resumedByteCount ?? 0) <= point, "seed \(seed)")
            }
        }
    }

    @Test(
        "A process killed at any step on the disk leaves the old state or the new one", arguments: calls)
    func anyStep(_ call: String) async throws {
        for number in [1, 2, 3, 5, 8, 13] {
            var survived = false
            let conduct = RangeBehavior(Samples.one).with { $0.pace = RangePace(1_500_000) }
            try await RangeScene.with(conduct) { scene in
                let trace =
                    "exec strace -f -qq -o /dev/null -e trace=\(call)"
                    + " -e inject=\(call):signal=KILL:when=\(KilledTests.place(number, of: call)) \"$0\" \"$@\""
                let child = try await DownloadsChild.run(
                    ["one", scene.url, scene.path.string, "checkpoint=50"], through: trace)
                survived = child.line("finished") != nil
                let names = try scene.folder.names()
                if names.contains(RangeScene.name) {
                    let version = try scene.folder.version(of: RangeScene.name, among: [Samples.one])
                    #expect(version == 0, "\(call) \(number)")
                    try FileManager.default.removeItem(atPath: scene.path.string)
                }
                let others = names.filter { $0 != RangeScene.name && !DownloadFolder.isPart($0) }
                #expect(others.isEmpty, "\(others) after \(call) \(number)")
                _ = try await complete(scene, "\(call) \(number)")
            }
            if survived { return }
        }
    }

    /// Files are opened, and bytes written, for other ends too; most of these calls come before the download.
    private static func place(_ number: Int, of call: String) -> Int {
        call == "openat" ? 20 + 2 * number : number
    }

    @Test(
        "An error of the disk is one of the download, and the next run completes it",
        arguments: ["pwrite64", "fdatasync", "rename", "renameat2", "ftruncate"])
    func diskError(_ call: String) async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            let trace =
                "exec strace -f -qq -o /dev/null -e trace=\(call)"
                + " -e inject=\(call):error=EIO:when=1 \"$0\" \"$@\""
            let child = try await DownloadsChild.run(
                ["one", scene.url, scene.path.string, "checkpoint=50"], through: trace)
            #expect(!child.isKilled, "\(child)")
            if child.line("finished") != nil {
                // The call is not among those that a download makes.
                #expect(try scene.folder.version(of: RangeScene.name, among: [Samples.one]) == 0)
                return
            }
            #expect(child.line("failed fileFailed") != nil, "\(child)")
            #expect(try !scene.folder.names().contains(RangeScene.name))
            _ = try await complete(scene, "\(call)")
        }
    }

    @Test("A sync that fails is never tried again and trusted")
    func failedSync() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            let trace =
                "exec strace -f -qq -o /dev/null -e trace=fdatasync"
                + " -e inject=fdatasync:error=EIO:when=1 \"$0\" \"$@\""
            let child = try await DownloadsChild.run(
                ["one", scene.url, scene.path.string, "checkpoint=50"], through: trace)
            #expect(child.line("failed fileFailed") != nil, "\(child)")
            // Nothing that was not synced may be claimed.
            let run = try await complete(scene, "a failed sync")
            #expect(run.value?.resumedByteCount == 0, "\(run.log)")
        }
    }
}
