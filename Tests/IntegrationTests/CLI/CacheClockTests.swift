import Foundation
import MartletTesting
import Testing

/// A program whose clock was set after another one had stored responses with the earlier time.
@Suite("Cache of a program whose clock was set")
struct CacheClockTests {
    @Test(
        "Responses stored before a clock was set are validated, in either direction",
        arguments: [-3600.0, -86_400, -1_000_000_000, -2_000_000_000, 31_536_000, 1_000_000_000])
    func validated(_ age: Double) async throws {
        let scene = try CacheScene()
        defer { scene.remove() }
        try await TestOrigin.withOrigin { request in
            request.headers["If-None-Match"] == "\"1\""
                ? OriginResponse(304, headers: ["ETag": "\"1\"", "Cache-Control": "max-age=600"])
                : .text("not validated")
        } run: { origin async throws in
            // A year later they are too old; a year earlier their age is unknown.
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

    @Test(
        "The program's own responses keep their true age, even if the clock is set while it runs",
        .enabled(if: !MartletProgram.isSanitized, "a sanitizer has to be loaded before all else"),
        arguments: ["+86400", "-86400"])
    func whileItRuns(_ shift: String) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let clock = ShiftedClock(in: directory)
        try clock.set("+0")
        let handler = OriginHandler { request in
            if request.path == "/set" {
                do {
                    try clock.set(shift)
                } catch {
                    return OriginResponse(500)
                }
            }
            let fields: OriginFields = ["ETag": "\"1\"", "Cache-Control": "max-age=600"]
            guard request.headers.values(of: "If-None-Match").isEmpty else {
                return OriginResponse(304, headers: fields)
            }
            return OriginResponse(200, headers: fields, body: .text("body"))
        }
        try await TestOrigin.withOrigin(.plain, handler: handler) { origin async throws in
            let options = ["batch", "--connect-timeout", "300", "--cache", "folder", "--parallel", "1"]
            func sources(_ paths: [String]) async throws -> [String?] {
                let lines = paths.enumerated().map { "{\"seq\":\($0),\"url\":\"\(origin.url($1))\"}\n" }
                let run = try await Program.run(
                    options, input: Array(lines.joined().utf8), in: directory,
                    environment: try clock.environment)
                #expect(run.status == 0 && run.errors.isEmpty, "\(run.errors)")
                return try run.objects.map(BatchReply.init).map(\.source)
            }
            #expect(
                try await sources(["/a", "/a", "/set", "/a"]) == ["network", "cache", "network", "cache"])
            // Another program trusts its own clock, which makes the response too old or from the future.
            #expect(try await sources(["/a"]) == ["validated"])
        }
    }
}
