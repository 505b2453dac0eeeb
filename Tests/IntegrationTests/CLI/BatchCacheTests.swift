import Foundation
import MartletTesting
import Testing

@Suite("Cache of martlet batch")
struct BatchCacheTests {
    /// A request line for a URL with a cache mode.
    private static func line(_ number: Int, _ url: String, _ mode: String?, _ more: String = "") -> String {
        let cache = mode.map { ",\"cache\":\"\($0)\"" } ?? ""
        return "{\"seq\":\(number),\"url\":\"\(url)\"\(cache)\(more)}"
    }

    /// Responses that are fresh for the time in the path, and a 304 for conditional requests.
    private static let origin: OriginHandler.Respond = { request in
        let control = "max-age=\(request.path.dropFirst())"
        if !request.headers.values(of: "If-None-Match").isEmpty {
            return OriginResponse(304, headers: ["ETag": "\"1\"", "Cache-Control": control])
        }
        return OriginResponse(
            200, headers: ["ETag": "\"1\"", "Cache-Control": control], body: .text("body"))
    }

    private static let modes: [(mode: String?, status: Int, source: String)] = [
        ("only-if-cached", 504, "cache"), ("none", 200, "network"), ("only-if-cached", 504, "cache"),
        ("default", 200, "network"), ("default", 200, "cache"), ("no-cache", 200, "validated"),
        ("reload", 200, "network"), ("force-cache", 200, "cache"), ("only-if-cached", 200, "cache"),
        ("no-store", 200, "network"), (nil, 200, "cache"),
    ]

