import FoundationEssentials
import MartletContent
import MartletCore
import MartletDiagnostics
import MartletTesting
import Testing

@Suite("Recording with a cassette", .timeLimit(.minutes(5)))
struct CassetteRecordingTests {
    private let scene: CassetteScene

    init() throws { scene = try CassetteScene() }

    @Test("A replayed exchange equals the recorded one: reason, repeated fields, bodies and trailers")
    func roundTrip() async throws {
        let binary: [UInt8] = [0, 255, 10, 13, 34]
        let handler = OriginHandler.router {
            $0.get("/text") { _ in
                OriginResponse(
                    299, headers: ["X-B": "1", "X-A": "2", "X-B": "3", "Set-Cookie": "a=1", "Set-Cookie": "b=2"],
                    contentType: "text/plain", body: .text("“Grüße”\r\n\u{1}<\u{2028}")
                ).with { $0.reason = "Fine & odd" }
            }
            $0.get("/binary", .fixed(.bytes(binary)))
            $0.get("/gzip", .fixed(.encoded(StoredCoding.gzip(Array("coded".utf8)), coding: "gzip")))
            $0.get("/trailers") { _ in
                OriginResponse(body: .stream(length: nil) { try await $0.write("abc") }).with {
                    $0.trailers = ["X-Sum": "6", "X-Sum": "7"]
                }
            }
            $0.get("/empty", .status(204))
        }
        let paths = ["/text", "/binary", "/gzip", "/trailers", "/empty"]
        func exchanges(_ session: HTTPSession) async throws -> [HTTPExchange] {
            var all: [HTTPExchange] = []
            for path in paths { all.append(try await session.get("http://example.org\(path)")) }
            return all
        }
        var live: [HTTPExchange] = []
        try await CassetteScene.withSession(paths.count, handler.respond) { session in
            let cassette = try scene.cassette(.record) { $0.mask = .none }
            live = try await exchanges(session.with(cassette))
            #expect(cassette.entries.count == paths.count)
        }
        #expect(live[0].status.reasonPhrase == "Fine & odd" && live[3].trailers?.count == 2)
        #expect(live[2].body == Array("coded".utf8) && live.allSatisfy { $0.source == .network })
        for mode in [Cassette.Mode.replay, .replayOrRecord] {
            try await CassetteScene.withSession(0) { session in
                let replayed = try await exchanges(session.with(scene.cassette(mode)))
                for (one, other) in zip(live, replayed) {
                    #expect(one.response == other.response && one.status.reasonPhrase == other.status.reasonPhrase)
                    #expect(Array(one.headers) == Array(other.headers))
                    #expect(one.body == other.body && one.trailers == other.trailers)
                }
            }
        }
        let text = String(decoding: try scene.bytes(), as: UTF8.self)
        #expect(text.contains("\"text\": \"“Grüße”\\r\\n\\u0001<") && text.contains("\"text\": \"AP8KDSI=\""))
        #expect(text.hasPrefix("{\n  \"log\": {\n    \"version\": \"1.2\",\n") && text.hasSuffix("\n    ]\n  }\n}\n"))
    }

    @Test("Redirects and retries are recorded in order, and replayed in that order")
    func steps() async throws {
        let handler = OriginHandler.inTurn([
            .redirect(to: "/b", status: 303), .status(503, headers: ["Retry-After": "0"]),
            .text("done"),
        ])
        func run(_ session: HTTPSession) async throws {
            let exchange = try await session.post("http://user:pass@example.org/a?q=1", body: .text("x"))
            #expect(exchange.text == "done" && exchange.url.absoluteString == "http://example.org/b")
        }
        func configure(_ configuration: inout SessionConfiguration) {
            configuration.retry = .transient(backoff: .constant(.zero))
        }
        try await CassetteScene.withSession(3, handler.respond, configure) { session in
            let cassette = try scene.cassette(.record)
            try await run(session.with(cassette))
            #expect(cassette.entries.map(\.response.status.code) == [303, 503, 200])
            #expect(cassette.entries.map(\.request.method) == [.post, .get, .get])
            #expect(cassette.entries[0].request.body == Array("x".utf8))
        }
        try await CassetteScene.withSession(0, { _ in .status(500) }, configure) { session in
            try await run(session.with(scene.cassette(.replay)))
        }
        let text = String(decoding: try scene.bytes(), as: UTF8.self)
        #expect(!text.contains("pass") && !text.contains(Data("user:pass".utf8).base64EncodedString()))
    }

