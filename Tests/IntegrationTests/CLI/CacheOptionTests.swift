import MartletContent
import Foundation
import MartletTesting
import Synchronization
import Testing

@Suite("Cache of martlet get")
struct CacheOptionTests {
    /// Runs a body with an origin, and a directory for a cache.
    private func with(
        _ handler: OriginHandler, _ body: (TestOrigin, TemporaryDirectory) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await TestOrigin.withOrigin(.plain, handler: handler) { origin in
            try await body(origin, directory)
        }
    }

    private func get(_ arguments: String..., in directory: TemporaryDirectory) async throws -> Program.Run {
        try await Program.run(["-sS", "--cache", "cache"] + arguments, in: directory)
    }

    private static func fresh(_ count: UInt64) -> OriginResponse {
        .pattern(count).with { $0.headers.append("Cache-Control", "max-age=600") }
    }

    /// A response that is stale immediately, and a 304 for conditional requests.
    private static func stale(_ request: OriginRequest, _ control: String = "max-age=0") -> OriginResponse {
        if !request.headers.values(of: "If-None-Match").isEmpty {
            return OriginResponse(304, headers: ["ETag": "\"1\"", "Cache-Control": control])
        }
        return OriginResponse(
            200, headers: ["ETag": "\"1\"", "Cache-Control": control], body: .text("stored"))
    }

    /// Flips the last bit of each entry, or of each separate body file.
    private func damage(_ folder: String, bodies: Bool = false) throws {
        var count = 0
        for name in try FileManager.default.contentsOfDirectory(atPath: folder)
        where bodies ? name.utf8.count > 34 : name.utf8.count == 34 {
            let url = URL(fileURLWithPath: "\(folder)/\(name)")
            var data = try Data(contentsOf: url)
            data[data.count - 1] ^= 1
            try data.write(to: url)
            count += 1
        }
        #expect(count > 0)
    }

    private func pattern(_ count: Int) -> [UInt8] { TestPattern.bytes(from: 0, count: count) }

    @Test("The next process prints a fresh response without a request", arguments: [10, 300_000])
    func hit(_ count: Int) async throws {
        try await with(OriginHandler { _ in CacheOptionTests.fresh(UInt64(count)) }) { origin, directory in
            let format = "%{stderr}%{http_code} %{num_connects} %{size_download} %{size_request}"
            let first = try await get("-v", origin.url("/"), in: directory)
            #expect(first.status == 0 && first.output == pattern(count), "\(first.errors)")
            let statuses = first.errors.split(separator: "\n").filter { $0.hasPrefix("* Cache-Status: ") }
            #expect(statuses.allSatisfy { $0.contains(": martlet; fwd=uri-miss; ") }, "\(first.errors)")
            // A body that arrives with the head may be stored before the first line.
            #expect([[true], [false, true]].contains(statuses.map { $0.hasSuffix("; stored") }), "\(first.errors)")
            #expect(first.errors.contains("* Connected to \(origin.address)"))
            let second = try await get("-v", "-w", format, origin.url("/"), in: directory)
            #expect(second.status == 0 && second.output == pattern(count))
            #expect(second.errors.hasPrefix("* Cache-Status: martlet; hit; ttl="), "\(second.errors)")
            #expect(second.errors.contains("< HTTP/1.1 200 OK\n") && second.errors.contains("< Age: "))
            #expect(!second.errors.contains("onnect") && !second.errors.contains("> "))
            #expect(second.errors.hasSuffix("200 0 0 0"))
            #expect(origin.requests.count == 1)
        }
    }

    @Test("A stale response is validated, and its body is not sent again")
    func validated() async throws {
        try await with(OriginHandler { CacheOptionTests.stale($0) }) { origin, directory in
            #expect(try await get(origin.url("/"), in: directory).text == "stored")
            let second = try await get("-v", origin.url("/"), in: directory)
            #expect(second.status == 0 && second.text == "stored", "\(second.errors)")
            #expect(second.errors.contains("> If-None-Match: \"1\"\n"))
            #expect(second.errors.contains("fwd-status=304"))
            #expect(second.errors.contains("< HTTP/1.1 200 OK\n"))
            #expect(origin.requests.count == 2)
        }
    }

