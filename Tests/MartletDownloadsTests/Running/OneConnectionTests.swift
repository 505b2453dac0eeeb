import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Servers that allow one connection per address")
struct OneConnectionTests {
    @Test("The server rejects the other connections, and the file arrives over the first", arguments: [403, 404])
    func rejectedOthers(_ status: Int) async throws {
        let version = RangeVersion(12 << 20, entityTag: "\"one\"")
        let rejection = OriginResponse(status, headers: ["Connection": "close"], body: .text("one at a time\n"))
        let conduct = RangeBehavior(
            version, acts: [RangeResponseOverride(on: { $0.connection != 1 }) { $0.replacement = rejection }]
        ).with { $0.pace = RangePace(12 << 20) }
        try await RangeScene.with(conduct) { scene in
            let run = try await scene.run(RangeScene.options { $0.segments = 4 })
            #expect(run.value != nil, "\(run.log)")
            #expect(run.retries.isEmpty && run.restarts.isEmpty, "\(run.log)")
            try await scene.expectOrder(after: run, versions: [version])
        }
    }
}
