import Foundation
import Martlet
import MartletTesting
import MartletTestSupport
import Testing

/// Records and part files that are cut, damaged, or of another program.
@Suite("Damaged records and part files")
struct DamagedRecordTests {
    /// The files that an earlier run left, by name.
    private struct Leavings {
        var record: (name: String, bytes: [UInt8])
        var part: (name: String, bytes: [UInt8])
    }

    private func leavings(in scene: RangeScene) async throws -> Leavings {
        scene.ranges.play(Samples.cutOnce())
        let run = try await scene.run(RangeScene.options { $0.retry.maximumRetries = 0 })
        try #require(run.error?.resumableByteCount == Samples.cut, "\(run.log)")
        let names = try scene.directory.names()
        let record = try #require(names.first { $0.hasSuffix(".martlet-record") })
        let part = try #require(names.first { $0.hasSuffix(".martlet-part") })
        return Leavings(
            record: (record, try scene.directory.contents(of: record)),
            part: (part, try scene.directory.contents(of: part)))
    }

    /// Resumes from these files.
    /// - Returns: The number of bytes that were reused.
    private func resume(_ scene: RangeScene, _ leavings: Leavings, _ comment: String) async throws
        -> UInt64
    {
        for name in try scene.directory.names() {
            try FileManager.default.removeItem(atPath: scene.directory.file(name).string)
        }
        try scene.directory.write(leavings.record.bytes, to: leavings.record.name)
        try scene.directory.write(leavings.part.bytes, to: leavings.part.name)
        scene.ranges.play(RangeBehavior(Samples.one))
        let run = try await scene.run()
        #expect(run.value != nil, "\(comment)\n\(run.log)")
        try await scene.expectOrder(after: run, versions: [Samples.one])
        return run.value?.resumedByteCount ?? 0
    }

    @Test("A record that is cut at any length costs at most the stored bytes")
    func truncated() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            let whole = try await leavings(in: scene)
            #expect(try await resume(scene, whole, "undamaged") == Samples.cut)
            let count = whole.record.bytes.count
            for length in stride(from: 0, to: count, by: max(1, count / 97)) {
                var cut = whole
                cut.record.bytes = Array(whole.record.bytes.prefix(length))
                _ = try await resume(scene, cut, "\(length) of \(count) bytes")
            }
        }
    }

    @Test("A record with any wrong byte costs at most the stored bytes")
    func flipped() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        var generator = SeededGenerator(seed: seed)
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            let whole = try await leavings(in: scene)
            let count = whole.record.bytes.count
            for place in stride(from: 0, to: count, by: max(1, count / 131)) {
                var flipped = whole
                flipped.record.bytes[place] ^= UInt8.random(in: 1...255, using: &generator)
                _ = try await resume(scene, flipped, "byte \(place), seed \(seed)")
            }
        }
    }

    @Test("A record of another program or format, or one that is too long, is ignored")
    func foreign() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            let whole = try await leavings(in: scene)
            let foreign: [[UInt8]] = [
                [], Array("{\"version\": 99, \"url\": \"http://example.com/\"}".utf8),
                Array(repeating: 0, count: 10_000), Array(repeating: 0xFF, count: 10_000),
                whole.record.bytes + whole.record.bytes, whole.record.bytes + [0],
                Array(repeating: 0x41, count: 4 << 20),
            ]
            for (index, bytes) in foreign.enumerated() {
                var other = whole
                other.record.bytes = bytes
                _ = try await resume(scene, other, "sample \(index)")
            }
        }
    }

    @Test("A part file that is shorter than its record is completed")
    func shortPart() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            let whole = try await leavings(in: scene)
            for length in [0, 1, 50_000, 99_999] {
                var short = whole
                short.part.bytes = Array(whole.part.bytes.prefix(length))
                let resumed = try await resume(scene, short, "\(length) bytes")
                #expect(resumed <= UInt64(length))
            }
            var long = whole
            long.part.bytes += [UInt8](repeating: 0x21, count: 500_000)
            _ = try await resume(scene, long, "a part that is longer than the file")
        }
    }

    @Test("A part file without a record, or a record without a part file, restarts the download")
    func oneMissing() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            for suffix in [".martlet-part", ".martlet-record"] {
                let whole = try await leavings(in: scene)
                let name = whole.part.name.hasSuffix(suffix) ? whole.part.name : whole.record.name
                try FileManager.default.removeItem(atPath: scene.directory.file(name).string)
                scene.ranges.play(RangeBehavior(Samples.one))
                let run = try await scene.run()
                #expect(run.value != nil, "\(run.log)")
                #expect(run.value?.resumedByteCount == 0)
                try await scene.expectOrder(after: run, versions: [Samples.one])
                try FileManager.default.removeItem(atPath: scene.path.string)
            }
        }
    }

    @Test("A record of another URL is not used")
    func otherURL() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            _ = try await leavings(in: scene)
            scene.ranges.play(RangeBehavior(Samples.two))
            let run = try await scene.run(from: scene.origin.url("/other"))
            #expect(run.value != nil, "\(run.log)")
            try await scene.expectOrder(after: run, versions: [Samples.two])
        }
    }
}
