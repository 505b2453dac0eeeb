import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Cuts inside the head")
struct HeadCutTests {
    @Test(
        "A response that is cut anywhere inside its head is a transient failure",
        arguments: [InjectedFault.truncated, .reset])
    func insideTheHead(_ fault: InjectedFault) async throws {
        let version = RangeVersion(2_048, entityTag: "\"small\"")
        try await RangeScene.with(RangeBehavior(version)) { scene in
            // No head of the origin is shorter.
            for place in 0..<60 {
                var faults = FaultOptions.only(fault)
                faults.offsets = place..<place + 1
                faults.isExact = true
                faults.faultyConnectionCount = 1
                scene.ranges.play(RangeBehavior(version))
                let run = try await FaultProxy.withProxy(before: scene.origin, faults) { proxy in
                    try await scene.run(
                        RangeScene.options {
                            $0.retry.maximumRetries = 1
                            $0.collision = .overwrite
                        }, from: proxy.url("/\(RangeScene.name)"))
                }
                try #require(run.value != nil, "cut at \(place)\n\(run.log)")
                #expect(run.requests.count == 2, "cut at \(place)\n\(run.log)")
                try await scene.expectOrder(after: run, versions: [version])
            }
        }
    }

    @Test("Heads that are always cut use up the retries, and leave no files")
    func eachTime() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            var faults = FaultOptions.only(.truncated)
            faults.offsets = 20..<21
            faults.isExact = true
            let run = try await FaultProxy.withProxy(before: scene.origin, faults) { proxy in
                try await scene.run(
                    RangeScene.options { $0.retry.maximumRetries = 3 },
                    from: proxy.url("/\(RangeScene.name)"))
            }
            #expect(run.error?.code == .truncated, "\(run.log)")
            #expect(run.error?.resumableByteCount == nil)
            #expect(run.requests.count == 4, "\(run.log)")
            #expect(run.retries.count == 3)
            #expect(try scene.directory.names().isEmpty)
        }
    }
}
