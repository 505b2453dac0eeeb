import MartletCore
import MartletTesting
import Testing

@Suite("Parts of multipart bodies")
struct MultipartTests {
    private static let title = "Content-Disposition: form-data; name=\"title\"\r\n"

    /// Sends a body, whose parts the handler counts.
    private func post(_ body: String, as type: String = "multipart/form-data; boundary=b") async throws -> (
        request: RecordedRequest, response: RawResponse
    ) {
        try await MockTransport.withMock { request in
            let parts = try await request.collectParts()
            return .text("\(parts.count)")
        } run: { mock in
            let client = try await RawClient(mock)
            try await client.send(
                "POST / HTTP/1.1\r\nHost: t\r\nContent-Type: \(type)\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
            let response = try await client.response()
            let request = try #require(mock.requests.first)
            return (request: request, response: response)
        }
    }

    @Test("The parts of a form have names, file names, header fields and bodies")
    func form() async throws {
        let (request, response) = try await post(
            "--b\r\n\(Self.title)\r\nSea\r\n--sky\r\n--b\r\n"
                + "content-disposition: form-data; name=photo; filename=\"C:\\%22sea%22\\\"\r\n"
                + "Content-Type: image/jpeg\r\nX-Width:7\r\n\r\n\r\n--b--\r\n")
        #expect(response.status == 200 && response.text == "2")
        let parts = try request.parts
        #expect(parts.map(\.name) == ["title", "photo"] && parts.map(\.filename) == [nil, "C:\\\"sea\"\\"])
        #expect(parts.map(\.text) == ["Sea\r\n--sky", ""] && parts.map(\.contentType) == [nil, "image/jpeg"])
        #expect(parts[1].headers["x-width"] == "7" && parts[1].headers.count == 3)
    }

    @Test("A form may be empty, and parts of other types need no name")
    func sparse() async throws {
        #expect(try await post("--b--\r\n").request.parts.isEmpty)
        let related = try await post("--b\r\n\r\n{}\r\n--b--", as: "multipart/related; boundary=\"b\"").request.parts
        #expect(related.map(\.name) == [nil] && related.map(\.text) == ["{}"])
    }

    @Test(
        "A malformed body is an error",
        arguments: [
            "", "x", "--b", "--b\r\n", "--b\r\n--b--", "--b\r\n\r\nx\r\n--b--", "--b\r\n\(title)\r\nx\r\n--b",
            "--b\r\n\(title)\r\nx\r\n--b-", "--b\r\n\(title)\r\nx\r\n--bb--", "--b\r\n\(title)\r\nx\r\n--b--\r\nend",
            "start\r\n--b--", "--b \r\n\(title)\r\nx\r\n--b--", "--b\r\n\(title)x\r\n--b--",
            "--b\r\n\(title) folded\r\n\r\nx\r\n--b--", "--b\r\nno name: x\r\n\(title)\r\nx\r\n--b--",
            "--b\r\nContent-Disposition: attachment; name=title\r\n\r\nx\r\n--b--",
        ])
    func malformed(_ body: String) async throws {
        let (request, response) = try await post(body)
        #expect(response.status == 500 && response.text.contains("not a valid multipart body"))
        let error = #expect(throws: OriginError.self) { try request.parts }
        #expect(error?.description.contains("not a valid multipart body") == true)
    }

    @Test(
        "A body of another type, or without a valid boundary, has no parts",
        arguments: ["text/plain", "multipart/form-data", "multipart/form-data; boundary=\"\"", "multipart"])
    func otherTypes(_ type: String) async throws {
        let request = try await post("--b--\r\n", as: type).request
        let error = #expect(throws: OriginError.self) { try request.parts }
        #expect(error?.description.contains(type) == true)
    }

    @Test("A form that is not recorded completely is an error")
    func incomplete() async throws {
        var limits = OriginLimits()
        limits.recordedBodyLimit = 3
        try await MockTransport.withMock(handler: .status(200), limits: limits) { mock in
            let client = try await RawClient(mock)
            try await client.send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\n--b--")
            #expect(try await client.response().status == 200)
            let request = try #require(mock.requests.first)
            #expect(throws: OriginError.bodyNotRecorded(byteCount: 5)) { try request.parts }
        }
    }

    @Test("A form that a session sends is recorded part by part")
    func session() async throws {
        let photo = TestPattern.bytes(from: 0, count: 100_000)
        try await MockTransport.withMock(handler: .status(201)) { mock in
            let body = HTTPBody.multipart { form in
                form.field("a \"quoted\"\r\nname", "Sea\r\n--sky")
                form.data("photo", photo, filename: "C:\\sea.jpg", contentType: "image/jpeg")
                form.part("size", .json(["width": 7]), headers: ["X-Kind": "test"])
            }
            _ = try await HTTPSession(configuration: .mock(mock)).post(mock.url("/photos"), body: body)
            let parts = try #require(mock.requests.first).parts
            #expect(parts.map(\.name) == ["a \"quoted\"\r\nname", "photo", "size"])
            #expect(parts.map(\.filename) == [nil, "C:\\sea.jpg", nil])
            #expect(parts[0].text == "Sea\r\n--sky" && parts[0].contentType == nil)
            #expect(parts[1].body == photo && parts[1].contentType == "image/jpeg")
            #expect(try parts[2].decode([String: Int].self) == ["width": 7])
            #expect(parts[2].headers["X-Kind"] == "test")
        }
    }
}
