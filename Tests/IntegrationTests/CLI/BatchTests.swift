import MartletContent
import Foundation
import MartletTesting
import Synchronization
import Testing

@Suite("Protocol of martlet batch")
struct BatchTests {
    private func withRoutes(_ body: (TestOrigin) async throws -> Void) async throws {
        try await TestOrigin.withOrigin(.plain, handler: StandardRoutes().handler, run: body)
    }

    @Test("A reply has the number, the status, the fields in order, the body and the times")
    func reply() async throws {
        let answer =
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 Fine so far\r\nSet-Cookie: a=1\r\nX-B: \u{e9}\r\n"
            + "Set-Cookie: b=2\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na\u{0}b\r\n0\r\nX-T: t\r\n\r\n"
        let script = ServerScript(
            .expectRequestHead, .send(answer.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }),
            .awaitClose)
        try await TestOrigin.withOrigin(.plain, scripts: script) { origin in
            let reply = try #require(
                try await Program.batch(["{\"seq\":7,\"op\":\"fetch\",\"url\":\"\(origin.url("/"))\"}"]).first
            )
            #expect(reply.number == 7 && reply.isOK == true && reply.status == 200, "\(reply.message)")
            #expect(reply.members["reason"] as? String == "Fine so far")
            #expect(
                reply.members["headers"] as? [[String]] == [
                    ["Set-Cookie", "a=1"], ["X-B", "\u{e9}"], ["Set-Cookie", "b=2"],
                    ["Transfer-Encoding", "chunked"],
                ])
            #expect(reply.body == "a\u{0}b")
            #expect(reply.members["url"] as? String == origin.url("/"))
            #expect(reply.members["trailers"] as? [[String]] == [["X-T", "t"]])
            #expect(reply.members["source"] as? String == "network")
            let interim = try #require((reply.members["interim"] as? [[Any]])?.first)
            #expect(interim[0] as? Int == 103)
            #expect(interim[1] as? [[String]] == [["Link", "</a>"]])
            let timing = try #require(reply.members["timing"] as? [String: Any])
            #expect(Set(timing.keys) == ["dns", "connect", "tls", "first_byte", "total"])
            #expect((timing["total"] as? Double ?? 0) >= (timing["first_byte"] as? Double ?? 1e9))
        }
    }

    @Test("A field value that is not UTF-8 is printed byte by byte")
    func rawValue() async throws {
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), .awaitClose)
        try await TestOrigin.withOrigin(.plain, scripts: script) { origin in
            let reply = try #require(
                try await Program.batch([
                    "{\"seq\":1,\"url\":\"\(origin.url("/"))\",\"headers\":[[\"X-A\",\"a\\u00e4b\"]]}"
                ]).first)
            #expect(reply.isOK == true, "\(reply.message)")
            let sent = origin.recorder.transcript(ofConnection: 1)
            let line = Array("X-A: a".utf8) + [0xE4, 0x62, 13, 10]
            #expect(sent.indices.contains { sent[$0...].starts(with: line) })
        }
    }

    @Test("The request is sent as specified")
    func request() async throws {
        try await withRoutes { origin in
            let replies = try await Program.batch([
                """
                {"seq":1,"url":"\(origin.url("/echo"))","method":"PROPFIND","headers":[["X-A","1"],["accept",null],["x-a","2"],\
                ["User-Agent",null]],"body":"\\u00ff\\u0000","redirect":"manual","auth":null,"cookie_jar":false,"proxy":null,\
                "retry":0,"cache":"none","timeout_ms":300000,"max_body":100000,"decompress":false,"path_as_is":true,\
                "max_redirects":5,"keep_method":[],"proxytunnel":false,"trusted_redirect":false,"connect_to":[],"ca_file":null}
                """,
                "{\"seq\":2,\"url\":\"\(origin.url("/echo"))\",\"http_version\":\"1.0\",\"method\":\"POST\",\"body\":\"\"}",
            ])
            let first = try #require(replies.first { $0.number == 1 })
            let report = try JSONDecoder().decode(
                EchoReport.self, from: Data((first.body ?? first.message).utf8))
            #expect(report.method == "PROPFIND" && report.bodyBase64 == "/wA=")
            #expect(
                report.headers == [
                    ["Host", origin.address], ["X-A", "1"], ["x-a", "2"], ["Content-Length", "2"],
                ])
            let second = try #require(replies.first { $0.number == 2 })
            let old = try JSONDecoder().decode(
                EchoReport.self, from: Data((second.body ?? second.message).utf8))
            #expect(old.version == "1.0" && old.header("content-length") == "0")
        }
    }

    @Test("Every byte of a body is a character up to U+00FF, in both directions")
    func latin1() async throws {
        try await withRoutes { origin in
            let bytes = (0...255).map { "\\u00" + String($0 + 256, radix: 16).suffix(2) }.joined()
            let replies = try await Program.batch([
                "{\"seq\":1,\"url\":\"\(origin.url("/mirror"))\",\"method\":\"POST\",\"body\":\"\(bytes)\"}"
            ])
            let body = try #require(replies.first?.body)
            #expect(body.unicodeScalars.map(\.value) == (0...255).map { UInt32($0) })
        }
    }

    @Test(
        "Each server error has its own kind",
        arguments: [
            ("", "empty"), ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", "truncated"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", "truncated"),
            ("HTTP/1.1 200 OK\r\nContent-", "truncated"), ("SSH-2.0-x\r\n", "protocol"),
            ("HTTP/1.1 099 x\r\n\r\n", "protocol"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nab", "protocol"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n", "protocol"),
            ("HTTP/1.1 101 Switching\r\n\r\n", "protocol"),
            ("HTTP/1.1 200 OK\r\nX: \(String(repeating: "x", count: 70_000))\r\n\r\n", "protocol"),
            ("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnone", "decode"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", "too_large"),
            ("HTTP/1.1 200 OK\r\n\r\n\(String(repeating: "x", count: 1001))", "too_large"),
        ])
    func serverFaults(_ answer: String, _ kind: String) async throws {
        try await TestOrigin.withOrigin(.plain, scripts: .respond(answer)) { origin in
            let replies = try await Program.batch([
                "{\"seq\":1,\"url\":\"\(origin.url("/"))\",\"max_body\":1000,\"timeout_ms\":300000}"
            ])
            #expect(replies.first?.error == kind, "\(replies.first?.message ?? "no reply")")
            #expect(replies.first?.isOK == false)
        }
    }

    @Test(
        "Each request that cannot be sent has its own kind, and nothing is sent",
        arguments: [
            (#""url":"nonsense""#, "bad_url"), (#""url":"http://""#, "bad_url"),
            (#""url":"ftp://h/""#, "bad_url"),
            (#""method":"GET""#, "bad_url"),
            (#""url":"U","method":"A B""#, "other"), (#""url":"U","headers":[["A","b\r\nC: d"]]"#, "other"),
            (#""url":"U","headers":[["A B","c"]]"#, "other"), (#""url":"U","headers":[["A"]]"#, "other"),
            (#""url":"U","headers":{"A":"b"}"#, "other"), (#""url":"U","body":"\u0100""#, "other"),
            (#""url":"U","body":5"#, "other"), (#""url":"U","max_body":-1"#, "other"),
            (#""url":"U","timeout_ms":1.5"#, "other"), (#""url":"U","first":1"#, "other"),
            (#""url":"U","connect_to":["x"]"#, "other"),
            (#""url":"U","headers":[["Host","a"],["Host","b"]]"#, "other"),
            (#""url":"U","unknown":1"#, "unsupported"), (#""url":"U","op":"dance""#, "unsupported"),
            (#""url":"U","cache":"fresh""#, "unsupported"),
            (#""url":"U","cache":null"#, "other"),
            (#""url":"U","proxy":"http://127.0.0.1:1""#, "connect"),
            (#""url":"U","proxy":"socks4://127.0.0.1:1""#, "unsupported"),
            (#""url":"U","proxy_user":"a""#, "unsupported"),
            (#""url":"U","proxytunnel":1"#, "other"),
            (#""url":"U","http_version":"2""#, "unsupported"), (#""url":"http://127.0.0.1:1/""#, "connect"),
            (#""url":"http://no-such-host.invalid/""#, "connect"),
        ])
    func rejected(_ members: String, _ kind: String) async throws {
        try await withRoutes { origin in
            let line =
                "{\"seq\":3,\(members.replacingOccurrences(of: "\"U\"", with: "\"\(origin.url("/echo"))\""))}"
            let reply = try #require(try await Program.batch([line]).first)
            #expect(reply.number == 3)
            #expect(reply.error == kind, "\(reply.message)")
            #expect(origin.requests.isEmpty)
        }
    }

    @Test("A request with more header fields than HTTPFields can hold is rejected, and the next one is sent")
    func tooManyFields() async throws {
        try await withRoutes { origin in
            let url = origin.url("/echo")
            let fields = Array(repeating: "[\"X\",\"1\"]", count: 65_535).joined(separator: ",")
            let replies = try await Program.batch(
                [
                    "{\"seq\":1,\"url\":\"\(url)\",\"headers\":[\(fields)]}",
                    "{\"seq\":2,\"url\":\"\(url)\"}",
                ], "--parallel", "1")
            #expect(replies.map(\.error) == ["other", nil], "\(replies.map(\.message))")
            #expect(replies.last?.status == 200)
            #expect(origin.requests.count == 1)
        }
    }

    @Test(
        "A line that is not a request gets a reply without a number",
        arguments: [
            "junk", "{", "[]", "7", "{\"seq\":\"x\",\"url\":\"http://h/\"}", "{\"url\":\"http://h/\"}",
            "{\"seq\":1,\"seq\":2}", "{\"seq\":1}}", "{\"seq\":01}", "{\"seq\":1,\"url\":\"\\ud800\"}",
            String(repeating: "[", count: 100_000),
        ])
    func malformed(_ line: String) async throws {
        let reply = try #require(try await Program.batch([line]).first)
        #expect(reply.members["seq"] is NSNull)
        #expect(reply.error == "other")
    }

    @Test("Bytes that are not UTF-8 are rejected, and the next line is read")
    func notUTF8() async throws {
        let input =
            Array("{\"seq\":1,\"url\":\"".utf8) + [0xFF, 0xFE]
            + Array("\"}\n\r\n{\"seq\":2,\"op\":\"reset\"}".utf8)
        let run = try await Program.run(["batch"], input: input)
        #expect(run.status == 0)
        let lines = run.text.split(separator: "\n")
        #expect(lines.count == 2)
        #expect(lines.contains("{\"seq\":2,\"ok\":true}"))
    }

    @Test("A timeout is reported as a timeout")
    func timeout() async throws {
        try await withRoutes { origin in
            let replies = try await Program.batch([
                "{\"seq\":1,\"url\":\"\(origin.url("/stall"))\",\"timeout_ms\":300}"
            ])
            #expect(replies.map(\.error) == ["timeout"])
        }
    }

    @Test("Replies are printed as they finish: a slow request delays no other")
    func order() async throws {
        // The slow response waits for the reply to the other request.
        let answered = Gate()
        try await TestOrigin.withOrigin(.plain) { request in
            guard request.path == "/slow" else { return .text("fast") }
            await answered.pass()
            return .text("slow")
        } run: { origin in
            defer { answered.open() }
            let replies = try await Program.batch([
                "{\"seq\":1,\"url\":\"\(origin.url("/slow"))\"}",
                "{\"seq\":2,\"url\":\"\(origin.url("/fast"))\"}",
            ]) { running in
                try await running.waitForOutput("\"seq\":2")
                answered.open()
            }
            #expect(replies.map(\.body) == ["fast", "slow"])
            #expect(replies.map(\.number) == [2, 1])
        }
    }

    @Test("--parallel limits the number of concurrent requests")
    func parallel() async throws {
        let load = Mutex((came: 0, present: 0, most: 0))
        // The server responds once three requests have arrived.
        let three = Gate()
        try await TestOrigin.withOrigin(.plain) { _ in
            let came = load.withLock { load in
                load.came += 1
                load.present += 1
                load.most = max(load.most, load.present)
                return load.came
            }
            if came == 3 { three.open() }
            await three.pass()
            load.withLock { $0.present -= 1 }
            return .text("x")
        } run: { origin in
            defer { three.open() }
            let lines = (0..<12).map { "{\"seq\":\($0),\"url\":\"\(origin.url("/"))\"}" }
            let replies = try await Program.batch(lines, "--parallel", "3")
            #expect(Set(replies.compactMap(\.number)) == Set(0..<12))
            #expect(load.withLock { $0.most } == 3)
            #expect(origin.connectionCount == 3)
        }
    }

    @Test("first and reset start a clean session; stats counts")
    func clean() async throws {
        try await withRoutes { origin in
            let url = origin.url("/json")
            let replies = try await Program.batch(
                [
                    "{\"seq\":1,\"url\":\"\(url)\"}", "{\"seq\":2,\"url\":\"\(url)\"}",
                    "{\"seq\":3,\"op\":\"stats\"}",
                    "{\"seq\":4,\"url\":\"\(url)\",\"first\":true}", "{\"seq\":5,\"op\":\"reset\"}",
                    "{\"seq\":6,\"url\":\"\(url)\"}",
                ], "--parallel", "1")
            try #require(replies.map(\.isOK) == Array(repeating: true, count: 6))
            #expect(origin.connectionCount == 3)
            let pool = try #require(replies[2].members["pool"] as? [String: Int])
            #expect(pool["opened"] == 1 && pool["reused"] == 1 && pool["idle"] == 1)
            #expect((replies[2].members["descriptors"] as? Int ?? 0) > 3)
        }
    }

    @Test("connect_to and ca_file set the address and the trust, and share connections")
    func connection() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await TestOrigin.withOrigin(.tls(.trusted), handler: .echo) { origin in
            try directory.write(origin.authorityPEM ?? "", to: "ca.pem")
            let members =
                "\"url\":\"https://localhost:1/\",\"ca_file\":\"\(directory.appending("ca.pem"))\","
                + "\"connect_to\":[\"localhost:1:127.0.0.1:\(origin.port)\"]"
            let replies = try await Program.batch(
                [
                    "{\"seq\":1,\(members)}", "{\"seq\":2,\(members)}",
                    "{\"seq\":3,\"url\":\"\(origin.url("/"))\"}",
                ],
                "--parallel", "1")
            #expect(replies.map(\.status) == [200, 200, nil], "\(replies.map(\.message))")
            #expect(replies.last?.error == "tls")
            #expect(origin.requests.map(\.connection.number) == [1, 1])
        }
    }

    @Test("Ten thousand requests from a pipe all get a reply, each once")
    func many() async throws {
        try await withRoutes { origin in
            let url = origin.url("/bytes/10")
            let replies = try await Program.batch((0..<10_000).map { "{\"seq\":\($0),\"url\":\"\(url)\"}" })
            #expect(replies.count == 10_000)
            #expect(replies.allSatisfy { $0.status == 200 && $0.body?.unicodeScalars.count == 10 })
            #expect(Set(replies.compactMap(\.number)).count == 10_000)
            #expect(origin.connectionCount <= 64)
        }
    }

    @Test("A line of more than a mebibyte is read, and its body is sent")
    func longLine() async throws {
        try await withRoutes { origin in
            let body = String(repeating: "abcdefgh", count: 1 << 18)
            let replies = try await Program.batch([
                "{\"seq\":1,\"url\":\"\(origin.url("/mirror"))\",\"method\":\"PUT\",\"body\":\"\(body)\"}"
            ])
            #expect(replies.first?.body == body)
        }
    }
}