    @Test("--offline prints a stored response, however stale, without a request")
    func offline() async throws {
        try await with(OriginHandler { CacheOptionTests.stale($0) }) { origin, directory in
            _ = try await get(origin.url("/"), in: directory)
            let run = try await get("--offline", "-o", "file", origin.url("/"), in: directory)
            #expect(run.status == 0 && run.errors.isEmpty, "\(run.errors)")
            #expect(OutputFile.contents(of: directory.appending("file")) == "stored")
            #expect(origin.requests.count == 1)
        }
    }

    @Test(
        "--offline exits with 104 for a response that is not stored, and sends and writes nothing",
        arguments: [[], ["-d", "data"], ["-X", "DELETE"], ["--retry", "3"]])
    func offlineMiss(_ more: [String]) async throws {
        try await with(OriginHandler { _ in CacheOptionTests.fresh(10) }) { origin, directory in
            let run = try await Program.run(
                [
                    "-sS", "--cache", "cache", "--offline", "-o", "file", "-w", "%{exitcode} %{http_code}",
                    origin.url("/"),
                ] + more, in: directory)
            #expect(run.status == 104)
            let method = more.first == "-d" ? "POST" : more.first == "-X" ? "DELETE" : "GET"
            #expect(run.errors == "martlet: (104) \(method) \(origin.url("/")): the response is not in the cache\n")
            #expect(run.text == "104 000")
            #expect(!FileManager.default.fileExists(atPath: directory.appending("file")))
            #expect(origin.connectionCount == 0)
        }
    }

    @Test("A stored 504 is a response like any other")
    func storedTimeout() async throws {
        let answer = OriginResponse(
            504, headers: ["Cache-Control": "max-age=600"], body: .text("their gateway"))
        try await with(.fixed(answer)) { origin, directory in
            _ = try await get(origin.url("/"), in: directory)
            let run = try await get("--offline", origin.url("/"), in: directory)
            #expect(run.status == 0 && run.text == "their gateway", "\(run.errors)")
            #expect(origin.requests.count == 1)
        }
    }

    @Test(
        "--stale-if-error serves the stored response if the server is down or returns a server error"
    )
    func staleIfError() async throws {
        try await with(
            OriginHandler { request in
                request.path == "/503" && !request.headers.values(of: "If-None-Match").isEmpty
                    ? .text("no", status: 503) : CacheOptionTests.stale(request)
            }
        ) { origin, directory in
            for (path, isDown) in [("/503", false), ("/", true)] {
                _ = try await get(origin.url(path), in: directory)
                if isDown { await origin.stop() }
                let run = try await get(
                    "-v", "--stale-if-error", "600", "-f", origin.url(path), in: directory)
                #expect(run.status == 0 && run.text == "stored", "\(run.errors)")
                let told = isDown ? "fwd=stale; ttl=" : "fwd=stale; fwd-status=503; ttl="
                #expect(run.errors.contains(told) && run.errors.contains("stale-if-error"), "\(run.errors)")
                let without = try await get("-f", origin.url(path), in: directory)
                #expect(without.status == (isDown ? 7 : 22), "\(without.errors)")
            }
        }
    }

    @Test("must-revalidate forbids serving a stale response after an error")
    func mustRevalidate() async throws {
        try await with(
            OriginHandler { CacheOptionTests.stale($0, "max-age=0, must-revalidate") }
        ) { origin, directory in
            _ = try await get(origin.url("/"), in: directory)
            await origin.stop()
            let run = try await get("--stale-if-error", "600", origin.url("/"), in: directory)
            #expect(run.status == 7 && run.output.isEmpty, "\(run.errors)")
        }
    }

    @Test("A damaged entry is fetched again", arguments: [10, 20_000, 200_000])
    func damaged(_ count: Int) async throws {
        try await with(OriginHandler { _ in CacheOptionTests.fresh(UInt64(count)) }) { origin, directory in
            _ = try await get(origin.url("/"), in: directory)
            try damage(directory.appending("cache"))
            let run = try await get(origin.url("/"), in: directory)
            #expect(run.status == 0 && run.output == pattern(count), "\(run.errors)")
            #expect(origin.requests.count == 2)
            #expect(try await get(origin.url("/"), in: directory).output == pattern(count))
            #expect(origin.requests.count == 2)
        }
    }

