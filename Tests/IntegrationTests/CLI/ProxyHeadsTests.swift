import MartletConditions
import MartletTesting
import Testing

@Suite("Heads before the final response, compared with curl")
struct ProxyHeadsTests {
    /// A connection through a proxy, and the proxy's response to each request on one connection.
    struct Way: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let arguments: [String]
        let answers: [String]

        init(_ name: String, _ arguments: [String], _ answers: String...) {
            testDescription = name
            self.arguments = arguments
            self.answers = answers
        }

        var script: ServerScript {
            ServerScript(answers.flatMap { [.expectRequestHead, .send($0)] } + [.awaitClose])
        }
    }

    static let challenge =
        "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 3\r\n\r\nno!"
    static let tunnel = "HTTP/1.1 200 Fine indeed\r\nVia: p\r\n\r\n"
    static let answer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"
    static let rejection = "HTTP/1.1 403 Never\r\nContent-Length: 5\r\nX: y\r\n\r\nnever"
    static let anyone = ["-U", "me:secret", "--proxy-anyauth"]

    static let ways = [
        Way("a tunnel", ["-p"], tunnel, answer),
        Way("a tunnel with credentials", ["-p"] + anyone, challenge, tunnel, answer),
        Way("a rejected tunnel", ["-p"], rejection),
        Way("a tunnel that is rejected after a challenge", ["-p"] + anyone, challenge, rejection),
        Way("a tunnel without credentials", ["-p"], challenge),
        Way("a plain request with credentials", anyone, challenge, answer),
    ]

    @Test("-i, -D and -w print the proxy's earlier responses, as curl does", arguments: ways)
    func shown(_ way: Way) async throws {
        let told =
            "%{http_connect} %{http_code} %{size_header} %{size_download} %{remote_ip} %{remote_port} %{local_ip} "
            + "%{scheme} %{num_headers}\\n"
        for form in [["-i"], ["-D", "-", "-o", "/dev/null"], []] {
            try await TestOrigin.withOrigin(scripts: way.script, way.script) { proxy in
                let arguments =
                    ["-q", "-sS", "-x", "127.0.0.1:\(proxy.port)", "-w", told] + form + way.arguments
                    + ["http://origin.test/"]
                let ours = try await Program.run(arguments)
                let theirs = try await Program.run("curl", arguments, input: [], in: nil)
                #expect(ours.text == theirs.text, "\(form): \(ours.errors)")
                #expect(ours.status == theirs.status)
            }
        }
    }

    @Test("-v prints the heads in their order, with or without a final response", arguments: [ways[1], ways[3]])
    func verbose(_ way: Way) async throws {
        try await TestOrigin.withOrigin(scripts: way.script) { proxy in
            let run = try await Program.run(
                ["-q", "-sSv", "-x", "127.0.0.1:\(proxy.port)"] + way.arguments + ["http://origin.test/"])
            let lines = run.errors.split(separator: "\n").filter {
                $0.hasPrefix("< HTTP") || $0.hasPrefix("> GET")
            }
            let last =
                way.answers.count == 3
                ? ["< HTTP/1.1 200 Fine indeed", "> GET / HTTP/1.1", "< HTTP/1.1 200 OK"]
                : ["< HTTP/1.1 403 Never"]
            #expect(lines.map(String.init) == ["< HTTP/1.1 407 Who"] + last, "\(run.errors)")
            #expect(!run.errors.contains("bWU6c2VjcmV0"))
        }
    }

    @Test("-v prints an interim head when it arrives, once, and after the heads before it")
    func interim() async throws {
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"),
            .expectRequestHead, .send("HTTP/1.1 102 Processing\r\n\r\n"),
            .send("HTTP/1.1 103 Early Hints\r\nSet-Cookie: a=s3cret\r\n\r\n"), .await("seen"), .send(Self.answer),
            .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let run = try await Program.run(["-q", "-sSvL", origin.url("/a")]) { program in
                try await program.waitForErrors("< Set-Cookie: ***")
                origin.signals.raise("seen")
            }
            let lines = run.errors.split(separator: "\n").filter { line in
                ["*", "> GET", "< HTTP"].contains { line.hasPrefix($0) }
            }
            let expected = [
                "* Connected to \(origin.address)", "> GET /a", "< HTTP/1.1 302 Found", "* Re-using the connection",
                "> GET /b", "< HTTP/1.1 102 Processing", "< HTTP/1.1 103 Early Hints", "< HTTP/1.1 200 OK",
            ]
            #expect(
                lines.count == expected.count && zip(lines, expected).allSatisfy { $0.hasPrefix($1) }, "\(run.errors)")
            #expect(run.text == "x" && !run.errors.contains("s3cret"))
        }
    }

    @Test("A 417 that leads to a second request is printed before the final response")
    func expectation() async throws {
        let rejected = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 417 No\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno!"),
            .awaitClose)
        let taken = ServerScript(.expectRequestHead, .readBody(3), .send(Self.answer), .awaitClose)
        try await TestOrigin.withOrigin(scripts: rejected, taken) { origin in
            let run = try await Program.run(
                "-q", "-sSi", "-H", "Expect: 100-continue", "-d", "abc", origin.url())
            let expected =
                "HTTP/1.1 417 No\r\nContent-Length: 3\r\nConnection: close\r\n\r\n" + Self.answer
            #expect(run.status == 0 && run.text == expected, "\(run.errors)")
        }
    }

    @Test("A server that sends only a 100 has sent no reply: exit code 52, as in curl")
    func interimAlone() async throws {
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 100 Continue\r\n\r\n"), .close)
        try await TestOrigin.withOrigin(scripts: script, script) { origin in
            let arguments = ["-q", "-sS", origin.url()]
            let ours = try await Program.run(arguments)
            let theirs = try await Program.run("curl", arguments, input: [], in: nil)
            #expect(ours.status == 52 && theirs.status == 52, "\(ours.errors) \(theirs.errors)")
        }
    }
}
