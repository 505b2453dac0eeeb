import Foundation
import Martlet
import MartletTesting
import MartletTestSupport
import SystemPackage
import Testing

/// Targets that exist, appear, disappear, or are links.
@Suite("Target of a download")
struct TargetTests {
    private static let held = RangeBehavior(
        Samples.one, acts: [.hold(request: 1, after: 150_000, "middle")])

    /// Downloads a file, and runs a closure while half of it is stored.
    private func downloadMeanwhile(
        _ collision: DownloadOptions.Collision, checksum: Checksum? = nil,
        _ meanwhile: (RangeScene) throws -> Void,
        then check: (RangeScene, Result<DownloadResult, any Error>) async throws -> Void
    ) async throws {
        try await RangeScene.with(TargetTests.held) { scene in
            let options = RangeScene.options { ($0.collision, $0.checksum) = (collision, checksum) }
            let download = try scene.session.startDownload(
                scene.url, to: .file(scene.path), options: options)
            try await scene.ranges.signals.wait(for: "middle")
            try meanwhile(scene)
            scene.ranges.signals.raise("middle go")
            let result: Result<DownloadResult, any Error>
            do { result = .success(try await download.value) } catch { result = .failure(error) }
            try await check(scene, result)
            #expect(await eventually { scene.directory.openFiles().isEmpty })
        }
    }

    private func code(_ result: Result<DownloadResult, any Error>) -> HTTPError.Code? {
        guard case .failure(let error) = result else { return nil }
        return (error as? HTTPError)?.code
    }

    @Test("A file that appears during the download is not replaced")
    func appears() async throws {
        try await downloadMeanwhile(.fail) { scene in
            try scene.directory.write([1, 2, 3], to: RangeScene.name)
        } then: { scene, result async throws in
            #expect(code(result) == .fileExists, "\(result)")
            #expect(try scene.directory.contents(of: RangeScene.name) == [1, 2, 3])
            let others = try scene.directory.names().filter {
                $0 != RangeScene.name && !DownloadDirectory.isPart($0)
            }
            #expect(others.isEmpty, "\(others)")
        }
    }

    @Test("The download gets another name if a file appears during it")
    func appearsRenamed() async throws {
        try await downloadMeanwhile(.rename) { scene in
            try scene.directory.write([1, 2, 3], to: RangeScene.name)
        } then: { scene, result async throws in
            #expect(try result.get().path == scene.directory.file("file (1).bin"))
            #expect(try scene.directory.contents(of: RangeScene.name) == [1, 2, 3])
            #expect(try scene.directory.version(of: "file (1).bin", among: [Samples.one]) == 0)
            #expect(try scene.directory.names() == ["file (1).bin", "file.bin"])
        }
    }

    @Test("A file that appears during the download is the result if existing files are skipped")
    func appearsSkipped() async throws {
        try await downloadMeanwhile(.skip) { scene in
            try scene.directory.write([1, 2, 3], to: RangeScene.name)
        } then: { scene, result async throws in
            let value = try result.get()
            #expect(value.path == scene.path && value.byteCount == 3 && value.receivedByteCount == 0)
            #expect(try scene.directory.contents(of: RangeScene.name) == [1, 2, 3])
            #expect(try scene.directory.names() == [RangeScene.name])
        }
    }

    @Test("A file that appears during the download is no result if it differs from the checksum, and the bytes stay")
    func appearsDifferent() async throws {
        try await downloadMeanwhile(.skip, checksum: try Samples.sha256(Samples.one)) { scene in
            try scene.directory.write([1, 2, 3], to: RangeScene.name)
        } then: { scene, result async throws in
            #expect(code(result) == .checksumMismatch, "\(result)")
            #expect(try scene.directory.contents(of: RangeScene.name) == [1, 2, 3])
            #expect(try !scene.directory.parts().isEmpty)
        }
    }

