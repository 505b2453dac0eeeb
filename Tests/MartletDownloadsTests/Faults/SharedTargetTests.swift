import Foundation
import Martlet
import MartletTesting
import MartletTestSupport
import Testing

/// Several downloads of the same file, and the descriptors of running ones.
@Suite("Concurrent downloads")
struct SharedTargetTests {
    private static let held = RangeBehavior(
        Samples.one, acts: [.hold(request: 1, after: 150_000, "middle")])

    @Test("A second download of the same target in one process fails immediately and harms nothing")
    func sameProcess() async throws {
        try await RangeScene.with(SharedTargetTests.held) { scene in
            let first = try scene.session.startDownload(
                scene.url, to: .file(scene.path), options: RangeScene.options)
            try await scene.ranges.signals.wait(for: "middle")
            for collision in [DownloadOptions.Collision.fail, .overwrite] {
                let second = try await scene.run(RangeScene.options { $0.collision = collision })
                #expect(second.error?.code == .alreadyInProgress, "\(second.log)")
            }
            scene.ranges.signals.raise("middle go")
            let result = try await first.value
            #expect(result.byteCount == Samples.one.byteCount)
            #expect(try scene.directory.names() == [RangeScene.name])
            #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
            #expect(scene.ranges.requests.count == 1)
        }
    }

    @Test("A target of another process's download is in use until that process is killed")
    func otherProcess() async throws {
        try await RangeScene.with(SharedTargetTests.held) { scene in
            let child = try await DownloadsChild.start(["one", scene.url, scene.path.string])
            try await scene.ranges.signals.wait(for: "middle")
            let rejected = try await scene.run()
            #expect(rejected.error?.code == .alreadyInProgress, "\(rejected.log)")
            child.killAtOnce()
            let ending = try await child.end()
            #expect(ending.isKilled)
            scene.ranges.play(RangeBehavior(Samples.one))
            let run = try await scene.run()
            try await scene.expectOrder(after: run, versions: [Samples.one])
            #expect(run.value != nil, "\(run.log)")
        }
    }

    @Test("One of many concurrent downloads gets the target; the others fail or run after it")
    func manyAtOnce() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene async throws in
            let options = RangeScene.options { $0.collision = .fail }
            let codes = await withTaskGroup(of: HTTPError.Code?.self) { group in
                for _ in 0..<12 {
                    group.addTask {
                        do {
                            _ = try await scene.session.download(
                                scene.url, to: scene.path, options: options)
                            return nil
                        } catch {
                            return (error as? HTTPError)?.code ?? .systemFailed
                        }
                    }
                }
                var codes: [HTTPError.Code?] = []
                for await code in group { codes.append(code) }
                return codes
            }
            #expect(codes.filter { $0 == nil }.count == 1)
            #expect(
                codes.allSatisfy { $0 == nil || $0 == .alreadyInProgress || $0 == .fileExists }, "\(codes)")
            #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
            #expect(try scene.directory.names() == [RangeScene.name])
        }
    }

    @Test("A program that starts during a download inherits no descriptor of it")
    func closeOnExec() async throws {
        try await RangeScene.with(SharedTargetTests.held) { scene in
            let download = try scene.session.startDownload(
                scene.url, to: .file(scene.path), options: RangeScene.options)
            try await scene.ranges.signals.wait(for: "middle")
            #expect(await eventually { !scene.directory.openFiles().isEmpty })
            let files = FileManager.default
            for name in try files.contentsOfDirectory(atPath: "/proc/self/fd") {
                let link = try? files.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")
                guard let link, link.hasPrefix(scene.directory.path), let flags = flags(ofDescriptor: name)
                else { continue }
                #expect(flags & 0o2_000_000 != 0, "\(link)")
            }
            scene.ranges.signals.raise("middle go")
            _ = try await download.value
        }
    }

    /// The flags of a descriptor, from the kernel.
    private func flags(ofDescriptor name: String) -> Int? {
        let text = try? String(contentsOfFile: "/proc/self/fdinfo/\(name)", encoding: .utf8)
        let line = text?.split(separator: "\n").first { $0.hasPrefix("flags:") }
        return line.flatMap {
            Int($0.dropFirst("flags:".count).trimmingCharacters(in: .whitespaces), radix: 8)
        }
    }
}
