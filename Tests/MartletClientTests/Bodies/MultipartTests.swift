import FoundationEssentials
import Martlet
import MartletTesting
import Synchronization
import Testing

@Suite("Multipart forms", .timeLimit(.minutes(20)))
struct MultipartTests {
    /// The fields and the body of a form that the origin received.
    private struct Receipt: Sendable {
        var type: String?
        var length: String?
        var coding: String?
        var body: [UInt8]
    }

    private func receipt(of body: HTTPBody) async throws -> Receipt {
        let received = Mutex<Receipt?>(nil)
        try await TestOrigin.withOrigin { request in
            let bytes = try await request.collectBody()
            let receipt = Receipt(
                type: request.headers["Content-Type"], length: request.headers["Content-Length"],
                coding: request.headers["Transfer-Encoding"], body: bytes)
            received.withLock { $0 = receipt }
            return .text("ok")
        } run: { origin in
            let exchange = try await HTTPSession.own().send(HTTPRequest(.post, origin), body: body)
            #expect(exchange.text == "ok")
        }
        return try #require(received.withLock { $0 })
    }

    private func parts(of receipt: Receipt) throws -> [MultipartReading.Part] {
        try #require(MultipartReading(receipt.body, contentType: receipt.type)).parts
    }

    private func rejection(
        quoting: MultipartQuoting = .percent, _ build: (inout MultipartForm) -> Void
    ) async throws -> HTTPError {
        let body = HTTPBody.multipart(quoting: quoting, build)
        return try #require(
            await #expect(throws: HTTPError.self) {
                try await HTTPSession.own().send(
                    HTTPRequest(method: .post, url: "http://127.0.0.1:9/"), body: body)
            })
    }

    @Test("A form with a known boundary has exactly the expected bytes")
    func bytes() async throws {
        var generator = ConstantGenerator(value: 0)
        let body = HTTPBody.multipart(using: &generator) { form in
            form.field("title", "Sea")
            form.data("photo", [1, 2, 3], filename: "sea.jpg")
        }
        let boundary = "martlet-" + String(repeating: "0", count: 40)
        #expect(body.contentType == "multipart/form-data; boundary=\(boundary)")
        let expected =
            Array(
                """
                --\(boundary)\r\nContent-Disposition: form-data; name="title"\r\n\r\nSea\r\n\
                --\(boundary)\r\nContent-Disposition: form-data; name="photo"; filename="sea.jpg"\r\n\
                Content-Type: image/jpeg\r\n\r\n
                """.utf8) + [1, 2, 3] + Array("\r\n--\(boundary)--\r\n".utf8)
        #expect(body.length == UInt64(expected.count))
        #expect(try await receipt(of: body).body == expected)
    }

    @Test("Fields, data, files and other bodies arrive unchanged, in order, with an exact length")
    func everyKind() async throws {
        let directory = try TemporaryDirectory()
        let content = TestPattern.bytes(from: 0, count: 300_000)
        try directory.write(content, to: "sea.PNG")
        let path = directory.path("sea.PNG")
        let body = HTTPBody.multipart { form in
            form.field("a", "1\n2")
            form.file("photo", at: path)
            form.data("big", TestPattern.bytes(from: 0, count: 100_000), filename: "x.bin")
            form.part("json", .json(["k": "v"]), headers: ["X-Note": "hello"])
            form.stream("pieces", length: 5) { Pieces("ab", "", "cde") }
        }
        #expect(body.replay == .restartable)
        #expect(body.length == nil, "the file's length is known when the request begins")
        let receipt = try await receipt(of: body)
        #expect(receipt.length == "\(receipt.body.count)")
        let parts = try parts(of: receipt)
        try #require(parts.count == 5)
        #expect(
            parts[0]
                == MultipartReading.Part(
                    head: ["Content-Disposition: form-data; name=\"a\""], body: Array("1\n2".utf8)))
        #expect(
            parts[1].head == [
                "Content-Disposition: form-data; name=\"photo\"; filename=\"sea.PNG\"",
                "Content-Type: image/png",
            ])
        #expect(parts[1].body == content)
        #expect(parts[2].body == TestPattern.bytes(from: 0, count: 100_000))
        #expect(parts[3].head.contains("Content-Type: application/json"))
        #expect(parts[3].head.contains("X-Note: hello"))
        #expect(parts[4].text == "abcde")
    }

    @Test("A form can be a literal of parts, and each verb of a session and a host sends it")
    func literals() async throws {
        let directory = try TemporaryDirectory()
        try directory.write(Array("png".utf8), to: "sea.png")
        let path = directory.path("sea.png")
        let form: MultipartForm = [
            .field("title", "Sea"), .file("photo", at: path), .data("raw", Array("x".utf8), filename: "a.bin"),
            .part("note", .json(["k": "v"]), headers: ["X-Note": "hello"]),
        ]
        let text =
            "title - - Sea; photo sea.png image/png png; raw a.bin application/octet-stream x; "
            + "note - application/json {\"k\":\"v\"}"
        try await TestOrigin.withOrigin { request in
            let parts = try await request.collectParts().map { part in
                "\(part.name ?? "-") \(part.filename ?? "-") \(part.contentType ?? "-") \(part.text)"
            }
            return .text("\(request.method) \(request.target) \(parts.joined(separator: "; "))")
        } run: { origin in
            let session = HTTPSession.own()
            let api = try session.host(origin.base)
            let url = origin.url("/x")
            #expect(try await session.post(url, query: ["a": 1], multipart: form).text == "POST /x?a=1 \(text)")
            #expect(try await session.put(url, multipart: form).text == "PUT /x \(text)")
            #expect(try await session.patch(url, multipart: form).text == "PATCH /x \(text)")
            #expect(try await api.post("x", query: ["a": 1], multipart: form).text == "POST /x?a=1 \(text)")
            #expect(try await api.put("x", multipart: form).text == "PUT /x \(text)")
            #expect(try await api.patch("x", multipart: .init { $0 = form }).text == "PATCH /x \(text)")
            let title = try await api.post("x", multipart: [.field("title", "Sea")])
            #expect(title.text == "POST /x title - - Sea")
        }
        let error = try await rejection { $0 = [.field("a", "1"), .field("a\0", "2")] }
        #expect(error.code == .invalidRequest)
    }

    @Test("A part of unknown length makes the whole form chunked")
    func chunked() async throws {
        let receipt = try await receipt(of: .multipart { $0.stream("s") { Pieces("ab", "c") } })
        #expect(receipt.coding == "chunked")
        #expect(receipt.length == nil)
        #expect(try parts(of: receipt).map(\.text) == ["abc"])
    }

    @Test("A form without parts consists of only the closing boundary")
    func empty() async throws {
        let receipt = try await receipt(of: .multipart { _ in })
        #expect(try parts(of: receipt).isEmpty)
    }

    @Test("UTF-8 names stay, and quotes and line breaks in them are percent-encoded")
    func names() async throws {
        let receipt = try await receipt(
            of: .multipart { $0.data("naïve\"\r\nX: 1", [], filename: "日本 \"a\"\\b.txt\n") })
        let head = try #require(try parts(of: receipt).first?.head)
        #expect(
            head.first
                == "Content-Disposition: form-data; name=\"naïve%22%0D%0AX: 1\"; filename=\"日本 %22a%22\\b.txt%0A\""
        )
        #expect(head.count == 2)
    }

    @Test("Backslash quoting escapes quotes and backslashes in names and rejects line breaks")
    func backslashes() async throws {
        let receipt = try await receipt(
            of: .multipart(quoting: .backslash) { $0.data("a\"b\\", [], filename: "\\\"ö") })
        let head = try #require(try parts(of: receipt).first?.head)
        #expect(
            head.first == #"Content-Disposition: form-data; name="a\"b\\"; filename="\\\"ö""#)
        let broken = try await rejection(quoting: .backslash) { $0.field("a\rb", "x") }
        #expect(broken.code == .invalidRequest)
        #expect(broken.underlying as? MultipartError == .invalidText("the name of a part", offset: 1))
    }

    @Test("A control character in a name or type is rejected before sending, with its position")
    func controlCharacters() async throws {
        let name = try await rejection { $0.field("a\u{0}b", "x") }
        #expect(name.code == .invalidRequest)
        #expect(name.underlying as? MultipartError == .invalidText("the name of a part", offset: 1))
        let file = try await rejection { $0.data("a", [], filename: "x\u{1B}") }
        #expect(
            file.underlying as? MultipartError == .invalidText("the file name of the part “a”", offset: 1))
        let type = try await rejection { $0.data("a", [], contentType: "text/plain\r\nX: 1") }
        #expect(type.underlying as? MultipartError == .invalidText("the value of Content-Type", offset: 10))
    }

    @Test("Header fields of a part cannot split it or replace the fields that the form sets")
    func injection() async throws {
        let value = try await rejection { $0.part("a", .text(""), headers: ["X-A": "1\r\n\r\nevil"]) }
        #expect(value.underlying as? MultipartError == .invalidText("the value of X-A", offset: 1))
        for name in ["", "X A", "X:", "X\r\nY", "content-disposition", "Content-Type"] {
            let error = try await rejection { $0.part("a", .text(""), headers: [name: "1"]) }
            #expect(error.underlying as? MultipartError == .invalidFieldName(name))
        }
    }

    @Test("A boundary that occurs in a part is replaced by a new one")
    func collision() {
        let taken = "martlet-" + String(repeating: "0", count: 40)
        var generator = ListGenerator(values: Array(repeating: 0, count: 40))
        let body = HTTPBody.multipart(using: &generator) { $0.field("a", "x-mmartlet-martlet-0\(taken)") }
        #expect(body.contentType?.hasPrefix("multipart/form-data; boundary=martlet-") == true)
        #expect(body.contentType?.contains(taken) == false)
    }

    @Test("Two forms have different boundaries")
    func random() {
        let types = Set((0..<20).map { _ in HTTPBody.multipart { $0.field("a", "b") }.contentType })
        #expect(types.count == 20)
    }

    @Test("A file that does not exist is an error before anything is sent")
    func missingFile() async throws {
        let error = try await rejection { $0.file("f", at: "/nonexistent/file") }
        #expect(error.code == .fileFailed)
        #expect(error.wasSent == false)
    }

    // An earlier version omitted a value that could not be encoded when a form was collected.
    @Test("The error of a part keeps its kind, also in a form within a form", arguments: [false, true])
    func partErrors(isNested: Bool) async throws {
        func form(_ build: (inout MultipartForm) -> Void) -> HTTPBody {
            isNested ? .multipart { $0.part("inner", .multipart(build)) } : .multipart(build)
        }
        let missing = await #expect(throws: HTTPError.self) {
            try await form { $0.file("f", at: "/nonexistent/file") }.collect()
        }
        #expect(missing?.code == .fileFailed && missing?.underlying is StorageError)
        let value = await #expect(throws: HTTPError.self) {
            try await form { $0.part("v", .json(Double.nan)) }.collect()
        }
        #expect(value?.code == .invalidRequest && value?.underlying is EncodingError)
    }

    @Test(
        "A file whose length changes after the request starts is an error", arguments: [0, 999, 1001])
    func changedFile(_ later: Int) async throws {
        let directory = try TemporaryDirectory()
        try directory.write(TestPattern.bytes(from: 0, count: 1000), to: "f")
        let path = directory.path("f")
        let body = HTTPBody.multipart { form in
            form.stream("first", length: 1) {
                // The first part is read before the file.
                try? directory.write(TestPattern.bytes(from: 0, count: later), to: "f")
                return Pieces("x")
            }
            form.file("f", at: path)
        }
        try await TestOrigin.withOrigin(handler: .upload) { origin in
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.own().send(HTTPRequest(.post, origin), body: body)
            }
            #expect(error?.code == .bodySourceFailed)
            #expect(error?.underlying as? MultipartError == .fileChanged(path, expected: 1000))
        }
    }

    @Test("A source with more or fewer bytes than its length is an error", arguments: [2, 4])
    func wrongLength(_ length: UInt64) async throws {
        let body = HTTPBody.multipart { $0.stream("s", length: length) { Pieces("abc") } }
        try await TestOrigin.withOrigin(handler: .upload) { origin in
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.own().send(HTTPRequest(.post, origin), body: body)
            }
            #expect(error?.underlying as? MultipartError == .lengthMismatch(part: "s", expected: length))
        }
    }

    @Test("A form can be resent only if all of its parts can be")
    func replay() async throws {
        #expect(HTTPBody.multipart { $0.field("a", "b") }.replay == .replayable)
        #expect(HTTPBody.multipart { $0.file("a", at: "/x") }.replay == .replayable)
        let once = HTTPBody.multipart { $0.part("s", .once(Pieces("abc"), length: 3)) }
        #expect(once.replay == .once)
        try await TestOrigin.withOrigin(handler: .upload) { origin in
            let session = HTTPSession.own()
            _ = try await session.send(HTTPRequest(.post, origin), body: once)
            let error = await #expect(throws: HTTPError.self) {
                try await session.send(HTTPRequest(.post, origin), body: once)
            }
            #expect(error?.code == .bodyNotReplayable)
            #expect(error?.underlying as? MultipartError == .partNotReplayable(part: "s"))
        }
    }

    @Test("A form with more files than available descriptors opens one file at a time")
    func manyFiles() async throws {
        let directory = try TemporaryDirectory()
        try directory.write(Array("x".utf8), to: "f")
        let path = directory.path("f")
        let receipt = try await receipt(
            of: .multipart { form in for index in 0..<3000 { form.file("f\(index)", at: path) } })
        #expect(receipt.length == "\(receipt.body.count)")
        #expect(receipt.body.count > 300_000)
    }
}

/// A generator that always returns the same number.
private struct ConstantGenerator: RandomNumberGenerator {
    let value: UInt64
    mutating func next() -> UInt64 { value }
}

/// A generator that returns the numbers of a list, then random ones.
private struct ListGenerator: RandomNumberGenerator {
    var values: [UInt64]
    mutating func next() -> UInt64 {
        values.isEmpty ? UInt64.random(in: 0 ... .max) : values.removeFirst()
    }
}
