import MartletCredentials
import Foundation
import MartletTesting
import Testing

@Suite("Redirects, credentials, cookies, retries and logs of get")
struct GetPolicyTests {
    private func withRoutes(_ body: (TestOrigin) async throws -> Void) async throws {
        try await TestOrigin.withOrigin(.plain, handler: StandardRoutes().handler, run: body)
    }

    @Test("No secret is sent to another origin, except with --location-trusted")
    func foreignOrigin() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await TestOrigin.withOrigin(.plain, handler: .fixed(.text("x"))) { other in
            let location = other.url("/there")
            try await TestOrigin.withOrigin(.plain) { _ in
                .redirect(to: location)
            } run: { origin in
                let secrets = ["-u", "me:s3cret", "-b", "k=s3cret", "-H", "Proxy-Authorization: s3cret"]
                for arguments in [secrets, ["-H", "Authorization: s3cret"], ["--oauth2-bearer", "s3cret"]] {
                    let run = try await Program.run(["-sS", "-L"] + arguments + [origin.url("/")])
                    #expect(run.status == 0 && run.text == "x", "\(run.errors)")
                }
                let sent = other.requests.flatMap { request in
                    [request.target] + request.headers.map { "\($0.name): \($0.value)" }
                }
                #expect(other.requests.count == 3)
                #expect(
                    !sent.contains {
                        $0.contains("s3cret") || $0.contains("czNjcmV0") || $0.contains("Authorization")
                    })
                let trusted = try await Program.run(
                    "-sS", "--location-trusted", "-u", "me:s3cret", origin.url("/"))
                #expect(trusted.status == 0)
                #expect(
                    other.requests.last?.headers.values(of: "Authorization") == ["Basic bWU6czNjcmV0"])
            }
        }
    }

    @Test("The list of processes does not show credentials")
    func processTitle() async throws {
        try await TestOrigin.withOrigin(.plain) { request in
            let folders = try FileManager.default.contentsOfDirectory(atPath: "/proc")
            for folder in folders where Int(folder) != nil {
                guard let bytes = FileManager.default.contents(atPath: "/proc/\(folder)/cmdline") else {
                    continue
                }
                let words = bytes.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
                guard words.first?.hasSuffix("/martlet") == true, words.last?.hasSuffix(request.path) == true
                else { continue }
                return .text(words.dropFirst().joined(separator: " "))
            }
            return .text("not found", status: 404)
        } run: { origin in
            let path = "/\(UUID().uuidString)"
            let run = try await Program.run(
                "-sS", "-ume:s3cret", "-H", "Cookie: s3cret", "-H", "Authorization:\u{301}t0ken", "-b",
                "k=s3cret", "--pass", "s3cret",
                "http://you:s3cret@\(origin.address)\(path)")
            #expect(run.status == 0, "\(run.errors)")
            let stars = { String(repeating: "*", count: $0) }
            #expect(
                run.text
                    == "-sS -u\(stars(9)) -H Cookie:\(stars(7)) -H Authorization:\(stars(7)) -b \(stars(8)) --pass \(stars(6))"
                    + " http://\(stars(10))@\(origin.address)\(path)")
        }
    }

    @Test("-v prints each request of a redirect chain without secrets")
    func verbose() async throws {
        try await withRoutes { origin in
            let run = try await Program.run("-sSv", "-L", "-u", "me:s3cret", origin.url("/redirect/1"))
            let lines = run.errors.split(separator: "\n").map(String.init)
            #expect(
                lines.filter { $0.hasPrefix("> GET") } == [
                    "> GET /redirect/1 HTTP/1.1", "> GET /redirect/0 HTTP/1.1",
                ])
            #expect(
                lines.filter { $0.hasPrefix("< HTTP") } == ["< HTTP/1.1 302 Found", "< HTTP/1.1 200 OK"])
            #expect(lines.filter { $0 == "> Authorization: ***" }.count == 2)
            #expect(!run.errors.contains("s3cret") && !run.errors.contains("czNjcmV0"))
        }
    }

    @Test("-c writes the cookies of all transfers, readable by the owner only, and keeps special files")
    func cookieJar() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await TestOrigin.withOrigin(.plain) { request in
            .text("x").with { $0.headers.append("Set-Cookie", "c\(request.path.dropFirst())=v; Path=/") }
        } run: { origin in
            let jar = directory.appending("jar")
            let run = try await Program.run("-sS", "-c", jar, origin.url("/1"), origin.url("/2"))
            #expect(run.status == 0, "\(run.errors)")
            let text = OutputFile.contents(of: jar)
            #expect(text.contains("\tc1\tv\n") && text.contains("\tc2\tv\n"))
            let mode = try FileManager.default.attributesOfItem(atPath: jar)[.posixPermissions] as? Int
            #expect(mode == 0o600)
            let shown = try await Program.run("-sS", "-b", jar, "-c", "-", origin.url("/3"))
            #expect(
                shown.text.hasPrefix("x") && shown.text.contains("\tc1\tv\n")
                    && shown.text.contains("\tc3\tv\n"))
            #expect(origin.requests.last?.headers.values(of: "Cookie") == ["c1=v; c2=v"])
            let none = try await Program.run("-sS", "-c", "/dev/null", origin.url("/4"))
            #expect(none.status == 0 && none.errors.isEmpty)
            let type =
                try FileManager.default.attributesOfItem(atPath: "/dev/null")[.type] as? FileAttributeType
            #expect(type == .typeCharacterSpecial)
            let failed = try await Program.run("-sS", "-c", "/no/such/folder/jar", origin.url("/5"))
            #expect(failed.status == 0 && failed.errors.contains("could not save cookies"))
        }
    }

    @Test("A transient failure is retried, and a file has only the last response")
    func retry() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await TestOrigin.withOrigin(.plain) { request in
            request.number < 3 ? .text("a longer answer", status: 503) : .text("x")
        } run: { origin in
            let run = try await Program.run(
                [
                    "-sS", "--retry", "3", "--retry-delay", "0.01", "-o", "out", "-w", "%{http_code}",
                    origin.url("/"),
                ],
                in: directory)
            #expect(run.status == 0 && run.text == "200", "\(run.errors)")
            #expect(OutputFile.contents(of: directory.appending("out")) == "x")
            #expect(origin.requests.count == 3)
        }
    }

    @Test("A permanent failure is retried only on request")
    func noRetry() async throws {
        try await TestOrigin.withOrigin(.plain, handler: .fixed(.text("x", status: 404))) { origin in
            let run = try await Program.run("-sS", "--retry", "3", "-f", origin.url("/"))
            #expect(run.status == 22)
            #expect(origin.requests.count == 1)
            let all = try await Program.run(
                "-sS", "--retry", "2", "--retry-delay", "0.01", "--retry-all-errors", "-m", "300",
                "http://127.0.0.1:1/")
            #expect(all.status == 7)
            let limited = try await Program.run(
                "-S", "--progress", "none", "--retry", "9", "--retry-delay", "5", "--retry-max-time", "1",
                "--retry-connrefused", "http://127.0.0.1:1/")
            #expect(limited.status == 7)
            #expect(!limited.errors.contains("retrying"))
        }
    }

    @Test("-J uses a safe form of the proposed name, and never overwrites a file")
    func proposedName() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await TestOrigin.withOrigin(.plain) { request in
            request.path == "/plain"
                ? .text("x")
                : .text("x").with {
                    $0.headers.append("Content-Disposition", "attachment; filename=\"../../up.txt\"")
                }
        } run: { origin in
            let first = try await Program.run(
                ["-sS", "-OJ", "-w", "%{filename_effective}", origin.url("/")], in: directory)
            #expect(first.status == 0 && first.text == "up.txt", "\(first.errors)")
            #expect(OutputFile.contents(of: directory.appending("up.txt")) == "x")
            let second = try await Program.run(["-sS", "-OJ", origin.url("/a")], in: directory)
            #expect(second.status == 23, "\(second.errors)")
            let plain = try await Program.run(["-sS", "-OJ", origin.url("/plain")], in: directory)
            #expect(plain.status == 0, "\(plain.errors)")
            #expect(OutputFile.contents(of: directory.appending("plain")) == "x")
        }
    }

    @Test("--har writes a log of every request, with secrets masked")
    func har() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await withRoutes { origin in
            let run = try await Program.run(
                [
                    "-sS", "--har", "log.har", "-L", "-u", "me:s3cret", origin.url("/redirect/1"),
                    origin.url("/bytes/1500000"), "-o", "-", "-o", "large", "http://127.0.0.1:1/",
                ], in: directory)
            #expect(run.status == 7)
            let text = OutputFile.contents(of: directory.appending("log.har"))
            #expect(!text.contains("s3cret") && !text.contains("czNjcmV0"))
            let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
            let log = try #require(object?["log"] as? [String: Any])
            let entries = try #require(log["entries"] as? [[String: Any]])
            let statuses = entries.map { ($0["response"] as? [String: Any])?["status"] as? Int }
            #expect(statuses == [302, 200, 200, 0])
            #expect(entries.allSatisfy { ($0["time"] as? Double ?? 0) > 0 })
            let large = (entries[2]["response"] as? [String: Any])?["content"] as? [String: Any]
            #expect(large?["size"] as? Int == 1_500_000)
            let content = (entries[1]["response"] as? [String: Any])?["content"] as? [String: Any]
            #expect(content?["text"] as? String == "arrived\n")
        }
    }

    @Test("--timeline draws a row for each part within the width, in ASCII if the locale requires it")
    func timeline() async throws {
        try await withRoutes { origin in
            let run = try await Program.run(
                ["-sS", "--timeline", "-L", origin.url("/redirect/1")],
                environment: ["LC_ALL=C", "COLUMNS=60"])
            let lines = run.errors.split(separator: "\n").map(String.init)
            #expect(lines.first == "GET \(origin.url("/redirect/0")) 200")
            let labels = lines.dropFirst().map { $0.split(separator: " ").first.map(String.init) ?? "" }
            #expect(
                labels.first == "redirect" && labels.suffix(3) == ["send", "wait", "receive"], "\(run.errors)"
            )
            #expect(lines.dropFirst().allSatisfy { $0.count < 60 && $0.contains("#") && $0.hasSuffix(" ms") })
            #expect(run.errors.utf8.allSatisfy { $0 < 0x80 })
            #expect(run.text == "arrived\n")
        }
    }

    @Test("--lines writes whole lines, and terminates the last one")
    func lines() async throws {
        try await TestOrigin.withOrigin(.plain, handler: .fixed(.text("one\r\ntwo\n\nlast"))) { origin in
            let run = try await Program.run("-sS", "--lines", origin.url("/"))
            #expect(run.status == 0 && run.text == "one\ntwo\n\nlast\n", "\(run.errors)")
        }
        // Lines may have any encoding.
        try await TestOrigin.withOrigin(.plain, handler: .fixed(.bytes([0x63, 0xE9, 10, 0xFF]))) { origin in
            let run = try await Program.run("-sS", "--lines", origin.url("/"))
            #expect(run.output == [0x63, 0xE9, 10, 0xFF, 10], "\(run.errors)")
        }
    }

    @Test("--sse writes events as JSON, reconnects, and ends with a 204")
    func events() async throws {
        try await TestOrigin.withOrigin(.plain) { request in
            guard request.headers.values(of: "Last-Event-ID").isEmpty else { return OriginResponse(204) }
            let text = "retry: 100\n\ndata: a\ndata: b\n\nevent: tick\nid: 7\ndata: \"c\"\n\n"
            return OriginResponse(headers: ["Content-Type": "text/event-stream"], body: .text(text))
        } run: { origin in
            let run = try await Program.run("-sS", "--sse", origin.url("/"))
            #expect(run.status == 0, "\(run.errors)")
            #expect(
                run.text == """
                    {"event":"message","id":"","data":"a\\nb"}
                    {"event":"tick","id":"7","data":"\\"c\\""}

                    """)
            #expect(origin.requests.count == 2)
            let rejected = try await Program.run("-sS", "--sse", "-i", origin.url("/"))
            #expect(rejected.status == 2)
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let saved = try await Program.run(["--sse", "-o", "events", origin.url("/")], in: directory)
            #expect(saved.errors.hasPrefix("events: \(run.output.count) B in "), "\(saved.errors)")
        }
    }

    @Test("A given netrc file must exist and be valid")
    func netrc() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try directory.write("machine h password \"s3cret\n", to: "broken")
        for name in ["missing", "broken"] {
            let run = try await Program.run(
                ["-sS", "--netrc-file", name, "http://127.0.0.1:1/"], in: directory)
            #expect(run.status == 26)
            #expect(run.errors.contains(name) && !run.errors.contains("s3cret"), "\(run.errors)")
        }
    }

    @Test(
        "An invalid form exits with 2, and nothing is sent",
        arguments: [
            "a", "a=(;type=x/y", "a=b;type=plain", "a=@f,g", "a=b;headers=X: y", "a=b;encoder=base64",
        ])
    func form(_ part: String) async throws {
        let run = try await Program.run("-sS", "-F", part, "http://127.0.0.1:1/")
        #expect(run.status == 2, "\(run.errors)")
        let twice = try await Program.run("-sS", "-F", "a=b", "-d", "c", "http://127.0.0.1:1/")
        #expect(twice.status == 2)
    }
}
