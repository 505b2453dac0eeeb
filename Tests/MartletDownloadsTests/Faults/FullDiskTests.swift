import Foundation
import Martlet
import MartletStorage
import MartletTesting
import MartletTestSupport
import Testing

/// Disks, files and descriptor tables without space.
@Suite("Full disks")
struct FullDiskTests {
    private static let version = RangeVersion(2 << 20, entityTag: "\"two MiB\"")

    /// Whether a process may mount its own file system.
    private static let canMount: Bool = {
        let script = "exec unshare -rm sh -c 'mount -t tmpfs -o size=1m none /mnt' 2>/dev/null"
        let process = try? PipedProcess.start(["/bin/sh", "-c", script])
        return process?.end().status == 0
    }()

    @Test(
        "A full disk is an error, and the download resumes once there is space",
        .enabled(if: canMount), arguments: [false, true])
    func tinyDisk(isUnsized: Bool) async throws {
        let conduct = RangeBehavior(FullDiskTests.version).with { conduct in
            // Without a length the lack of space is not known in advance.
            if isUnsized {
                conduct.framing = .chunked(size: nil)
                conduct.ranges = .ignored
            }
        }
        try await RangeScene.with(conduct) { scene in
            let script = """
                mount -t tmpfs -o size=1m none "$3" || exit 70
                "$0" one "$2" "$3/file.bin" attempts=2
                ls -A "$3"
                mount -o remount,size=16m "$3"
                "$0" one "$2" "$3/file.bin" attempts=2
                echo "left $(ls -A "$3" | tr "\\n" " ")"
                echo "sum $(sha256sum < "$3/file.bin")"
                """
            let ending = try await DownloadsChild.run(
                ["one", scene.url, scene.directory.path],
                through: "exec unshare -rm sh -c '\(script)' \"$0\" \"$@\"")
            #expect(ending.line("failed diskFull") != nil, "\(ending)")
            #expect(ending.line("finished bytes=\(FullDiskTests.version.byteCount)") != nil, "\(ending)")
            #expect(ending.line("left") == "left file.bin ", "\(ending)")
            let sum = try Samples.sha256(FullDiskTests.version).hexadecimal
            #expect(ending.line("sum")?.contains(sum) == true, "\(ending)")
            let kept = ending.number("kept", of: "failed diskFull") ?? 0
            #expect(kept <= 1 << 20)
            if !isUnsized {
                #expect(ending.number("resumed", of: "finished") == kept, "\(ending)")
            }
        }
    }

    @Test("A write without space is an error, and the synced bytes are reused")
    func noRoomForWrite() async throws {
        let conduct = RangeBehavior(Samples.one).with { $0.pace = RangePace(600_000) }
        try await RangeScene.with(conduct) { scene in
            for call in ["pwrite64", "fallocate"] {
                let trace =
                    "exec strace -f -qq -o /dev/null -e trace=\(call)"
                    + " -e inject=\(call):error=ENOSPC:when=\(call == "pwrite64" ? "4+" : "1+") \"$0\" \"$@\""
                let child = try await DownloadsChild.run(
                    ["one", scene.url, scene.path.string, "checkpoint=50"], through: trace)
                #expect(!child.isKilled)
                if child.line("finished") == nil {
                    #expect(child.line("failed diskFull") != nil, "\(child)")
                    #expect(try !scene.directory.names().contains(RangeScene.name))
                }
                try? FileManager.default.removeItem(atPath: scene.path.string)
                scene.ranges.play(RangeBehavior(Samples.one))
                let run = try await scene.run()
                #expect(run.value != nil, "\(run.log)")
                try await scene.expectOrder(after: run, versions: [Samples.one])
                try FileManager.default.removeItem(atPath: scene.path.string)
            }
        }
    }