    @Test("An existing file is the result only if it has the given checksum, and stays", arguments: [true, false])
    func existsWithChecksum(isSame: Bool) async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            let contents: [UInt8] = isSame ? Samples.one.contents : [1, 2, 3]
            try scene.directory.write(contents, to: RangeScene.name)
            let checksum = try Samples.sha256(Samples.one)
            let run = try await scene.run(RangeScene.options { ($0.collision, $0.checksum) = (.skip, checksum) })
            #expect(run.requests.isEmpty, "\(run.log)")
            if isSame {
                #expect(run.value?.verified == [checksum] && run.value?.receivedByteCount == 0, "\(run.log)")
            } else {
                #expect(run.error?.code == .checksumMismatch)
                #expect(run.error?.message.contains(scene.path.string) == true, "\(run.log)")
            }
            #expect(try scene.directory.contents(of: RangeScene.name) == contents)
            #expect(try scene.directory.names() == [RangeScene.name])
        }
    }

    @Test("A file that appears during the download is replaced if that is allowed")
    func appearsReplaced() async throws {
        try await downloadMeanwhile(.overwrite) { scene in
            try scene.directory.write([1, 2, 3], to: RangeScene.name)
        } then: { scene, result async throws in
            #expect(try result.get().path == scene.path)
            #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
            #expect(try scene.directory.names() == [RangeScene.name])
        }
    }

    @Test("An existing file is an error before the first request")
    func exists() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            try scene.directory.write([1, 2, 3], to: RangeScene.name)
            let error = await #expect(throws: HTTPError.self) {
                try await scene.session.download(scene.url, to: scene.path)
            }
            #expect(error?.code == .fileExists)
            #expect(try scene.directory.contents(of: RangeScene.name) == [1, 2, 3])
            #expect(try scene.directory.names() == [RangeScene.name])
            #expect(scene.ranges.sentByteCount == 0)
        }
    }

    @Test("A download onto an existing file fails before the request, unless it overwrites the file")
    func existsForRequest() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            try scene.directory.write([1, 2, 3], to: RangeScene.name)
            let request = try HTTPRequest(method: .get, url: scene.url)
            let error = await #expect(throws: HTTPError.self) {
                try await scene.session.download(request, to: scene.path)
            }
            #expect(error?.code == .fileExists && scene.ranges.requests.isEmpty)
            #expect(try scene.directory.contents(of: RangeScene.name) == [1, 2, 3])
            try await scene.session.download(request, to: scene.path, overwrites: true)
            #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
        }
    }

    @Test("A target that is removed during the download causes no error")
    func disappears() async throws {
        try await RangeScene.with(TargetTests.held) { scene in
            try scene.directory.write([1, 2, 3], to: RangeScene.name)
            let options = RangeScene.options { $0.collision = .overwrite }
            let download = try scene.session.startDownload(
                scene.url, to: .file(scene.path), options: options)
            try await scene.ranges.signals.wait(for: "middle")
            // The old file is complete until the new one replaces it.
            #expect(try scene.directory.contents(of: RangeScene.name) == [1, 2, 3])
            try FileManager.default.removeItem(atPath: scene.path.string)
            scene.ranges.signals.raise("middle go")
            _ = try await download.value
            #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
        }
    }

    @Test(
        "A symbolic link is never followed, wherever it leads",
        arguments: [DownloadOptions.Collision.fail, .skip, .overwrite, .rename])
    func link(_ collision: DownloadOptions.Collision) async throws {
        let elsewhere = try DownloadDirectory()
        try elsewhere.write([7, 7, 7], to: "canary")
        for destination in ["canary", "absent"] {
            try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
                try FileManager.default.createSymbolicLink(
                    atPath: scene.path.string, withDestinationPath: "\(elsewhere.path)/\(destination)")
                let run = try await scene.run(RangeScene.options { $0.collision = collision })
                switch collision {
                case .fail, .skip: #expect(run.error?.code == .fileExists, "\(run.log)")
                case .overwrite:
                    let type = try FileManager.default.attributesOfItem(atPath: scene.path.string)[.type]
                    #expect(type as? FileAttributeType == .typeRegular)
                    #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
                case .rename: #expect(run.value?.path == scene.directory.file("file (1).bin"), "\(run.log)")
                }
                #expect(try elsewhere.names() == ["canary"])
                #expect(try elsewhere.contents(of: "canary") == [7, 7, 7])
            }
        }
    }

    @Test("A part file or a record that is a symbolic link is not followed")
    func linkedPart() async throws {
        let elsewhere = try DownloadDirectory()
        for suffix in [".martlet-part", ".martlet-record"] {
            try elsewhere.write([7, 7, 7], to: "canary")
            try await RangeScene.with(Samples.cutOnce()) { scene in
                _ = try await scene.run(RangeScene.options { $0.retry.maximumRetries = 0 })
                let name = try #require(try scene.directory.names().first { $0.hasSuffix(suffix) })
                let part = "\(scene.directory.path)/\(name)"
                try FileManager.default.removeItem(atPath: part)
                try FileManager.default.createSymbolicLink(
                    atPath: part, withDestinationPath: "\(elsewhere.path)/canary")
                scene.ranges.play(RangeBehavior(Samples.one))
                let run = try await scene.run()
                #expect(try elsewhere.contents(of: "canary") == [7, 7, 7])
                #expect(run.value != nil || run.error != nil)
                if run.value != nil {
                    #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
                }
            }
        }
    }

    @Test("A shortened name keeps its extension in the resumed run, and a long name of the URL is kept")
    func longName() async throws {
        let name = String(repeating: "n", count: 245) + ".iso"
        for disposition in [nil, "attachment; filename=\"d\(name)\""] {
            var conduct = Samples.cutOnce()
            conduct.fields["Content-Disposition"] = disposition
            try await RangeScene.with(conduct) { scene in
                let target = DownloadTarget.directory(FilePath(scene.directory.path))
                var options = RangeScene.options
                options.retry.maximumRetries = 0
                let url = scene.origin.url("/\(name)")
                await #expect(throws: HTTPError.self) {
                    try await scene.session.download(url, to: target, options: options)
                }
                scene.ranges.play(RangeBehavior(Samples.one))
                let result = try await scene.session.download(url, to: target, options: options)
                #expect(result.resumedByteCount == Samples.cut)
                let found = try #require(result.path.lastComponent?.string)
                #expect(disposition == nil ? found == name : found.hasSuffix(".iso"), "\(found)")
                #expect(try scene.directory.names() == [found])
            }
        }
    }

    @Test("A directory that does not exist, or is a file, is an error with a message")
    func noDirectory() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            try scene.directory.write([1], to: "plain")
            for path in [scene.directory.file("none/file.bin"), scene.directory.file("plain/file.bin")] {
                let error = await #expect(throws: HTTPError.self) {
                    try await scene.session.download(scene.url, to: path, options: RangeScene.options)
                }
                #expect(error?.code == .fileFailed)
            }
            #expect(try scene.directory.names() == ["plain"])
        }
    }

    @Test("A target that is a directory is an error, and the directory stays")
    func isDirectory() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            try FileManager.default.createDirectory(
                atPath: scene.path.string, withIntermediateDirectories: false)
            for collision in [DownloadOptions.Collision.fail, .overwrite] {
                let run = try await scene.run(RangeScene.options { $0.collision = collision })
                let code = try #require(run.error?.code, "\(run.log)")
                #expect([.fileExists, .fileFailed].contains(code))
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: scene.path.string).isEmpty)
        }
    }

    @Test("A directory that is removed during the download is an error, not a crash")
    func directoryRemoved() async throws {
        try await downloadMeanwhile(.fail) { scene in
            try FileManager.default.removeItem(atPath: scene.directory.path)
        } then: { _, result in
            #expect(code(result) == .fileFailed, "\(result)")
        }
    }

    @Test("Other users cannot write to unfinished files")
    func permissions() async throws {
        try await RangeScene.with(TargetTests.held) { scene in
            let download = try scene.session.startDownload(scene.url, to: .file(scene.path))
            try await scene.ranges.signals.wait(for: "middle")
            _ = await eventually { (try? scene.directory.parts().isEmpty) == false }
            for name in try scene.directory.parts() {
                let attributes = try FileManager.default.attributesOfItem(
                    atPath: "\(scene.directory.path)/\(name)")
                let mode = try #require(attributes[.posixPermissions] as? NSNumber).intValue
                // No other process writes into it.
                #expect(mode & 0o022 == 0, "\(name) \(String(mode, radix: 8))")
            }
            scene.ranges.signals.raise("middle go")
            _ = try await download.value
        }
    }
}
