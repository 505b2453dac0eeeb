import MartletTesting
import Testing

/// A program whose clock was set since another one stored something: what was stored is stamped by the clock of then.
@Suite("The cache of a program whose clock was set")
struct CacheClockTests {
    @Test(
        "D18: what was stored before a clock was set is validated, whichever way that was",
        arguments: [-3600.0, -86_400, -1_000_000_000, -2_000_000_000, 31_536_000, 1_000_000_000])
    func validated(_ age: Double) async throws {
        let scene = try CacheScene()
        defer { scene.remove() }
        try await TestOrigin.withOrigin { request in
            request.fields["If-None-Match"] == "\"1\""
                ? OriginResponse(304, fields: ["ETag": "\"1\"", "Cache-Control": "max-age=600"])
                : .text("not asked whether it is still good")
        } run: { origin async throws in
            // Forward by a year it is too old, and back it is nobody knows how old.
            let control = age > 0 ? "max-age=600" : "max-age=31536000, immutable"
            try scene.put(
                origin.url("/"), [("ETag", "\"1\""), ("Cache-Control", control)], age: age,
                body: Array("stored".utf8))
            for _ in 0..<2 {
                let run = try await Program.run(
                    ["-sS", "-v", "--cache", scene.path, origin.url("/")], in: scene.directory)
                #expect(run.status == 0 && run.text == "stored", "\(run.errors)")
                #expect(!run.errors.contains("< Age: -"), "\(run.errors)")
            }
            #expect(origin.requests.count == 1)
        }
    }
}