    @Test("Secrets are not in the file, and requests with other secrets match")
    func secrets() async throws {
        func send(_ session: HTTPSession, _ secret: String) async throws -> HTTPExchange {
            _ = try await session.post(
                "http://example.org/form", body: .form(["key": secret, "name": "Anna"]))
            let body = HTTPBody.text(
                #"{"list":[{"Token":"\#(secret)"}],"n":1.50}"#, contentType: "application/json")
            return try await session.post(
                "http://example.org/a?key=\(secret)&n=1", body: body,
                headers: [
                    "Authorization": "Bearer \(secret)", "Cookie": "id=\(secret)", "X-Key": "\(secret)",
                    "Proxy-Authorization": "Basic \(secret)",
                ])
        }
        func configure(_ options: inout CassetteOptions) {
            options.mask = .standard.adding(fields: [.init("X-Key")!], queryItems: ["key"])
            options.secretJSONKeys = ["token"]
            options.matching.headers = [.authorization, .cookie, .init("X-Key")!]
            options.matching.body = .exact
        }
        let respond: OriginHandler.Respond = { _ in
            .json(
                text: #"{"token":{"value":"S3CRET"},"n":1.50,"x":["TOKEN"]}"#,
                headers: ["Set-Cookie": "id=S3CRET; Path=/", "Content-Location": "/x?key=S3CRET"])
        }
        try await CassetteScene.withSession(2, respond) { session in
            let exchange = try await send(session.with(scene.cassette(.record, configure)), "S3CRET")
            #expect(exchange.text.contains("S3CRET"))
        }
        let text = String(decoding: try scene.bytes(), as: UTF8.self)
        #expect(!text.contains("S3CRET") && text.contains("Bearer ***") && text.contains("id=***; Path=/"))
        try await CassetteScene.withSession(0) { session in
            let exchange = try await send(session.with(scene.cassette(.replay, configure)), "0ther")
            #expect(exchange.text == #"{"token":"masked","n":1.50,"x":["TOKEN"]}"#)
            let error = await #expect(throws: CassetteError.self) {
                try await session.with(scene.cassette(.replay, configure)).get(
                    "http://example.org/a?key=H1DDEN", headers: ["Authorization": "Bearer H1DDEN"])
            }
            #expect(try #require(error).description.contains("H1DDEN") == false)
        }
    }

    @Test("A streamed response reaches the caller while it is recorded")
    func streams() async throws {
        let signals = OriginSignals()
        let respond: OriginHandler.Respond = { _ in
            OriginResponse(
                body: .stream(length: nil) { writer in
                    try await writer.write("first")
                    try await signals.wait(for: "received")
                    try await writer.write(" second")
                })
        }
        try await CassetteScene.withSession(1, respond) { session in
            let cassette = try scene.cassette(.record)
            try await session.with(cassette).stream("http://example.org/") { _, body in
                var text = ""
                for try await piece in body {
                    text += String(decoding: piece, as: UTF8.self)
                    #expect(!scene.exists)
                    signals.raise("received")
                }
                #expect(text == "first second")
            }
            #expect(scene.exists && cassette.entries.map(\.body) == [Array("first second".utf8)])
        }
    }

    @Test("A cancelled or unread response is not recorded, and the next one is")
    func cancelled() async throws {
        let signals = OriginSignals()
        let respond: OriginHandler.Respond = { request in
            guard request.path == "/endless" else { return .text("ok") }
            return OriginResponse(
                body: .stream(length: nil) { writer in
                    try await writer.write("first")
                    signals.raise("sent")
                    try await signals.wait(for: "never")
                })
        }
        try await CassetteScene.withSession(3, respond) { session in
            let cassette = try scene.cassette(.record)
            let view = session.with(cassette)
            let task = Task { try await view.get("http://example.org/endless") }
            try await signals.wait(for: "sent")
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            try await view.stream("http://example.org/endless") { _, _ in }
            try await cassette.save()
            #expect(cassette.entries.isEmpty && !scene.exists)
            _ = try await view.get("http://example.org/")
            #expect(cassette.entries.count == 1 && scene.exists)
        }
    }