    @Test("Each mode uses its source, and stats counts the cache's decisions", arguments: ["memory", "folder"])
    func modes(_ cache: String) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await TestOrigin.withOrigin(.plain, handler: OriginHandler(BatchCacheTests.origin)) { origin in
            let modes = BatchCacheTests.modes
            var lines = modes.enumerated().map { BatchCacheTests.line($0, origin.url("/600"), $1.mode) }
            lines.append("{\"seq\":99,\"op\":\"stats\"}")
            let replies = try await Program.batch(lines, "--cache", cache, "--parallel", "1", in: directory)
            try #require(replies.count == modes.count + 1)
            #expect(replies.dropLast().map { $0.source } == modes.map { $0.source })
            #expect(replies.dropLast().map { $0.status } == modes.map { $0.status })
            #expect(replies.dropLast().allSatisfy { $0.body == ($0.status == 200 ? "body" : "") })
            #expect(origin.requests.count == 5)
            #expect(
                origin.requests.map { !$0.headers.values(of: "If-None-Match").isEmpty }
                    == [false, false, true, false, false])
            let counts = try #require(replies.last?.members["cache"] as? [String: Int])
            #expect(counts["hits"] == 4 && counts["validated"] == 1 && counts["misses"] == 2, "\(counts)")
            #expect(counts["unsatisfiable"] == 2 && counts["bypasses"] == 2 && counts["stores"] == 2)
            #expect(counts["bytes_served"] == 20, "\(counts)")
            if cache == "memory" { #expect(counts["memory_entries"] == 1 && counts["disk_entries"] == 0) }
            #expect(
                FileManager.default.fileExists(atPath: directory.appending("folder")) == (cache == "folder"))
        }
    }

    @Test("A stale response is reported as stale, or validated")
    func stale() async throws {
        try await TestOrigin.withOrigin(.plain, handler: OriginHandler(BatchCacheTests.origin)) { origin in
            let modes = [nil, "force-cache", "only-if-cached", "default"]
            let replies = try await Program.batch(
                modes.enumerated().map { BatchCacheTests.line($0, origin.url("/0"), $1) },
                "--cache", "memory", "--parallel", "1")
            #expect(replies.map(\.source) == ["network", "stale", "stale", "validated"])
            #expect(replies.allSatisfy { $0.body == "body" && $0.status == 200 })
            #expect(origin.requests.count == 2)
        }
    }

    @Test("Without --cache every response comes from the network, and only-if-cached gets none")
    func without() async throws {
        try await TestOrigin.withOrigin(.plain, handler: OriginHandler(BatchCacheTests.origin)) { origin in
            let modes = ["none", "default", "no-cache", "force-cache", "no-store", "reload"]
            let url = origin.url("/600")
            var lines = modes.enumerated().map { BatchCacheTests.line($0, url, $1) }
            lines += (6...7).map { BatchCacheTests.line($0, url, "only-if-cached") }
            lines.append("{\"seq\":8,\"op\":\"stats\"}")
            let replies = try await Program.batch(lines, "--parallel", "1")
            #expect(replies.map(\.status) == [200, 200, 200, 200, 200, 200, 504, 504, nil])
            #expect(replies.prefix(6).allSatisfy { $0.source == "network" })
            #expect(replies.dropFirst(6).prefix(2).allSatisfy { $0.source == "cache" && $0.body == "" })
            #expect(replies.last?.members["cache"] is NSNull)
            #expect(origin.requests.count == 6)
        }
    }

    @Test("only-if-cached sends no request, whatever the method", arguments: [[], ["--cache", "memory"]])
    func sendsNothing(_ options: [String]) async throws {
        try await TestOrigin.withOrigin(.plain, handler: OriginHandler(BatchCacheTests.origin)) { origin in
            let more = ",\"method\":\"POST\",\"body\":\"x\""
            let line = BatchCacheTests.line(1, origin.url("/600"), "only-if-cached", more)
            let run = try await Program.run(["batch"] + options, input: Array(line.utf8))
            #expect(try run.objects.map { $0["status"] as? Int } == [504], "\(run.text)")
            #expect(origin.connectionCount == 0)
        }
    }

    @Test("The cache outlives first and reset, and a cache directory outlives the process")
    func outlives() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await TestOrigin.withOrigin(.plain, handler: OriginHandler(BatchCacheTests.origin)) { origin in
            let url = origin.url("/600")
            let lines = [
                BatchCacheTests.line(1, url, nil), BatchCacheTests.line(2, url, nil, ",\"first\":true"),
                "{\"seq\":3,\"op\":\"reset\"}", BatchCacheTests.line(4, url, nil),
            ]
            let replies = try await Program.batch(
                lines, "--cache", "folder", "--parallel", "1", in: directory)
            #expect(replies.map(\.source) == ["network", "cache", nil, "cache"])
            let later = try await Program.batch(
                [BatchCacheTests.line(1, url, nil)], "--cache", "folder", in: directory)
            #expect(later.map(\.source) == ["cache"] && later.first?.body == "body")
            #expect(origin.requests.count == 1)
        }
    }

    @Test("Equal concurrent requests are sent once")
    func shared() async throws {
        let other = Gate()
        try await TestOrigin.withOrigin(.plain) { request in
            guard request.path == "/600" else { return .text("other") }
            await other.pass()
            return try await BatchCacheTests.origin(request)
        } run: { origin in
            defer { other.open() }
            var lines = (0..<20).map { BatchCacheTests.line($0, origin.url("/600"), nil) }
            lines.append(BatchCacheTests.line(20, origin.url("/other"), nil))
            let replies = try await Program.batch(lines, "--cache", "memory") { running in
                try await running.waitForOutput("\"seq\":20")
                other.open()
            }
            #expect(replies.count == 21)
            #expect(replies.filter { $0.number != 20 }.allSatisfy { $0.status == 200 && $0.body == "body" })
            #expect(origin.requests.count { $0.target == "/600" } == 1)
        }
    }

    @Test("A response for one user is not served to another")
    func users() async throws {
        try await TestOrigin.withOrigin(.plain) { request in
            OriginResponse(
                200, headers: ["Cache-Control": "private, max-age=600"],
                body: .text(request.headers.values(of: "Authorization").first ?? "nobody"))
        } run: { origin in
            let lines = ["a", "b", "a", nil].enumerated().map { number, user in
                let credentials = user.map {
                    ",\"auth\":{\"type\":\"basic\",\"user\":\"\($0)\",\"password\":\"p\"}"
                }
                return BatchCacheTests.line(number, origin.url("/"), nil, credentials ?? "")
            }
            let replies = try await Program.batch(lines, "--cache", "memory", "--parallel", "1")
            #expect(replies.map(\.body) == ["Basic YTpw", "Basic Yjpw", "Basic YTpw", "nobody"])
            #expect(replies.map(\.source) == ["network", "network", "cache", "network"])
        }
    }

    @Test("A directory that cannot hold a cache exits with 2, and no input is read")
    func badDirectory() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try directory.write("text", to: "file")
        try CacheScene.set([.posixPermissions: 0o755], of: try directory.makeDirectory("open"))
        for name in ["file", "open"] {
            let run = try await Program.run(
                ["batch", "--cache", name], input: Array("{\"seq\":1,\"op\":\"reset\"}\n".utf8), in: directory
            )
            #expect(run.status == 2 && run.output.isEmpty)
            #expect(run.errors.hasPrefix("martlet: (2) option --cache: ") && run.errors.contains(name))
        }
    }
}
