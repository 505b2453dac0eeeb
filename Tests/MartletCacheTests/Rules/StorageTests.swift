import MartletCache
import MartletWire
import Testing

@Suite("Storing of responses")
struct StorageTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let status: Int
        let response: String
        let request: String
        let method: String
        let mode: CacheMode
        let partition: String
        let rejection: StorageRejection?
        var testDescription: String {
            "\(method) \(request.debugDescription): \(status) \(response.debugDescription)"
        }

        init(
            _ status: Int, _ response: String, _ rejection: StorageRejection?, to request: String = "",
            method: String = "GET", mode: CacheMode = .standard, partition: String = ""
        ) {
            self.status = status
            self.response = response
            self.request = request
            self.method = method
            self.mode = mode
            self.partition = partition
            self.rejection = rejection
        }
    }

    static let rows: [Row] =
        [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501].map { Row($0, "", nil) }
        + [201, 202, 302, 303, 307, 400, 401, 403, 418, 500, 502, 503, 504, 599].map {
            Row($0, "", .notCacheable)
        }
        + [201, 302, 307, 403, 500, 503, 599].map { Row($0, "Cache-Control: max-age=60", nil) }
        + [100, 103, 206, 304].map { Row($0, "Cache-Control: max-age=60", .status) }
        + ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "get", "QUERY"].map {
            Row(200, "Cache-Control: max-age=60", .method, method: $0)
        } + [
            Row(200, "Cache-Control: no-store", .noStore),
            Row(200, "Cache-Control: max-age=60, no-store", .noStore),
            Row(200, "Cache-Control: a=\"b, no-store", .noStore),
            Row(200, "Cache-Control: max-age=60", .noStore, to: "Cache-Control: no-store"),
            Row(200, "Cache-Control: max-age=60", .noStore, mode: .noStore),
            Row(200, "Cache-Control: no-cache", nil),
            Row(200, "Cache-Control: private", nil),
            Row(200, "Cache-Control: private=\"x\"", nil),
            Row(302, "Cache-Control: private", nil),
            Row(302, "Cache-Control: public", nil),
            Row(302, "Cache-Control: s-maxage=60", .notCacheable),
            Row(302, "Expires: 0", nil),
            Row(302, "Expires: {60}", nil),
            Row(200, "Set-Cookie: a=b", nil),
            Row(200, "Cache-Control: must-understand, no-store, max-age=60", nil),
            Row(599, "Cache-Control: must-understand, no-store, max-age=60", .status),
            Row(599, "Cache-Control: must-understand, max-age=60", .status),
            Row(200, "", .range, to: "Range: bytes=0-1"),
            Row(200, "", nil, to: "If-None-Match: \"a\""),
            Row(200, "Vary: *", .vary),
            Row(200, "Vary: Accept, *", .vary),
            Row(200, "Vary: Accept\nVary: *", .vary),
            Row(200, "Vary: not a name", .vary),
            Row(200, "Vary: Accept", nil),
            Row(200, "Vary: Cookie", .vary, to: "Cookie: a=b"),
            Row(200, "Vary: Cookie", nil),
            Row(200, "Cache-Control: max-age=60", .authorization, to: "Authorization: Basic eA=="),
            Row(200, "Cache-Control: max-age=60", nil, to: "Authorization: Basic eA==", partition: "1f"),
            Row(200, "Cache-Control: private", .authorization, to: "Authorization: Basic eA=="),
            Row(200, "Cache-Control: public", nil, to: "Authorization: Basic eA=="),
            Row(200, "Cache-Control: must-revalidate", nil, to: "Authorization: Basic eA=="),
            Row(200, "Cache-Control: s-maxage=9", nil, to: "Authorization: Basic eA=="),
            Row(200, "Cache-Control: public, a=\"", .authorization, to: "Authorization: Basic eA=="),
            Row(200, "Connection: close, X-Hop", nil),
            Row(200, "Connection: cache-control\nCache-Control: max-age=60", .connection),
            Row(200, "Connection: Vary", .connection),
        ]

    @Test(
        "A response is stored if RFC 9111 allows it for a private cache, or else rejected with a reason",
        arguments: rows
    )
    func stored(_ row: Row) {
        let decision = StorageDecision(
            Scene.response(row.status, row.response),
            to: Scene.request(row.request, method: row.method, mode: row.mode, partition: row.partition),
            requestTime: Scene.at(-1), responseTime: Scene.at(0))
        switch decision {
        case .store(let head):
            #expect(row.rejection == nil)
            #expect(head.status == row.status && head.key.partition == row.partition)
            #expect(head.wasAuthorized == row.request.hasPrefix("Authorization"))
        case .reject(let rejection): #expect(row.rejection == rejection)
        }
    }

    @Test("Fields of the connection and of a proxy are not stored, and all others are, in order")
    func strippedFields() throws {
        let text = """
            Date: {0}
            Connection: close, X-Hop
            X-Hop: 1
            x-hop: 2
            Keep-Alive: timeout=5
            Transfer-Encoding: chunked
            Trailer: X-End
            TE: trailers
            Upgrade: h2c
            Proxy-Authenticate: Basic
            Proxy-Authentication-Info: x
            Proxy-Connection: close
            Set-Cookie: a=b
            Set-Cookie: c=d
            X-Unknown: e
            Content-Length: 5
            """
        let decision = StorageDecision(
            Scene.response(200, text), to: Scene.request(), requestTime: Scene.at(0),
            responseTime: Scene.at(0))
        guard case .store(let head) = decision else { throw Missing() }
        #expect(
            Scene.text(head.fields) == """
                Date: Fri, 15 Jan 2027 08:00:00 GMT
                Set-Cookie: a=b
                Set-Cookie: c=d
                X-Unknown: e
                """)
    }

    @Test(
        "A response without a valid date gets the date of its arrival",
        arguments: ["", "Date: soon\n"])
    func missingDate(_ date: String) throws {
        let decision = StorageDecision(
            Scene.response(200, date + "X: y"), to: Scene.request(), requestTime: Scene.at(0),
            responseTime: Scene.at(7))
        guard case .store(let head) = decision else { throw Missing() }
        #expect(Scene.text(head.fields) == "X: y\nDate: Fri, 15 Jan 2027 08:00:07 GMT")
    }

    @Test("A secret that a response varies on is stored only as a digest")
    func secretAsDigest() throws {
        let request = Scene.request("Cookie: sid=hush\nCookie: b=c") { "digest of \($0.utf8.count)" }
        let decision = StorageDecision(
            Scene.response(200, "Vary: Cookie, Accept"), to: request, requestTime: Scene.at(0),
            responseTime: Scene.at(0))
        guard case .store(let head) = decision else { throw Missing() }
        #expect(
            head.selections == [
                .init(name: "accept", value: nil), .init(name: "cookie", value: "digest of 13"),
            ])
        #expect(!String(describing: head.selections).contains("hush"))
    }

    struct Missing: Error {}
}
