import FoundationEssentials
import Martlet
import MartletTesting
import Testing

@Suite("JSON lines", .timeLimit(.minutes(20)))
struct JSONLinesTests {
    struct Item: Codable, Equatable, Sendable {
        var id: Int
    }

    private struct Failing: Encodable {
        var id: Int
        func encode(to encoder: any Encoder) throws {
            guard id < 2 else {
                throw EncodingError.invalidValue(id, .init(codingPath: encoder.codingPath, debugDescription: "two"))
            }
            try ["id": id].encode(to: encoder)
        }
    }

    /// Reads all values, `nil` for an invalid line, and the error that ends the values.
    private func read(_ stream: ValueStream<Item>) async -> (ids: [Int?], messages: [String], end: HTTPError?) {
        var (ids, messages): ([Int?], [String]) = ([], [])
        var values = stream.makeAsyncIterator()
        while true {
            do {
                guard let value = try await values.next() else { return (ids, messages, nil) }
                ids.append(value.id)
            } catch let error as HTTPError where error.code == .decodingFailed {
                ids.append(nil)
                messages.append(error.message)
            } catch { return (ids, messages, error as? HTTPError) }
        }
    }

    @Test(
        "Lines are values; blank lines, a byte order mark and CR LF are accepted, and an invalid line is named",
        arguments: [
            ("{\"id\":1}\n{\"id\":2}\n", [1, 2], []), ("{\"id\":1}\r\n{\"id\":2}\r\n", [1, 2], []),
            ("{\"id\":1}\n{\"id\":2}", [1, 2], []), ("\u{FEFF}{\"id\":1}\n", [1], []), ("", [], []),
            ("\n\r\n \t\n{\"id\":1}\n\n", [1], []), ("\u{FEFF}", [], []),
            ("{\"id\":1}\n\n{\"id\":}\n{\"id\":4}\n", [1, nil, 4], [3]),
            ("{\"id\":\n1}\n{\"id\":2}", [nil, nil, 2], [1, 2]), ("null\n{}\n[1]", [nil, nil, nil], [1, 2, 3]),
            ("{\"id\":1} {\"id\":2}\n{\"id\":3}", [nil, 3], [1]),
            (String(repeating: "[", count: 100_000) + "\n{\"id\":2}", [nil, 2], [1]),
        ] as [(String, [Int?], [Int])])
    func lines(body: String, ids: [Int?], invalid: [Int]) async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text(body, contentType: "application/x-ndjson"))) {
            origin async throws in
            let api = try HTTPSession.patient().host(origin.base)
            for stream in [api.session.values(Item.self, from: origin.url()), api.values(from: "/")] {
                let read = await read(stream)
                #expect(read.ids == ids)
                #expect(read.end == nil)
                #expect(read.messages.count == invalid.count)
                for (message, line) in zip(read.messages, invalid) {
                    #expect(message.contains("line \(line) of the body"))
                }
            }
        }
    }

    @Test("A long line, a status and a truncated body end the values with an error, after the values before it")
    func failures() async throws {
        let router = OriginHandler.router {
            $0.get("/long", .fixed(.text("{\"id\":1}\n{\"id\":2          }\n{\"id\":3}\n")))
            $0.get("/missing", .fixed(.text("{\"id\":1}\n", status: 404)))
            $0.get(
                "/cut",
                OriginHandler { _ in
                    OriginResponse(
                        body: .stream { writer in
                            try await writer.write("{\"id\":1}\n{\"id\"")
                            throw OriginFault(.close)
                        })
                })
        }
        try await TestOrigin.withOrigin(handler: router) { origin async throws in
            let session = HTTPSession.patient()
            let long = await read(session.values(from: origin.url("/long"), upTo: ByteCount(10)))
            #expect(long.ids == [1])
            #expect(long.end?.code == .limitExceeded)
            let missing = await read(session.values(from: origin.url("/missing")))
            #expect(missing.ids == [])
            #expect(missing.end?.code == .unacceptableStatus)
            let cut = await read(session.values(from: origin.url("/cut")))
            #expect(cut.ids == [1])
            #expect(cut.end != nil)
        }
    }

    @Test("Leaving the loop closes the connection of an endless response")
    func leaving() async throws {
        let endless = OriginHandler { _ in
            OriginResponse(body: .stream { writer in for id in 0... { try await writer.write("{\"id\":\(id)}\n") } })
        }
        try await TestOrigin.withOrigin(handler: endless) { origin async throws in
            var ids: [Int] = []
            for try await item in HTTPSession.patient().values(Item.self, from: origin.url()) {
                ids.append(item.id)
                if item.id == 1000 { break }
            }
            #expect(ids == Array(0...1000))
            try await origin.recorder.waitForOpenConnections(atMost: 0)
        }
    }

    @Test("A value is sent when the sequence returns it, and its echo arrives before the next")
    func duplex() async throws {
        try await TestOrigin.withOrigin(handler: .mirror) { origin async throws in
            let (items, continuation) = AsyncStream.makeStream(of: Item.self)
            continuation.yield(Item(id: 0))
            try await HTTPSession.patient().stream(
                origin.url(), method: .post, body: .jsonLines(items, encoder: .json(keys: .snakeCase))
            ) { (response, body) async throws in
                #expect(response.contentType?.essence == "application/x-ndjson")
                var echoes = body.jsonLines(of: Item.self).makeAsyncIterator()
                for id in 0..<5 {
                    #expect(try await echoes.next() == Item(id: id))
                    if id < 4 { continuation.yield(Item(id: id + 1)) } else { continuation.finish() }
                }
                #expect(try await echoes.next() == nil)
            }
        }
    }

    @Test("Values in memory and reopened sequences are sent again after a redirect, each value on one line")
    func replay() async throws {
        let router = OriginHandler.router {
            $0.post("/old", .fixed(.redirect(to: "/new", status: 307)))
            $0.post("/new", .mirror)
        }
        let pretty = JSONEncoder()
        pretty.outputFormatting = [.prettyPrinted, .sortedKeys]
        let encoder = BodyEncoder.json(pretty)
        let items = (0..<3000).map { Item(id: $0) }
        try await TestOrigin.withOrigin(handler: router) { origin async throws in
            let session = HTTPSession.patient()
            let reopened = HTTPBody.jsonLines {
                AsyncStream { continuation in
                    for item in items { continuation.yield(item) }
                    continuation.finish()
                }
            }
            for body in [HTTPBody.jsonLines(items), .jsonLines(items, encoder: encoder), reopened] {
                #expect(body.replay == .restartable)
                let echo = try await session.post(origin.url("/old"), body: body)
                let lines = echo.text.split(separator: "\n")
                #expect(try lines.map { try JSONValue(parsing: String($0))["id"]?.intValue } == items.map(\.id))
            }
            let empty = try await session.post(origin.url("/new"), body: .jsonLines([Item]()))
            #expect(empty.body.isEmpty)
        }
    }

    @Test("A value that cannot be encoded ends the call with the encoder's error")
    func unencodable() async throws {
        try await TestOrigin.withOrigin(handler: .upload) { origin async throws in
            let failing = (0..<4).map { Failing(id: $0) }
            let sequence = AsyncStream { continuation in
                for value in failing { continuation.yield(value) }
                continuation.finish()
            }
            for body in [HTTPBody.jsonLines(failing), .jsonLines(sequence)] {
                let error = try #require(
                    await #expect(throws: HTTPError.self) {
                        try await HTTPSession.patient().post(origin.url(), body: body)
                    })
                #expect(error.code == .bodySourceFailed)
                #expect(error.underlying is EncodingError)
            }
        }
    }
}
