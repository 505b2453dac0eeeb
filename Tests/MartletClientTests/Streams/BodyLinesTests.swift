import Martlet
import MartletTesting
import Testing

@Suite("Lines and events of a body", .timeLimit(.minutes(20)))
struct BodyLinesTests {
    @Test("Lines arrive as they are received, however the input is split")
    func lines() async throws {
        let script = ServerScript(
            .expectRequestHead,
            .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), .send("4\r\none\n\r\n"),
            .await("first line"), .send("2\r\ntw\r\n3\r\no\r\n\r\n5\r\nthree\r\n0\r\n\r\n"), .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            var found: [String] = []
            try await HTTPSession.own().stream(HTTPRequest(.get, origin)) { _, body in
                for try await line in body.lines {
                    if found.isEmpty { origin.signals.raise("first line") }
                    found.append(line)
                }
            }
            #expect(found == ["one", "two", "three"])
        }
    }

    @Test(
        "Lines are decoded with the response's charset, and a charset without line structure is an error",
        arguments: [
            ("text/plain; charset=iso-8859-1", [0xE4, 0x0A, 0x80], ["ä", "€"]),
            ("text/plain; charset=ISO-8859-15", [0xA4, 0x0D, 0x0A, 0x61], ["€", "a"]),
            ("text/plain; charset=utf-8", [0xC3, 0xA4, 0x0A, 0xE4], ["ä", "\u{FFFD}"]),
            ("text/plain", [0xC3, 0xA4, 0x0A], ["ä"]), ("nonsense", [0x61], ["a"]),
            ("text/plain; charset=latin1", [0xEF, 0xBB, 0xBF, 0xC3, 0xA4, 0x0A, 0xC3, 0xA4], ["ä", "ä"]),
            ("text/plain; charset=shift_jis", [0x83, 0x0A], nil),
            ("text/plain; charset=utf-16", [0x61, 0, 0x0A, 0], nil),
        ] as [(String, [UInt8], [String]?)])
    func charsets(_ type: String, _ bytes: [UInt8], _ expected: [String]?) async throws {
        try await TestOrigin.withOrigin(
            handler: .fixed(OriginResponse(headers: ["Content-Type": type], body: .bytes(bytes)))
        ) { origin in
            let session = HTTPSession.own()
            for isStream in [false, true] {
                do {
                    var found: [String] = []
                    if isStream {
                        for try await line in session.lines(from: origin.url()) { found.append(line) }
                    } else {
                        try await session.stream(origin.url()) { _, body in
                            for try await line in body.lines { found.append(line) }
                        }
                    }
                    #expect(found == expected)
                } catch let error as HTTPError {
                    #expect(expected == nil && error.code == .decodingFailed && error.url != nil)
                    #expect(error.underlying is ResponseDecodingError)
                }
            }
        }
    }

    @Test("A line above the limit is an error that contains the limit, and closes the connection")
    func tooLong() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("short\n" + String(repeating: "x", count: 100))
        } run: { origin in
            let session = HTTPSession.own()
            var found: [String] = []
            let error = await #expect(throws: HTTPError.self) {
                try await session.stream(HTTPRequest(.get, origin)) { _, body in
                    for try await line in body.lines(upTo: 50) { found.append(line) }
                }
            }
            #expect(error?.code == .limitExceeded)
            #expect(error?.message == "a line is longer than the limit of 50 bytes")
            #expect(found == ["short"])
        }
    }

    @Test("A body that is cut within a line is an error and not a short line")
    func cut() async throws {
        let script = ServerScript.respond("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\none\ntwo")
        try await TestOrigin.withOrigin(scripts: script) { origin in
            var found: [String] = []
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.own().stream(HTTPRequest(.get, origin)) { _, body in
                    for try await line in body.lines { found.append(line) }
                }
            }
            #expect(error?.code == .truncated)
            #expect(found == ["one"])
        }
    }

    @Test("Events of a body are parsed whatever its content type")
    func events() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("data: a\n\nevent: x\ndata: b\n\ndata: lost")
        } run: { origin in
            var found: [ServerSentEvent] = []
            try await HTTPSession.own().stream(HTTPRequest(.get, origin)) { _, body in
                for try await event in body.serverSentEvents { found.append(event) }
            }
            #expect(found == [ServerSentEvent(data: "a"), ServerSentEvent(event: "x", data: "b")])
        }
    }

    @Test("An event above the limit is an error")
    func eventTooLarge() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("data: abcdef\n\n")
        } run: { origin in
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.own().stream(HTTPRequest(.get, origin)) { _, body in
                    for try await _ in body.serverSentEvents(upTo: 5) {}
                }
            }
            #expect(error?.code == .limitExceeded)
        }
    }
}