    /// Whether temporary files are in memory, where no space can be preallocated.
    private static let isInMemory: Bool = {
        let path = FileManager.default.temporaryDirectory.path + "/martlet-\(UUID().uuidString)"
        let files = LinuxFileSystem()
        guard let file = try? files.open(path, for: .creating) else { return false }
        defer { try? files.remove(path) }
        return LinuxFileSystem.memory(of: file) != nil
    }()

    @Test(
        "Bytes that arrive while preallocation fails are not taken for the start of the file",
        .disabled(if: isInMemory, "no room is set aside in memory"))
    func noRoomAtFirst() async throws {
        let large = RangeVersion(12 << 20, entityTag: "\"large\"")
        // The bytes arrive faster than they are written, so that more wait when the preallocation fails once.
        try await RangeScene.with(RangeBehavior(large)) { scene in
            let trace =
                "exec strace -f -qq -o /dev/null -e trace=fallocate"
                + " -e inject=fallocate:error=ENOSPC:when=1 \"$0\" \"$@\""
            for _ in 0..<4 {
                let child = try await DownloadsChild.run(
                    ["one", scene.url, scene.path.string, "checkpoint=50", "attempts=1"], through: trace)
                #expect(child.line("failed diskFull") != nil, "\(child)")
                let run = try await scene.run()
                #expect(run.value != nil, "\(run.log)")
                #expect(try scene.directory.version(of: RangeScene.name, among: [large]) == 0)
                try FileManager.default.removeItem(atPath: scene.path.string)
            }
        }
    }

    @Test(
        "A limit on file sizes is an error and does not end the process",
        .enabled(if: !Sanitizer.isOfThreads, "that limit is one on a sanitizer's own memory"),
        arguments: [false, true])
    func fileSizeLimit(isUnsized: Bool) async throws {
        let conduct = RangeBehavior(Samples.one).with { conduct in
            if isUnsized {
                conduct.framing = .chunked(size: nil)
                conduct.ranges = .ignored
            }
        }
        try await RangeScene.with(conduct) { scene in
            // The unit is blocks of 512 bytes.
            let child = try await DownloadsChild.run(
                ["one", scene.url, scene.path.string], through: "ulimit -f 400; exec \"$0\" \"$@\"")
            #expect(!child.isKilled, "\(child)")
            let isRejected = child.line("failed diskFull") != nil || child.line("failed fileFailed") != nil
            #expect(isRejected, "\(child)")
            #expect(try !scene.directory.names().contains(RangeScene.name))
            scene.ranges.play(RangeBehavior(Samples.one))
            let run = try await scene.run()
            #expect(run.value != nil, "\(run.log)")
            try await scene.expectOrder(after: run, versions: [Samples.one])
        }
    }

    @Test("Without descriptors downloads wait or fail with an error, and the next run completes them")
    func noDescriptors() async throws {
        let count = 40
        let conduct = RangeBehavior(Samples.one).with { $0.pace = RangePace(600_000) }
        try await RangeScene.with(conduct) { scene in
            let words = ["many", scene.origin.url("/"), scene.directory.path, "\(count)", "connections=40"]
            let child = try await DownloadsChild.run(words, through: "ulimit -n 64; exec \"$0\" \"$@\"")
            #expect(!child.isKilled, "\(child)")
            let finished = child.lines.filter { $0.hasPrefix("finished") }.count
            let failed = child.lines.filter { $0.hasPrefix("failed") && !$0.hasPrefix("failed other") }.count
            #expect(finished + failed == count, "\(child)")
            for number in 0..<count {
                let version = try scene.directory.version(of: "\(number).bin", among: [Samples.one])
                #expect(version == 0 || scene.directory.byteCount(of: "\(number).bin") == nil)
                try? FileManager.default.removeItem(atPath: "\(scene.directory.path)/\(number).bin")
            }
            scene.ranges.play(RangeBehavior(Samples.one))
            let again = try await DownloadsChild.run(words)
            #expect(again.lines.filter { $0.hasPrefix("finished") }.count == count, "\(again)")
            #expect(try scene.directory.parts().isEmpty)
        }
    }
}