    @Test("Responses without a body are recorded although nothing is read")
    func bodyless() async throws {
        try await CassetteScene.withSession(2, { _ in .text("not sent for HEAD") }) { session in
            let cassette = try scene.cassette(.record)
            let view = session.with(cassette)
            let request = HTTPRequest(method: .head, url: try HTTPURL("http://example.org/"))
            try await view.stream(request) { response, _ in #expect(response.headers["Content-Length"] == "17") }
            let head = try await view.head("http://example.org/")
            #expect(cassette.entries.count == 2 && head.body.isEmpty)
            #expect(cassette.entries[1].response.headerFields["Content-Length"] == "17")
        }
        try await CassetteScene.withSession(0) { session in
            let head = try await session.with(scene.cassette(.replay)).head("http://example.org/")
            #expect(head.headers["Content-Length"] == "17")
        }
    }

    @Test(
        "Bodies of every kind are sent unchanged and recorded", arguments: ["bytes", "file", "stream", "once", "form"])
    func requestBodies(_ kind: String) async throws {
        let bytes = TestPattern.bytes(from: 0, count: 300_000)
        let (half, rest) = (Array(bytes[..<150_000]), Array(bytes[150_000...]))
        let path = scene.directory + "/body"
        try Data(bytes).write(to: URL(filePath: path))
        let body: HTTPBody =
            switch kind {
            case "bytes": .bytes(bytes)
            case "file": .file(path)
            case "stream": .stream { Pieces([half, rest]) }
            case "once": .once(Pieces([half, rest]), length: UInt64(bytes.count))
            default: .multipart { $0.part("file", .bytes(bytes)) }
            }
        let respond: OriginHandler.Respond = { .bytes(try await $0.collectBody()) }
        try await CassetteScene.withSession(1, respond) { session in
            let cassette = try scene.cassette(.record)
            let exchange = try await session.with(cassette).post("http://example.org/", body: body)
            #expect(cassette.entries.first?.request.body == exchange.body)
            #expect(kind == "form" ? exchange.body.count > bytes.count : exchange.body == bytes)
            #expect(cassette.entries.first?.request.headers[.contentType] == body.contentType)
        }
    }

    @Test("A body that can be read only once is matched, and sent if it is not recorded")
    func onceMatched() async throws {
        func send(_ text: String, _ session: HTTPSession) async throws -> String {
            let pieces = Pieces(text.utf8.map { [$0] })
            return try await session.post("http://example.org/", body: .once(pieces)).text
        }
        let respond: OriginHandler.Respond = { .bytes(try await $0.collectBody(), contentType: "text/plain") }
        for count in [2, 0] {
            try await CassetteScene.withSession(count, respond) { session in
                let view = session.with(try scene.cassette(.replayOrRecord) { $0.matching.body = .exact })
                #expect(try await send("one", view) == "one")
                #expect(try await send("two", view) == "two")
            }
        }
    }

    @Test(
        "A body above the limit is an error of the call, and is not recorded",
        arguments: ["request", "once", "response"])
    func limits(_ part: String) async throws {
        let respond: OriginHandler.Respond = { request in
            if part == "response" { return .pattern(1001) }
            return .bytes([UInt8](repeating: 1, count: min(1000, try await request.collectBody().count)))
        }
        try await CassetteScene.withSession(part == "request" ? 1 : 2, respond) { session in
            let cassette = try scene.cassette(.record) { $0.bodyLimit = 1000 }
            let view = session.with(cassette)
            let bytes = [UInt8](repeating: 1, count: 1001)
            let body: HTTPBody =
                switch part {
                case "request": .bytes(bytes)
                case "once": .once(Pieces([Array(bytes[..<1000]), [1]]))
                default: .none
                }
            let error = await #expect(throws: CassetteError.self) {
                try await view.post("http://example.org/large", body: body)
            }
            let text = try #require(error).description
            #expect(text.contains("POST http://example.org/large: the body of the re") && text.contains("bodyLimit"))
            #expect(!scene.exists && cassette.entries.isEmpty)
            if part == "response" { return _ = try? await view.get("http://example.org/") }
            let exchange = try await view.post("http://example.org/", body: .bytes(bytes.dropLast()))
            #expect(exchange.body.count == 1000 && cassette.entries.count == 1)
        }
    }

    @Test("The file is limited too")
    func fileLimit() async throws {
        try await CassetteScene.withSession(3, { _ in .bytes(TestPattern.bytes(from: 0, count: 3000)) }) { session in
            let cassette = try scene.cassette(.record) { $0.fileLimit = .kibibytes(12) }
            let view = session.with(cassette)
            for path in ["a", "b"] { _ = try await view.get("http://example.org/\(path)") }
            await #expect(throws: CassetteError.self) { try await view.get("http://example.org/c") }
            let size = try scene.bytes().count
            #expect(cassette.entries.count == 2 && size < 12 * 1024)
        }
    }

