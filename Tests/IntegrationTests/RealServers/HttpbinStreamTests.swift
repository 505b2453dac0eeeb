import Martlet
import Testing

@Suite("Streams, delays and codings of httpbin", .timeLimit(.minutes(20)))
struct HttpbinStreamTests {
    @Test("A stream of JSON lines is read line by line", arguments: [1, 20, 100])
    func lines(_ count: Int) async throws {
        try await HttpbinServer.withServer { server in
            let request = try HTTPRequest(method: .get, url: server.url("/stream/\(count)"))
            let numbers = try await HTTPSession.plain().stream(request) { response, body in
                #expect(response.headers[.transferEncoding] == "chunked")
                var numbers: [Int] = []
                for try await line in body.lines {
                    let number = try #require(line.firstMatch(of: /"id": (\d+)/)?.1)
                    numbers.append(try #require(Int(number)))
                }
                return numbers
            }
            #expect(numbers == Array(0..<count))
        }
    }

    @Test("A chunked body has the same bytes as an unchunked one")
    func bytes() async throws {
        try await HttpbinServer.withServer { server in
            let session = HTTPSession.plain()
            for size in [0, 1, 1_000, 102_400] {
                let chunked = try await session.get(
                    server.url("/stream-bytes/\(size)?seed=7&chunk_size=\(max(1, size / 9))"))
                let whole = try await session.get(server.url("/bytes/\(size)?seed=7"))
                #expect(chunked.body == whole.body)
                #expect(whole.body.count == size)
            }
        }
    }

    @Test("Bytes arrive one by one, and a timeout ends a body that is too slow")
    func drip() async throws {
        try await HttpbinServer.withServer { server in
            let session = HTTPSession.plain()
            let answer = try await session.get(
                server.url("/drip?duration=1&numbytes=10&delay=0.2&code=203"))
            #expect(answer.statusCode == 203)
            #expect(answer.text == "**********")
            #expect(answer.metrics.total >= .seconds(1))
            // The second byte is sent long after the timeout. A slow machine may miss the first one: then a longer
            // timeout and delay are used.
            var milliseconds = 500
            while true {
                var timeouts = Timeouts.patient
                timeouts.idle = .milliseconds(milliseconds)
                let seconds = 12 * milliseconds / 1000
                let result = await Result.of {
                    try await session.get(
                        server.url("/drip?duration=\(seconds)&numbytes=2"),
                        options: RequestOptions(timeouts: timeouts))
                }
                if case .failure(let error) = result {
                    #expect((error as? HTTPError)?.timeout == .idle, "\(error)")
                    if (error as? HTTPError)?.exchange?.text == "*" { break }
                }
                milliseconds *= 3
                try #require(milliseconds < 50_000, "no clock ran out between two drops: \(result)")
            }
        }
    }

    @Test("Ranges are parts of the alphabet, and one past the end gets 416")
    func ranges() async throws {
        try await HttpbinServer.withServer { server in
            let session = HTTPSession.plain()
            let url = server.url("/range/1000?chunk_size=37")
            let alphabet = Array("abcdefghijklmnopqrstuvwxyz".utf8)
            let whole = try await session.get(url)
            #expect(whole.statusCode == 200)
            #expect(whole.body == (0..<1_000).map { alphabet[$0 % 26] })
            for (field, range) in [
                ("10-19", 10..<20), ("-5", 995..<1_000), ("990-", 990..<1_000), ("0-0", 0..<1),
            ] {
                let part = try await session.get(url, headers: [.range: "bytes=\(field)"])
                #expect(part.statusCode == 206)
                #expect(part.body == Array(whole.body[range]))
                #expect(
                    part.headers[.contentRange]
                        == "bytes \(range.lowerBound)-\(range.upperBound - 1)/1000")
            }
            let outside = try await session.get(url, headers: [.range: "bytes=1000-"])
            #expect(outside.statusCode == 416 && outside.body.isEmpty)
        }
    }

    @Test(
        "A delayed response is received within the timeout, by every method",
        arguments: ["GET", "POST", "DELETE"])
    func delay(_ name: String) async throws {
        let method = try #require(HTTPRequest.Method(name))
        try await HttpbinServer.withServer { server in
            let session = HTTPSession.plain()
            let answer = try await session.send(HTTPRequest(method: method, url: server.url("/delay/0.5")))
            #expect(answer.statusCode == 200)
            #expect(answer.metrics.firstByte ?? .zero >= .milliseconds(500))
            var timeouts = Timeouts.patient
            timeouts.head = .milliseconds(300)
            // A stalled machine sees the response and the timeout together, and may accept the response.
            for tries in 1... {
                let result = await Result.of {
                    try await session.send(
                        HTTPRequest(method: method, url: server.url("/delay/3")),
                        options: RequestOptions(timeouts: timeouts))
                }
                if case .failure(let error) = result {
                    let error = try #require(error as? HTTPError)
                    #expect(error.code == .timedOut && error.timeout == .head)
                    break
                }
                #expect(try result.get().metrics.firstByte ?? .zero >= .seconds(3))
                try #require(tries < 10, "no clock ran out before the answer")
            }
            // A late response is not taken for the next one.
            #expect(try await session.get(server.url("/get?next")).httpbin.url == server.url("/get?next"))
        }
    }

    @Test("gzip and deflate are decoded, unless decoding is disabled")
    func codings() async throws {
        try await HttpbinServer.withServer { server in
            let session = HTTPSession.plain()
            let gzip = try await session.get(server.url("/gzip"))
            #expect(try gzip.httpbin.gzipped == true)
            #expect(gzip.headers[.contentEncoding] == "gzip")
            #expect(try await session.get(server.url("/deflate")).httpbin.deflated == true)
            let options = RequestOptions(decompresses: false)
            let raw = try await session.get(server.url("/gzip"), options: options)
            #expect(raw.body.starts(with: [0x1f, 0x8b]))
        }
    }

    @Test("Brotli that was not requested is decoded if built in, and else left encoded")
    func brotli() async throws {
        try await HttpbinServer.withServer { server in
            let answer = try await HTTPSession.plain().get(server.url("/brotli"))
            #expect(answer.headers[.contentEncoding] == "br")
            #if Brotli
                #expect(try answer.httpbin.brotli == true)
            #else
                #expect(answer.headers[.contentLength] == "\(answer.body.count)")
                #expect(!answer.text.contains("brotli\": true"))
            #endif
        }
    }

    @Test("A multipart form arrives part by part")
    func multipart() async throws {
        try await HttpbinServer.withServer { server in
            let body = HTTPBody.multipart { form in
                form.field("title", "Sëa \"blue\"")
                form.data("photo", Array("\r\n--feathers\r\n".utf8), filename: "a \"b\".txt")
            }
            let report = try await HTTPSession.plain().post(server.url("/post"), body: body).httpbin
            #expect(report.form == ["title": "Sëa \"blue\""])
            #expect(report.files == ["photo": "\r\n--feathers\r\n"])
        }
    }
}
