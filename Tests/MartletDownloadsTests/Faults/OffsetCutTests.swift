import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Cuts at any offset")
struct OffsetCutTests {
    /// The framing and the end of a body.
    struct Ending: Sendable, CustomTestStringConvertible {
        var framing: OriginFraming
        var kind: OriginFault.Kind

        var testDescription: String { "\(framing), \(kind)" }
    }

    private static let endings = [
        Ending(framing: .automatic, kind: .close), Ending(framing: .automatic, kind: .reset),
        Ending(framing: .chunked(size: 100), kind: .close),
        Ending(framing: .chunked(size: 100), kind: .reset),
    ]

    @Test("A file of 2 KiB is complete, wherever its response is cut", arguments: endings)
    func anyOffset(_ ending: Ending) async throws {
        let seed = UInt64.random(in: 0 ... .max)
        var generator = SeededGenerator(seed: seed)
        let version = RangeVersion(2_048, entityTag: "\"small\"")
        let offsets: [UInt64] =
            [0, 1, 2_047, 2_048] + (0..<46).map { _ in UInt64.random(in: 0...2_048, using: &generator) }
        try await RangeScene.with(RangeBehavior(version)) { scene in
            for offset in offsets {
                scene.ranges.play(
                    RangeBehavior(version, acts: [.cut(request: 1, after: offset, by: ending.kind)]).with {
                        $0.framing = ending.framing
                    })
                let options = RangeScene.options { $0.collision = .overwrite }
                let run = try await scene.run(options)
                try #require(run.value != nil, "cut at \(offset), seed \(seed)\n\(run.log)")
                try await scene.expectOrder(after: run, versions: [version])
                let asked = try #require(run.requests.last)
                #expect((asked.start ?? 0) <= offset, "seed \(seed)\n\(run.log)")
                if ending.kind == .close, offset < 2_048, offset > 0 {
                    #expect(asked.start == offset, "seed \(seed)\n\(run.log)")
                    #expect(asked.ifRange == "\"small\"")
                }
            }
        }
    }

    @Test("A file is complete, wherever two runs are cut and whatever ends them")
    func twoRuns() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        var generator = SeededGenerator(seed: seed)
        let version = Samples.one
        try await RangeScene.with(RangeBehavior(version)) { scene in
            for _ in 0..<20 {
                var kept: UInt64 = 0
                for _ in 0..<2 {
                    let offset = UInt64.random(in: 0..<150_000, using: &generator)
                    scene.ranges.play(RangeBehavior(version, acts: [.cut(request: 1, after: offset)]))
                    let run = try await scene.run(
                        RangeScene.options {
                            $0.retry.maximumRetries = 0
                            $0.collision = .overwrite
                        })
                    #expect(run.requests.first?.start ?? 0 == kept, "seed \(seed)\n\(run.log)")
                    kept += offset
                    #expect(run.error?.resumableByteCount ?? 0 == kept, "seed \(seed)\n\(run.log)")
                }
                scene.ranges.play(RangeBehavior(version))
                let run = try await scene.run(RangeScene.options { $0.collision = .overwrite })
                #expect(run.sentByteCount == version.byteCount - kept, "seed \(seed)\n\(run.log)")
                try await scene.expectOrder(after: run, versions: [version])
            }
        }
    }
}
