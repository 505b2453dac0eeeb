import MartletConditions
import Foundation
import Martlet
import MartletTesting
import MartletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import MartletDownloads

/// The main guarantees of downloads, one short test each.
@Suite("Checks of downloads")
struct DownloadCheckTests {
    @Test("A file that changes during a segmented download arrives in its new version")
    func changesHalfway() async throws {
        let byteCount: UInt64 = 24 << 20
        let conduct = RangeBehavior(
            RangeVersion(byteCount, entityTag: "\"old\""),
            RangeVersion(byteCount, place: 31, entityTag: "\"new\"")
        ).with {
            $0.flips = [.afterBytes(byteCount / 2)]
            $0.cutsAtFlips = true
        }
        try await RangeScene.with(conduct) { scene in
            let run = try await scene.run()
            try await scene.expectOrder(after: run, versions: conduct.versions)
            let version = try scene.directory.version(of: RangeScene.name, among: conduct.versions)
            #expect(version == 1, "\(run.log)")
            #expect(run.restarts.contains(.changed))
        }
    }

    @Test(
        "A download killed at sixteen random points is complete, and fetches no recorded byte again"
    )
    func killed() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        var generator = SeededGenerator(seed: seed)
        let version = RangeVersion(1 << 20, entityTag: "\"killed\"")
        for index in 0..<16 {
            let point = UInt64.random(in: 1..<version.byteCount, using: &generator)
            let conduct = RangeBehavior(version, acts: [.hold(request: 1, after: point, "there")])
            try await RangeScene.with(conduct) { scene in
                let mark = scene.directory.path + "-mark"
                defer { try? FileManager.default.removeItem(atPath: mark) }
                let child = try await DownloadsChild.start(
                    [
                        "one", scene.url, scene.path.string, "checkpoint=50", "tell=\(point)", "mark=\(mark)",
                        // Another connection would race for the held bytes.
                        "segments=1",
                    ])
                try await scene.ranges.signals.wait(for: "there")
                let isNoted = index % 2 == 0
                if isNoted {
                    #expect(await eventually { FileManager.default.fileExists(atPath: mark) })
                    #expect(await settle(scene.directory, at: point))
                }
                child.killAtOnce()
                _ = try await child.end()
                #expect(try !scene.directory.names().contains(RangeScene.name))
                scene.ranges.play(RangeBehavior(version))
                // One connection only fetches the missing bytes: two could both request the same ones.
                let run = try await scene.run(RangeScene.options { $0.segments = 1 })
                try await scene.expectOrder(after: run, versions: [version])
                #expect(run.value != nil, "killed at \(point), seed \(seed)\n\(run.log)")
                let missing = version.byteCount - point
                #expect(run.sentByteCount >= missing, "killed at \(point), seed \(seed)\n\(run.log)")
                let refetched = run.sentByteCount - min(run.sentByteCount, missing)
                #expect(
                    refetched <= (isNoted ? 64 << 10 : point), "killed at \(point), seed \(seed)\n\(run.log)")
            }
        }
    }

    /// Waits until the record in a directory claims a number of bytes.
    private func settle(_ directory: DownloadDirectory, at point: UInt64) async -> Bool {
        await eventually {
            guard let name = try? directory.record(), let bytes = try? directory.contents(of: name),
                let record = try? ResumeRecord.decode(bytes)
            else { return false }
            return record.written.ranges.reduce(0) { $0 + $1.byteCount } >= point
        }
    }

    @Test("Four connections are used if each of them is slow")
    func fourConnections() async throws {
        let version = RangeVersion(24 << 20, entityTag: "\"paced\"")
        let conduct = RangeBehavior(version).with { $0.pace = RangePace(2 << 20) }
        try await RangeScene.with(conduct) { scene in
            let run = try await scene.run()
            try await scene.expectOrder(after: run, versions: [version])
            #expect(run.value != nil, "\(run.log)")
            // A connection whose segment is split closes, and another one follows.
            #expect((4...8).contains(Set(run.requests.map(\.connection)).count), "\(run.log)")
            #expect(run.value?.receivedByteCount ?? .max < version.byteCount * 5 / 4, "\(run.log)")
        }
    }

    @Test("One connection is used if one is requested")
    func oneConnection() async throws {
        let version = RangeVersion(12 << 20, entityTag: "\"one\"")
        try await RangeScene.with(RangeBehavior(version)) { scene in
            let run = try await scene.run(RangeScene.options { $0.segments = 1 })
            try await scene.expectOrder(after: run, versions: [version])
            #expect(run.value != nil, "\(run.log)")
            #expect(scene.origin.recorder.counts.connections == 1, "\(run.log)")
        }
    }

    @Test("A metered network uses one connection, even if more are allowed")
    func mobile() async throws {
        let version = RangeVersion(12 << 20, entityTag: "\"one\"")
        let conduct = RangeBehavior(version).with { $0.pace = RangePace(4 << 20) }
        try await RangeScene.with(
            conduct,
            configure: { configuration in
                configuration.concurrency = ConcurrencyPolicy()
                configuration.pool.connectionsPerHost = 8
            }
        ) { scene in
            scene.session.networkConditionChanged(to: .mobile)
            let run = try await scene.run(RangeScene.options { $0.segments = 8 })
            #expect(run.value != nil, "\(run.log)")
            #expect(scene.origin.recorder.counts.connections == 1, "\(run.log)")
        }
    }

    @Test("Other connections take over the remaining bytes of a slow one")
    func takenOver() async throws {
        let version = RangeVersion(24 << 20, entityTag: "\"paced\"")
        let conduct = RangeBehavior(
            version,
            acts: [
                .onRequest(2) { $0.pace = RangePace(2 << 20, changingAfter: 300_000, to: 20_000) }
            ]
        ).with { $0.pace = RangePace(2 << 20) }
        try await RangeScene.with(conduct) { scene in
            let run = try await scene.run(RangeScene.options { $0.takeoverThreshold = nil })
            try await scene.expectOrder(after: run, versions: [version])
            #expect(run.value != nil, "\(run.log)")
            let slow = try #require(run.requests.dropFirst().first)
            let asked = (slow.end ?? version.byteCount - 1) - (slow.start ?? 0) + 1
            #expect(slow.sentByteCount < asked, "\(run.log)")
        }
    }

    @Test("The file is correct if one of 64 segments stalls")
    func oneOfMany() async throws {
        let version = RangeVersion(24 << 20, entityTag: "\"many\"")
        let conduct = RangeBehavior(
            version, acts: [.onRequest(2) { $0.fault = OriginFault(.stall, afterBodyBytes: 100_000) }]
        ).with { $0.pace = RangePace(3 << 20) }
        try await RangeScene.with(conduct) { scene in
            let run = try await scene.run(
                RangeScene.options {
                    $0.segments = 64
                    $0.stallTimeout = .milliseconds(500)
                    $0.retry.maximumRetries = 1_000
                })
            try await scene.expectOrder(after: run, versions: [version])
            #expect(run.value != nil, "\(run.log)")
        }
    }

    @Test("A server that stalls on an open connection is requested again on a new one, then abandoned")
    func silent() async throws {
        let conduct = RangeBehavior(
            Samples.one, acts: [.always { $0.fault = OriginFault(.stall, afterBodyBytes: 10) }])
        try await RangeScene.with(conduct) { scene in
            scene.ranges.play(
                RangeBehavior(
                    Samples.one,
                    acts: [
                        .onRequest(1) { $0.fault = OriginFault(.stall, afterBodyBytes: 10) },
                        RangeResponseOverride(on: { $0.number > 1 }) { $0.fault = OriginFault(.stall) },
                    ]))
            let run = try await scene.run(
                RangeScene.options {
                    $0.stallTimeout = .milliseconds(200)
                    $0.retry.maximumRetries = 3
                })
            try await scene.expectOrder(after: run, versions: [Samples.one])
            #expect(run.error?.code == .timedOut, "\(run.log)")
            #expect(run.requests.count >= 4, "\(run.log)")
            #expect(Set(run.requests.map(\.connection)).count == run.requests.count, "\(run.log)")
        }
    }

    @Test(
        "A file name from the server becomes a plain name in the directory",
        arguments: [
            (#"attachment; filename="../../etc/x""#, "x"), (#"attachment; filename=".bashrc""#, "bashrc"),
            (#"attachment; filename="/etc/passwd""#, "passwd"),
            (#"attachment; filename="plain.txt""#, "plain.txt"),
            (#"attachment; filename*=UTF-8''na%C3%AFve.txt"#, "naïve.txt"),
            (#"attachment; filename="fall.txt"; filename*=UTF-8''%e2%82%ac.txt"#, "€.txt"),
            (#"attachment; filename*=UTF-8''..%2F..%2Fetc%2Fx"#, "x"),
            (#"attachment; filename="-rf""#, "rf"), (#"attachment; filename="..\\..\\x""#, nil),
            (#"attachment; filename="..""#, nil), (#"attachment; filename="""#, nil),
            (#"attachment; filename="a\u{1}b.txt""#, nil), ("attachment", "file.bin"), ("nonsense;;;=", nil),
        ] as [(String, String?)])
    func names(_ field: String, _ expected: String?) async throws {
        let conduct = RangeBehavior(Samples.one).with { $0.fields["Content-Disposition"] = field }
        try await expectSafeName(conduct, expected)
    }

    @Test("A name of 300 bytes is shortened to the limit of the directory")
    func longName() async throws {
        for name in [
            String(repeating: "a", count: 300) + ".txt", String(repeating: "é", count: 150) + ".txt",
        ] {
            let encoded = name.utf8.map { "%" + String($0, radix: 16) }.joined()
            let conduct = RangeBehavior(Samples.one).with {
                $0.fields["Content-Disposition"] = "attachment; filename*=UTF-8''\(encoded)"
            }
            try await expectSafeName(conduct, nil)
        }
    }

    private func expectSafeName(_ conduct: RangeBehavior, _ expected: String?) async throws {
        try await RangeScene.with(conduct) { scene in
            let parent = try DownloadDirectory()
            let inner = "\(parent.path)/inner"
            try FileManager.default.createDirectory(atPath: inner, withIntermediateDirectories: false)
            let result = try await scene.session.download(
                scene.url, to: .directory(FilePath(inner)), options: RangeScene.options)
            #expect(try parent.names() == ["inner"])
            let names = try FileManager.default.contentsOfDirectory(atPath: inner)
            let name = try #require(names.first)
            #expect(names.count == 1)
            #expect(result.path == FilePath("\(inner)/\(name)"))
            #expect(name.utf8.count <= 255)
            #expect(!name.hasPrefix(".") && !name.hasPrefix("-"))
            #expect(name.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F && $0 != "/" })
            if let expected { #expect(name == expected) }
        }
    }

    @Test("A download that is paused in one process fetches only the missing bytes in another")
    func anotherProcess() async throws {
        let point: UInt64 = 500_000
        let version = RangeVersion(1_200_000, entityTag: "\"paused\"")
        let conduct = RangeBehavior(version, acts: [.hold(request: 1, after: point, "there")])
        try await RangeScene.with(conduct) { scene in
            let child = try await DownloadsChild.run(
                ["one", scene.url, scene.path.string, "pauseAfter=\(point)"])
            #expect(child.number("completed", of: "paused") == point, "\(child)")
            scene.ranges.play(RangeBehavior(version))
            let first = Mutex<DownloadProgress?>(nil)
            let result = try await scene.session.download(
                scene.url, to: scene.path, options: RangeScene.options
            ) { progress in
                first.withLock { if $0 == nil, progress.receivedByteCount > 0 { $0 = progress } }
            }
            #expect(result.resumedByteCount == point)
            #expect(result.receivedByteCount == version.byteCount - point)
            #expect(scene.ranges.sentByteCount == version.byteCount - point)
            let progress = try #require(first.withLock { $0 })
            #expect(progress.resumedByteCount == point)
            #expect(progress.completedByteCount >= point)
            #expect(progress.totalByteCount == version.byteCount)
            #expect(try scene.directory.version(of: RangeScene.name, among: [version]) == 0)
            #expect(try scene.directory.names() == [RangeScene.name])
        }
    }

    @Test("A download of a large file takes little memory")
    func memory() async throws {
        let version = RangeVersion(192 << 20, entityTag: "\"large\"")
        try await RangeScene.with(RangeBehavior(version)) { scene in
            let child = try await DownloadsChild.run(["one", scene.url, scene.path.string])
            #expect(child.line("finished bytes=\(version.byteCount)") != nil, "\(child)")
            #expect(try scene.directory.version(of: RangeScene.name, among: [version]) == 0)
            let peak = try #require(child.line("peak=").flatMap { Int($0.dropFirst("peak=".count)) })
            #expect(peak > 0)
            if !Sanitizer.isInUse { #expect(peak < 64 << 10, "\(peak) KiB") }
        }
    }
}
