import Foundation
import Martlet
import MartletTesting
import MartletTestSupport
import Testing

/// Processes that are killed at any byte, and between any two file operations.
@Suite("Killed downloads")
struct KilledTests {
    /// The system calls that change files on the disk.
    private static let calls = [
        "pwrite64", "pwritev", "write", "fdatasync", "fsync", "rename", "renameat2", "unlink", "unlinkat",
        "ftruncate", "fallocate", "openat",
    ]

    /// Completes the remaining download and checks it.
    /// - Returns: The result of the run.
    private func complete(_ scene: RangeScene, _ comment: Comment) async throws -> RangeRun {
        scene.ranges.play(RangeBehavior(Samples.one))
        let run = try await scene.run()
        #expect(run.value != nil, "\(comment)\n\(run.log)")
        try await scene.expectOrder(after: run, versions: [Samples.one])
        return run
    }

    @Test(
        "A download of a process that is killed at any byte is completed by another one",
        arguments: ["synced", "unsynced"])
    func anyByte(_ durability: String) async throws {
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
                    ["one", scene.url, scene.path.string, "checkpoint=50", "segments=1", "durability=\(durability)"])
                try await scene.ranges.signals.wait(for: "there")
                child.killAtOnce()
                let ending = try await child.end()
                // The file may have been complete before the signal arrived.
                if try scene.directory.names() == [RangeScene.name] {
                    #expect(point == Samples.one.byteCount)
                    let version = try scene.directory.version(of: RangeScene.name, among: [Samples.one])
                    #expect(version == 0)
                    return
                }
                #expect(ending.isKilled)
                #expect(try !scene.directory.names().contains(RangeScene.name))
                let run = try await complete(scene, "killed at \(point), seed \(seed)")
                #expect((run.value?.resumedByteCount ?? 0) <= point, "seed \(seed)")
            }
        }
    }

    @Test(
        "A process killed at any file operation leaves the old state or the new one", arguments: calls,
        ["synced", "unsynced"])
    func anyStep(_ call: String, _ durability: String) async throws {
        for number in [1, 2, 3, 5, 8, 13] {
            var survived = false
            let conduct = RangeBehavior(Samples.one).with { $0.pace = RangePace(1_500_000) }
            try await RangeScene.with(conduct) { scene in
                let trace =
                    "exec strace -f -qq -o /dev/null -e trace=\(call)"
                    + " -e inject=\(call):signal=KILL:when=\(KilledTests.place(number, of: call)) \"$0\" \"$@\""
                let child = try await DownloadsChild.run(
                    ["one", scene.url, scene.path.string, "checkpoint=50", "durability=\(durability)"], through: trace)
                survived = child.line("finished") != nil
                let names = try scene.directory.names()
                if names.contains(RangeScene.name) {
                    let version = try scene.directory.version(of: RangeScene.name, among: [Samples.one])
                    #expect(version == 0, "\(call) \(number)")
                    try FileManager.default.removeItem(atPath: scene.path.string)
                }
                let others = names.filter { $0 != RangeScene.name && !DownloadDirectory.isPart($0) }
                #expect(others.isEmpty, "\(others) after \(call) \(number)")
                _ = try await complete(scene, "\(call) \(number)")
            }
            if survived { return }
        }
    }

    /// Files are opened and written for other reasons too; most of these calls come before the download.
    private static func place(_ number: Int, of call: String) -> Int {
        call == "openat" ? 20 + 2 * number : number
    }

    @Test(
        "A disk error is an error of the download, and the next run completes it",
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
                // A download makes no such call.
                #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
                return
            }
            #expect(child.line("failed fileFailed") != nil, "\(child)")
            #expect(try !scene.directory.names().contains(RangeScene.name))
            _ = try await complete(scene, "\(call)")
        }
    }

    @Test("A failed sync is never repeated and trusted")
    func failedSync() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            let trace =
                "exec strace -f -qq -o /dev/null -e trace=fdatasync"
                + " -e inject=fdatasync:error=EIO:when=1 \"$0\" \"$@\""
            let child = try await DownloadsChild.run(
                ["one", scene.url, scene.path.string, "checkpoint=50"], through: trace)
            #expect(child.line("failed fileFailed") != nil, "\(child)")
            // Only synced bytes may be claimed.
            let run = try await complete(scene, "a failed sync")
            #expect(run.value?.resumedByteCount == 0, "\(run.log)")
        }
    }
}