    @Test(
        "A large body with a damaged end is fetched again for a file, and cut short on standard output"
    )
    func damagedLate() async throws {
        let count = 2_000_000
        try await with(OriginHandler { _ in CacheOptionTests.fresh(UInt64(count)) }) { origin, directory in
            _ = try await get(origin.url("/"), in: directory)
            try damage(directory.appending("cache"), bodies: true)
            let run = try await get("-o", "file", origin.url("/"), in: directory)
            #expect(run.status == 0, "\(run.errors)")
            #expect(OutputFile.bytes(of: directory.appending("file")) == pattern(count))
            #expect(origin.requests.count == 2)
            try damage(directory.appending("cache"), bodies: true)
            let shown = try await get(origin.url("/"), in: directory)
            #expect(shown.status == 26 && shown.errors.contains("corrupt"), "\(shown.errors)")
            #expect(shown.output.count < count && pattern(count).starts(with: shown.output))
            #expect(try await get(origin.url("/"), in: directory).output == pattern(count))
            #expect(origin.requests.count == 3)
        }
    }

    @Test("A stored body that cannot be decoded is fetched again for a file")
    func undecodable() async throws {
        let wire = StoredCoding.gzip(pattern(100_000))
        let origin = OriginHandler { request in
            var bytes = wire
            // A client that does not decode it gets the broken body, and stores it for all.
            if request.headers["Accept-Encoding"] == nil { bytes[bytes.count - 5] ^= 1 }
            return OriginResponse(
                200, headers: ["Cache-Control": "max-age=600", "Content-Encoding": "gzip"], body: .bytes(bytes)
            )
        }
        try await with(origin) { origin, directory in
            _ = try await get("-o", "wire", origin.url("/"), in: directory)
            for _ in 0..<2 {
                let run = try await get("--compressed", "-o", "file", origin.url("/"), in: directory)
                #expect(run.status == 0, "\(run.errors)")
                #expect(OutputFile.bytes(of: directory.appending("file")) == pattern(100_000))
            }
            #expect(origin.requests.count == 2)
        }
    }