    @Test("Failed calls are not recorded")
    func failures() async throws {
        let respond: OriginHandler.Respond = { request in
            if request.path == "/reset" { throw OriginFault(.reset) }
            throw OriginFault(.cut, afterBodyBytes: 100)
        }
        try await CassetteScene.withSession(2, respond) { session in
            let cassette = try scene.cassette(.record)
            for path in ["/reset", "/cut"] {
                let error = await #expect(throws: HTTPError.self) {
                    try await session.with(cassette).post("http://example.org\(path)", body: .text("x"))
                }
                #expect(error?.code == (path == "/cut" ? .truncated : .connectionLost))
            }
            #expect(cassette.entries.isEmpty && !scene.exists)
        }
    }

    @Test("Concurrent calls are recorded in the order of their start")
    func concurrent() async throws {
        let signals = OriginSignals()
        let respond: OriginHandler.Respond = { request in
            signals.raise("arrived \(request.path)")
            try await signals.wait(for: "finish \(request.path)")
            return .text(request.path)
        }
        try await CassetteScene.withSession(3, respond) { session in
            let cassette = try scene.cassette(.record)
            let view = session.with(cassette)
            var tasks: [(String, Task<HTTPExchange, any Error>)] = []
            for path in ["/a", "/b", "/c"] {
                tasks.append((path, Task { try await view.get("http://example.org\(path)") }))
                try await signals.wait(for: "arrived \(path)")
            }
            for (path, task) in tasks.reversed() {
                signals.raise("finish \(path)")
                _ = try await task.value
            }
            #expect(cassette.entries.map(\.request.url.path) == ["/a", "/b", "/c"])
            let file = try CassetteFile(parsing: try scene.bytes(), path: "", bodyLimit: 1000)
            #expect(file.recordings.map { $0.entry?.request.url.path } == ["/a", "/b", "/c"])
        }
    }

    @Test("An error of the file is an error of the call, and saving can be repeated")
    func fileErrors() async throws {
        let obstacle = scene.directory + "/fixtures"
        try Data().write(to: URL(filePath: obstacle))
        try await CassetteScene.withSession(1, { _ in .text("ok") }) { session in
            let cassette = try scene.cassette(.record)
            for _ in 1...2 {
                let error = await #expect(throws: CassetteError.self) {
                    if cassette.entries.isEmpty {
                        _ = try await session.with(cassette).get("http://example.org/")
                    } else {
                        try await cassette.save()
                    }
                }
                guard case .fileFailed = error else { return _ = Issue.record("\(String(describing: error))") }
            }
            try FileManager.default.removeItem(atPath: obstacle)
            try await cassette.save()
            #expect(try scene.cassette(.replay).entries == cassette.entries)
            #expect(try FileManager.default.contentsOfDirectory(atPath: obstacle) == ["test.har"])
        }
    }

    @Test("A compressed body that can be read only once stays compressed", arguments: [false, true])
    func compressedOnce(isMatched: Bool) async throws {
        let respond: OriginHandler.Respond = { request in
            _ = try await request.collectBody()
            return .text(request.headers["Content-Encoding"] ?? "none")
        }
        let bytes = [UInt8](repeating: 97, count: 5000)
        try await CassetteScene.withSession(1, respond) { session in
            let cassette = try scene.cassette(.replayOrRecord) { if isMatched { $0.matching.body = .exact } }
            let body = HTTPBody.once(Pieces([bytes])).compressed(.gzip)
            let text = try await session.with(cassette).post("http://example.org/", body: body).text
            #expect(text == "gzip")
            #expect(cassette.entries.first?.request.body == bytes)
        }
    }
}

/// A sequence of pieces in memory.
struct Pieces: AsyncSequence, Sendable {
    typealias Element = [UInt8]

    struct Iterator: AsyncIteratorProtocol {
        var pieces: ArraySlice<[UInt8]>

        mutating func next() async -> [UInt8]? { pieces.popFirst() }
    }

    let pieces: [[UInt8]]

    init(_ pieces: [[UInt8]]) { self.pieces = pieces }

    func makeAsyncIterator() -> Iterator { Iterator(pieces: pieces[...]) }
}
