import FoundationEssentials
import Martlet
import MartletTesting
import Testing

@testable import MartletContent
@testable import MartletCore

@Suite("Compressed request bodies")
struct CompressedRequestTests {
    @Test("Every kind of body arrives as it was, in every coding", arguments: BodyCompression.all)
    func kinds(coding: BodyCompression) async throws {
        let path = FileManager.default.temporaryDirectory.path + "/martlet-compressed-\(UUID().uuidString)"
        let (small, large) = (lines(5000), lines(3 << 20))
        try Data(large).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let bodies: [(body: HTTPBody, content: [UInt8], isChunked: Bool)] = [
            (.bytes(small), small, false),
            (.bytes(large), large, true),
            (.text(String(decoding: small, as: UTF8.self)), small, false),
            (
                .json(Array(repeating: "value", count: 200)),
                Array("[\(Array(repeating: "\"value\"", count: 200).joined(separator: ","))]".utf8), false
            ),
            (
                .form([QueryItem(name: "a", value: String(repeating: "b", count: 500))]),
                Array("a=\(String(repeating: "b", count: 500))".utf8), false
            ),
            (.file(path), large, true),
            (.stream { Pieces(large, sizes: [1, 70_000, 333]) }, large, true),
            (.stream(length: UInt64(small.count)) { Pieces(small, sizes: [1000]) }, small, true),
            (.once(Pieces(large, sizes: [1 << 30])), large, true),
            (.once(Pieces(pieces: [])), [], true),
        ]
        try await Inbox.run { origin, inbox async throws in
            let session = HTTPSession.own()
            for (index, body) in bodies.enumerated() {
                let compressed = body.body.compressed(coding)
                #expect(compressed.replay == body.body.replay && compressed.length == body.body.length)
                try await session.post(origin.url("/\(index)"), body: compressed)
                let entry = try #require(inbox.entries.last)
                #expect(entry.path == "/\(index)" && entry.content == body.content, "body \(index)")
                #expect(entry.coding == coding.coding.rawValue && entry.isChunked == body.isChunked, "body \(index)")
                #expect(entry.headers["Content-Length"] == (body.isChunked ? nil : "\(entry.raw.count)"))
                #expect(entry.headers["Content-Type"] == body.body.contentType)
                #expect(body.content.count < 100 || entry.raw.count < body.content.count / 2, "body \(index)")
            }
        }
    }

    @Test("A form in parts is compressed as a whole, with a value, a file and a stream in it")
    func multipart() async throws {
        let rows = lines(200_000)
        let body = HTTPBody.multipart {
            $0.field("title", "Sea")
            $0.part("value", .json(["a": 1]))
            $0.part("rows", .stream { Pieces(rows, sizes: [5000]) })
        }
        let coding = try #require(HTTPField.Name("X-Coding"))
        try await TestOrigin.withOrigin { request in
            let content = try decoded(try await request.collectBody(), request.headers["Content-Encoding"])
            return .bytes(content, headers: ["X-Coding": request.headers["Content-Encoding"] ?? ""])
        } run: { origin async throws in
            let plain = try await HTTPSession.own().post(origin.url(), body: body)
            let compressed = try await HTTPSession.own().post(origin.url(), body: body.compressed(.gzip))
            #expect(compressed.headers[coding] == "gzip" && plain.headers[coding] == "")
            #expect(compressed.body == plain.body && plain.body.count > rows.count)
        }
    }

    @Test("Empty bodies and small bodies that would grow are sent uncompressed, without the field")
    func uncompressed() async throws {
        try await Inbox.run { origin, inbox async throws in
            let session = HTTPSession.own()
            let path = FileManager.default.temporaryDirectory.path + "/martlet-empty-\(UUID().uuidString)"
            try Data().write(to: URL(fileURLWithPath: path))
            defer { try? FileManager.default.removeItem(atPath: path) }
            let bodies: [HTTPBody] = [.none, .bytes([]), .file(path), .text("short"), .bytes(noise)]
            for body in bodies {
                try await session.post(
                    origin.url(), body: body.compressed(.gzip), headers: [.contentEncoding: "gzip"])
            }
            #expect(inbox.codings == [nil, nil, nil, nil, nil].map { $0 as String? })
            #expect(inbox.entries.map { $0.headers["Content-Length"] } == ["0", "0", "0", "5", "\(noise.count)"])
            #expect(inbox.entries.last?.raw == noise)
        }
    }

    @Test("Content-Encoding of the request or of the session precedes the coding of the body")
    func callersCodings() async throws {
        try await Inbox.run { origin, inbox async throws in
            let zlib = try #require(try BodyCompression.deflate.compressed(lines(4000)))
            // Stored once more by gzip, which does not make it smaller: a large body is compressed in any case.
            let body = HTTPBody.stream { Pieces(pieces: [zlib]) }.compressed(.gzip)
            try await HTTPSession.own().post(origin.url(), body: body, headers: [.contentEncoding: "deflate"])
            try await HTTPSession.own { $0.headers[.contentEncoding] = "deflate" }.post(origin.url(), body: body)
            #expect(inbox.codings == ["deflate, gzip", "deflate, gzip"])
            #expect(inbox.entries.allSatisfy { $0.content == lines(4000) })
            #expect(inbox.entries.allSatisfy { $0.headers.values(of: "Content-Encoding").count == 1 })
        }
    }

    @Test(
        "A body with a digest of its bytes is sent uncompressed",
        arguments: ["Content-Digest", "Repr-Digest", "Digest", "Content-MD5"])
    func digests(name: String) async throws {
        try await Inbox.run { origin, inbox async throws in
            let body = HTTPBody.stream { Pieces(pieces: [lines(4000)]) }.compressed(.gzip)
            let field = try #require(HTTPField.Name(name))
            try await HTTPSession.own().post(origin.url(), body: body, headers: HTTPHeaders([field: "x"] as HTTPFields))
            var options = RequestOptions()
            options.trailers = HTTPHeaders([field: "x"] as HTTPFields)
            try await HTTPSession.own().post(origin.url(), body: body, options: options)
            #expect(inbox.codings == [nil, nil] && inbox.entries.allSatisfy { $0.raw == lines(4000) })
        }
    }

    @Test("Invalid combinations are rejected before anything is sent")
    func rejections() async throws {
        try await Inbox.run { origin, inbox async throws in
            let session = HTTPSession.own()
            func expectRejection(_ body: HTTPBody, _ headers: HTTPHeaders = [:], _ version: HTTPVersion? = nil) async {
                var options = RequestOptions()
                options.version = version
                let error = await #expect(throws: HTTPError.self) {
                    try await session.post(origin.url(), body: body, headers: headers, options: options)
                }
                #expect(error?.code == .invalidRequest && error?.wasSent == false, "\(error.debugDescription)")
            }
            await expectRejection(.bytes(lines(4000)).compressed(.gzip), [.contentLength: "4000"])
            await expectRejection(.bytes(lines(2 << 20)).compressed(.gzip), [:], .http10)
            await expectRejection(.multipart { $0.part("a", .text("b").compressed(.gzip)) })
            #expect(inbox.entries.isEmpty)
            // A collected body has a length, also with HTTP/1.0.
            var options = RequestOptions()
            options.version = .http10
            try await session.post(origin.url(), body: .bytes(lines(4000)).compressed(.gzip), options: options)
            #expect(inbox.entries.first?.content == lines(4000) && inbox.codings == ["gzip"])
        }
    }

    private struct Failure: Error {}

    @Test("A body that fails or has another length than stated never looks complete")
    func broken() async throws {
        let bytes = lines(4000)
        let cases: [(HTTPBody, HTTPError.Code)] = [
            (.stream(length: 4001) { Pieces(pieces: [bytes]) }, .bodyLengthMismatch),
            (.stream(length: 3999) { Pieces(pieces: [bytes]) }, .bodyLengthMismatch),
            (.stream { Pieces(pieces: [bytes], failure: Failure()) }, .bodySourceFailed),
            (.file("/nonexistent"), .fileFailed),
        ]
        for (body, code) in cases {
            try await TestOrigin.withOrigin { request in
                _ = try? await request.collectBody()
                return .text("ok")
            } run: { origin async throws in
                let error = await #expect(throws: HTTPError.self) {
                    try await HTTPSession.own().post(origin.url(), body: body.compressed(.gzip))
                }
                #expect(error?.code == code)
            }
        }
    }

    @Test("The progress counts compressed bytes; the total is known only for a body that is compressed first")
    func progress() async throws {
        try await Inbox.run { origin, inbox async throws in
            for body in [HTTPBody.bytes(lines(50_000)), .bytes(lines(2 << 20))] {
                var last = TransferProgress()
                try await HTTPSession.own().upload(body.compressed(.gzip), to: origin.url()) { last = $0 }
                let entry = try #require(inbox.entries.last)
                #expect(last.completedByteCount == UInt64(entry.raw.count) && last.isFinished)
                #expect(last.totalByteCount == (entry.isChunked ? nil : UInt64(entry.raw.count)))
            }
        }
    }

    @Test("Middleware reads the uncompressed body, and can compress the bodies of all calls")
    func middleware() async throws {
        struct Compressing: HTTPMiddleware {
            func handle(_ request: HTTPCall.Request, context: CallContext, next: HTTPNext) async throws
                -> HTTPCall.Response
            {
                var request = request
                #expect(try await request.body.collect() == lines(4000))
                request.body = request.body.compressed(.gzip, level: 9)
                return try await next(request)
            }
        }
        try await Inbox.run({ $0.coding == "gzip" && $0.path == "/415" ? .status(415) : nil }) {
            origin, inbox async throws in
            let session = HTTPSession.own { $0.middleware = [Compressing()] }
            try await session.post(origin.url(), body: .bytes(lines(4000)))
            try await session.post(origin.url(), body: .bytes(lines(4000)).compressed(.deflate))
            #expect(try await session.post(origin.url("/415"), body: .bytes(lines(4000))).statusCode == 200)
            #expect(inbox.codings == ["gzip", "gzip", "gzip", nil])
            #expect(inbox.entries.allSatisfy { $0.content == lines(4000) })
        }
    }

    @Test("A curl command sends the body uncompressed, and a HAR log shows its text and its coding")
    func descriptions() async throws {
        try await Inbox.run { origin, _ in
            let body = HTTPBody.text(String(repeating: "plain ", count: 100)).compressed(.gzip)
            let exchange = try await HTTPSession.own().post(
                origin.url(), body: body, headers: [.contentEncoding: "gzip"])
            let command = exchange.request.curlCommand(body: body)
            #expect(command.contains("plain plain") && !command.lowercased().contains("content-encoding"))
            let har = try JSONValue(parsing: HAREntry(exchange, requestBody: body).json)
            #expect(har["request"]?["bodySize"] == -1)
            let text = String(describing: har["request"])
            #expect(text.contains("plain plain") && text.contains("Content-Encoding") && text.contains("gzip"))
        }
    }
}
