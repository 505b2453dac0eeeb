import MartletURL
import Foundation
import Glibc
import Martlet
import MartletStorage
import MartletTesting
import MartletTestSupport
import SystemPackage
import Testing

@testable import MartletDownloads

/// Part files that are on another disk than their targets.
@Suite(
    "Downloads across two file systems",
    .enabled(if: SplitFileSystem.directories != nil, "this machine has one file system that can be written to"))
struct OtherDeviceTests {
    /// Runs a test with a directory for the part file and one for the target, on two file systems.
    private func withDirectories(_ body: (_ part: String, _ target: String) async throws -> Void) async throws {
        let (one, two) = try #require(SplitFileSystem.directories)
        let name = "martlet-split-\(UUID().uuidString)"
        let paths = ["\(one)/\(name)", "\(two)/\(name)"]
        defer { for path in paths { try? FileManager.default.removeItem(atPath: path) } }
        for path in paths {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        }
        try await body(paths[0], paths[1])
        try await body(paths[1], paths[0])
    }

    private func names(_ path: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path).sorted()
    }

    @Test("The kernel rejects moving a file to another file system")
    func rejection() async throws {
        try await withDirectories { part, target in
            let files = LinuxFileSystem()
            _ = try files.open("\(part)/a", for: .creating)
            #expect { try files.rename("\(part)/a", to: "\(target)/a") } throws: {
                ($0 as? StorageError)?.code == EXDEV
            }
            try files.remove("\(part)/a")
        }
    }

    @Test(
        "A part file on another file system is copied to its target and removed",
        arguments: [DownloadOptions.Collision.fail, .overwrite, .rename])
    func copied(_ collision: DownloadOptions.Collision) async throws {
        try await withDirectories { part, target in
            try await RangeScene.with(Samples.cutOnce()) { scene in
                let path = "\(target)/file.bin"
                if collision != .fail { try Data([1]).write(to: URL(fileURLWithPath: path)) }
                var options = RangeScene.options { $0.collision = collision }
                options.checksum = try Samples.sha256(Samples.one)
                let job = DownloadJob(
                    DownloadJob.Plan(
                        url: try HTTPURL(scene.url), target: .file(FilePath(path)), options: options),
                    session: scene.session, status: DownloadStatus(),
                    files: SplitFileSystem(elsewhere: part))
                let result = try await job.run()
                let name = collision == .rename ? "file (1).bin" : "file.bin"
                #expect(result.path == FilePath("\(target)/\(name)"))
                let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(target)/\(name)"))
                #expect([UInt8](bytes) == Samples.one.contents)
                #expect(try names(part).isEmpty)
                #expect(try names(target) == (collision == .rename ? [name, "file.bin"] : [name]))
                for name in try names(target) {
                    try FileManager.default.removeItem(atPath: "\(target)/\(name)")
                }
            }
        }
    }

    @Test("If the copy fails, the part file stays and the download resumes from it")
    func noCopy() async throws {
        try await withDirectories { part, target in
            try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
                let path = FilePath("\(target)/file.bin")
                try Data([1]).write(to: URL(fileURLWithPath: path.string))
                // A directory of that name, which nothing can replace.
                let copy = "\(path).martlet-part-"
                try FileManager.default.createDirectory(
                    atPath: copy, withIntermediateDirectories: false)
                let job = DownloadJob(
                    DownloadJob.Plan(
                        url: try HTTPURL(scene.url), target: .file(path),
                        options: RangeScene.options { $0.collision = .overwrite }),
                    session: scene.session, status: DownloadStatus(),
                    files: SplitFileSystem(elsewhere: part))
                let error = await #expect(throws: HTTPError.self) { try await job.run() }
                #expect(error?.resumableByteCount == Samples.one.byteCount)
                #expect(try Data(contentsOf: URL(fileURLWithPath: path.string)) == Data([1]))
                #expect(try names(part) == ["file.bin.martlet-part"])
                try FileManager.default.removeItem(atPath: copy)
                let sent = scene.ranges.sentByteCount
                _ = try await job.run()
                #expect(scene.ranges.sentByteCount - sent < Samples.one.byteCount)
                let bytes = try Data(contentsOf: URL(fileURLWithPath: path.string))
                #expect([UInt8](bytes) == Samples.one.contents)
                #expect(try names(part).isEmpty && names(target) == ["file.bin"])
                try FileManager.default.removeItem(atPath: path.string)
            }
        }
    }
}