    @Test("Progress counts all bytes of a file from the cache")
    func progress() async throws {
        try await with(OriginHandler { _ in CacheOptionTests.fresh(400_000) }) { origin, directory in
            _ = try await get(origin.url("/"), in: directory)
            let run = try await Program.run(
                ["--cache", "cache", "--progress", "json", "-o", "file", origin.url("/")], in: directory)
            #expect(run.status == 0, "\(run.errors)")
            let last = try #require(run.errors.split(separator: "\n").last)
            #expect(
                last.contains("\"event\":\"finish\"") && last.contains("\"bytes\":400000,\"total\":400000,"))
            #expect(OutputFile.bytes(of: directory.appending("file")) == pattern(400_000))
            #expect(origin.requests.count == 1)
        }
    }

    @Test("Two processes use one directory concurrently, and every body is correct")
    func processes() async throws {
        try await with(
            OriginHandler { request in
                let number = Int(request.path.dropFirst()) ?? 0
                return CacheOptionTests.fresh(UInt64(1000 + number * 9000))
            }
        ) { origin, directory in
            var arguments = ["-sS", "--cache", "cache", "--create-dirs"]
            for turn in 0..<20 {
                for number in 0..<10 {
                    arguments += ["-o", "OUT/\(turn)-\(number)", origin.url("/\(number)")]
                }
            }
            let runs = try await withThrowingTaskGroup(of: Program.Run.self) { group in
                for name in ["a", "b"] {
                    let words = arguments.map { $0.replacingOccurrences(of: "OUT/", with: "\(name)/") }
                    group.addTask { try await Program.run(words, in: directory) }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(runs.allSatisfy { $0.status == 0 && $0.errors.isEmpty }, "\(runs.map(\.errors))")
            for name in ["a", "b"] {
                for number in 0..<10 {
                    let right = pattern(1000 + number * 9000)
                    for turn in 0..<20 {
                        let file = directory.appending("\(name)/\(turn)-\(number)")
                        #expect(OutputFile.bytes(of: file) == right)
                    }
                }
            }
            #expect((10...20).contains(origin.requests.count), "\(origin.requests.count)")
            let verified = try await Program.run(["cache", "verify", "--cache", "cache"], in: directory)
            #expect(verified.status == 0, "\(verified.text)\(verified.errors)")
        }
    }

    @Test("Option groups with the same directory share its cache")
    func groups() async throws {
        try await with(OriginHandler { _ in CacheOptionTests.fresh(10) }) { origin, directory in
            let run = try await get(
                origin.url("/"), "--next", "--cache", "./cache", origin.url("/"), "--next", origin.url("/"),
                in: directory)
            #expect(run.status == 0 && run.output == pattern(10) + pattern(10) + pattern(10))
            #expect(origin.requests.count == 2)
        }
    }

    @Test("With -k no response is stored, and no stored one is printed")
    func insecure() async throws {
        try await with(OriginHandler { _ in CacheOptionTests.fresh(10) }) { origin, directory in
            _ = try await get("-k", origin.url("/"), in: directory)
            _ = try await get(origin.url("/"), in: directory)
            #expect(origin.requests.count == 2)
            _ = try await get("-k", origin.url("/"), in: directory)
            #expect(origin.requests.count == 3)
        }
    }

    @Test(
        "A retry uses the network, and with -k its response is not stored either",
        arguments: [false, true])
    func retried(_ isInsecure: Bool) async throws {
        let count = Mutex(0)
        let handler = OriginHandler { _ in
            let isFirst = count.withLock { count in
                count += 1
                return count == 1
            }
            var answer = CacheOptionTests.fresh(10)
            if isFirst { answer.status = 503 }
            return answer
        }
        try await with(handler) { origin, directory in
            let options = ["--retry", "1", "--retry-delay", "1"] + (isInsecure ? ["-k"] : [])
            let run = try await Program.run(
                ["-sS", "-w", "%{http_code}", "-o", "/dev/null", "--cache", "cache"] + options + [
                    origin.url("/")
                ],
                in: directory)
            #expect(run.text == "200", "\(run.errors)")
            _ = try await get(origin.url("/"), in: directory)
            #expect(origin.requests.count == (isInsecure ? 3 : 2))
        }
    }

    @Test("A directory that others can access exits with 2, and nothing is sent")
    func openDirectory() async throws {
        try await with(OriginHandler { _ in CacheOptionTests.fresh(10) }) { origin, directory in
            let folder = try directory.makeDirectory("cache")
            try CacheScene.set([.posixPermissions: 0o755], of: folder)
            let run = try await get(origin.url("/"), in: directory)
            #expect(run.status == 2 && run.errors.hasPrefix("martlet: (2) option --cache: cache: "))
            #expect(run.errors.contains("chmod 700"))
            #expect(origin.connectionCount == 0)
        }
    }

    @Test("A response that is served stale is validated before the program ends")
    func revalidation() async throws {
        try await TestOrigin.withOrigin(.plain) { request in
            OriginResponse(
                200, headers: ["Cache-Control": "max-age=0, stale-while-revalidate=86400"],
                body: .text("connection \(request.connection.number)"))
        } run: { origin in
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            #expect(try await get(origin.url("/"), in: directory).text == "connection 1")
            let second = try await get("-v", origin.url("/"), in: directory)
            #expect(second.text == "connection 1" && !second.errors.contains("> GET"), "\(second.errors)")
            #expect(origin.requests.count == 2)
            #expect(try await get("--offline", origin.url("/"), in: directory).text == "connection 2")
        }
    }

    @Test("A log contains the cache decisions, and the timeline has one row for the cache")
    func pictures() async throws {
        try await with(OriginHandler { _ in CacheOptionTests.fresh(10) }) { origin, directory in
            let run = try await Program.run(
                [
                    "-sS", "--cache", "cache", "--har", "log", "--timeline", "-o", "a", "-o", "b",
                    origin.url("/"), origin.url("/"),
                ], in: directory, environment: ["LC_ALL=C"])
            #expect(run.status == 0, "\(run.errors)")
            let text = try Data(contentsOf: URL(fileURLWithPath: directory.appending("log")))
            let object = try JSONSerialization.jsonObject(with: text) as? [String: Any]
            let entries = try #require((object?["log"] as? [String: Any])?["entries"] as? [[String: Any]])
            let comments = entries.map { ($0["cache"] as? [String: String])?["comment"] ?? "" }
            #expect(comments.count == 2)
            #expect(comments.first?.hasPrefix("Cache-Status: martlet; fwd=uri-miss; ") == true)
            #expect(comments.last?.hasPrefix("Cache-Status: martlet; hit; ttl=") == true)
            #expect(entries.map { $0["serverIPAddress"] != nil } == [true, false])
            let rows = run.errors.split(separator: "\n").map { $0.split(separator: " ").first ?? "" }
            #expect(rows.suffix(2) == ["GET", "cache"], "\(run.errors)")
        }
    }
}
