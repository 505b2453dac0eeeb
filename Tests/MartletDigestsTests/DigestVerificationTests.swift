import Foundation
import Martlet
import MartletContent
import MartletTesting
import Testing

@Suite("Digest fields: verification of responses")
struct DigestVerificationTests {
    /// A framing of a response, and the place of its digest.
    enum Form: CaseIterable, Sendable {
        case length, chunked, untilClose, trailer

        func response(_ body: [UInt8], _ name: String, _ value: String) -> OriginResponse {
            .bytes(body).with { response in
                switch self {
                case .length: break
                case .chunked, .trailer: response.framing = .chunked(size: 5)
                case .untilClose: response.framing = .untilClose
                }
                if self == .trailer {
                    response.trailers.append(name, value)
                } else {
                    response.headers.append(name, value)
                }
            }
        }
    }

    @Test("A body with the right digest is returned", arguments: Reading.allCases, Form.allCases)
    func matching(_ reading: Reading, _ form: Form) async throws {
        let value = try DigestScene.field(DigestScene.bytes, .sha256, .sha512)
        for name in ["Content-Digest", "Repr-Digest"] {
            try await TestOrigin.withOrigin { _ in
                form.response(DigestScene.bytes, name, value)
            } run: { origin in
                for policy in [DigestVerificationPolicy.whenPresent, .required] {
                    let body = try await reading.body(of: origin.url(), with: DigestScene.session(policy))
                    #expect(body == DigestScene.bytes)
                }
            }
        }
    }

    @Test("A body with a wrong digest is never returned", arguments: Reading.allCases, Form.allCases)
    func mismatching(_ reading: Reading, _ form: Form) async throws {
        for (name, algorithm) in [("Content-Digest", DigestAlgorithm.sha256), ("Repr-Digest", .sha512)] {
            let value = try DigestScene.wrong(algorithm)
            try await TestOrigin.withOrigin { request in
                request.path == "/good" ? .text("good") : form.response(DigestScene.bytes, name, value)
            } run: { origin in
                let session = DigestScene.session()
                let error = await DigestScene.expectMismatch { try await reading.body(of: origin.url(), with: session) }
                #expect(error?.message.contains(name) == true && error?.message.contains(value) == true)
                #expect(error?.wasSent == true && error?.url?.absoluteString == origin.url("/"))
                // The session is usable afterwards, also for the same host.
                let good = try await session.get(origin.url("/good"))
                #expect(good.text == "good")
            }
        }
    }

    @Test("A stream of a large body ends with the error, before all bytes were delivered")
    func large() async throws {
        let count: UInt64 = 3 << 20
        let right = try DigestScene.field(TestPattern.bytes(from: 0, count: Int(count)), .sha256)
        for value in [right, try DigestScene.wrong()] {
            try await TestOrigin.withOrigin { _ in
                .pattern(count, headers: ["Content-Digest": value])
            } run: { origin in
                var received: UInt64 = 0
                let session = DigestScene.session()
                do {
                    try await session.stream(origin.url()) { _, body in
                        for try await piece in body { received += UInt64(piece.count) }
                    }
                    #expect(value == right && received == count)
                } catch let error as HTTPError {
                    #expect(value != right && error.code == .checksumMismatch && received < count)
                }
            }
        }
    }

    /// A response, and whether it satisfies the policies.
    struct Row: Sendable, CustomStringConvertible {
        let description: String
        var method = HTTPRequest.Method.get
        var status = 200
        var fields: [(String, String)]
        var isAccepted: Bool
        var isAcceptedIfRequired: Bool?
    }

    private static func rows() throws -> [Row] {
        let (right, wrong) = (try DigestScene.field(DigestScene.bytes, .sha256), try DigestScene.wrong())
        let right512 = try DigestScene.field(DigestScene.bytes, .sha512)
        return [
            Row(description: "no digest", fields: [], isAccepted: true, isAcceptedIfRequired: false),
            Row(description: "no digest in an error", status: 404, fields: [], isAccepted: true),
            Row(description: "an error", status: 404, fields: [("Content-Digest", wrong)], isAccepted: false),
            Row(description: "a server error", status: 500, fields: [("Repr-Digest", wrong)], isAccepted: false),
            Row(
                description: "one of two functions is wrong",
                fields: [("Content-Digest", "\(right512), \(wrong)")], isAccepted: false),
            Row(
                description: "one of two lines is wrong",
                fields: [("Content-Digest", right512), ("Content-Digest", wrong)], isAccepted: false),
            Row(
                description: "one of two fields is wrong",
                fields: [("Content-Digest", right), ("Repr-Digest", wrong)], isAccepted: false),
            Row(
                description: "the last duplicate counts", fields: [("Content-Digest", "\(wrong), \(right)")],
                isAccepted: true),
            Row(
                description: "broken functions are ignored",
                fields: [("Content-Digest", "md5=:AAAA:, sha=:AAAA:, crc32c=:AAAA:")],
                isAccepted: true, isAcceptedIfRequired: false),
            Row(
                description: "a field with a syntax error is ignored", fields: [("Content-Digest", "\(wrong), =")],
                isAccepted: true, isAcceptedIfRequired: false),
            Row(
                description: "a digest of the wrong length is ignored", fields: [("Content-Digest", "sha-256=:AAAA:")],
                isAccepted: true, isAcceptedIfRequired: false),
            Row(
                description: "a part and the digest of the whole", status: 206,
                fields: [("Content-Range", "bytes 0-11/99"), ("Repr-Digest", wrong), ("Content-Digest", right)],
                isAccepted: true),
            Row(
                description: "a part without a digest of its own", status: 206,
                fields: [("Content-Range", "bytes 0-11/99"), ("Repr-Digest", wrong)], isAccepted: true,
                isAcceptedIfRequired: false),
            Row(
                description: "a part with a wrong digest", status: 206,
                fields: [("Content-Range", "bytes 0-11/99"), ("Content-Digest", wrong)], isAccepted: false),
            Row(description: "a POST", method: .post, fields: [("Repr-Digest", wrong)], isAccepted: false),
            Row(
                description: "a POST that describes another resource", method: .post,
                fields: [("Repr-Digest", wrong), ("Content-Location", "/other")], isAccepted: true,
                isAcceptedIfRequired: false),
            Row(
                description: "a GET with the location of the representation",
                fields: [("Repr-Digest", wrong), ("Content-Location", "/other")], isAccepted: false),
        ]
    }

    @Test("The fields of a response decide whether its body is accepted", arguments: try rows())
    func table(_ row: Row) async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse(
                row.status, headers: OriginFields(row.fields.map { (name: $0.0, value: $0.1) }),
                body: .bytes(DigestScene.bytes))
        } run: { origin in
            for policy in [DigestVerificationPolicy.whenPresent, .required] {
                let session = DigestScene.session(policy)
                let request = try HTTPRequest(method: row.method, url: origin.url())
                let isAccepted = policy == .required ? row.isAcceptedIfRequired ?? row.isAccepted : row.isAccepted
                if isAccepted {
                    #expect(try await session.send(request).body == DigestScene.bytes)
                } else {
                    await DigestScene.expectMismatch { try await session.send(request).body }
                }
            }
        }
    }

    @Test(
        "Responses without content are accepted, whatever they say about that of other responses",
        arguments: [(HTTPRequest.Method.head, 200), (.get, 204), (.get, 304)],
        [DigestVerificationPolicy.whenPresent, .required])
    func withoutContent(_ response: (HTTPRequest.Method, Int), _ policy: DigestVerificationPolicy) async throws {
        let wrong = try DigestScene.wrong()
        let script = ServerScript.respond(
            "HTTP/1.1 \(response.1) X\r\nContent-Digest: \(wrong)\r\nRepr-Digest: \(wrong)\r\n\r\n")
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let request = try HTTPRequest(method: response.0, url: origin.url())
            let exchange = try await DigestScene.session(policy).send(request)
            #expect(exchange.statusCode == response.1 && exchange.body.isEmpty)
        }
    }

    @Test("The digest of an empty body is verified", arguments: Reading.allCases)
    func empty(_ reading: Reading) async throws {
        for (value, isRight) in [(try DigestScene.field([], .sha256), true), (try DigestScene.wrong(), false)] {
            try await TestOrigin.withOrigin { _ in
                .bytes([], headers: ["Content-Digest": value])
            } run: { origin in
                let session = DigestScene.session()
                if isRight {
                    let body = try await reading.body(of: origin.url(), with: session)
                    #expect(body == [])
                } else {
                    await DigestScene.expectMismatch { try await reading.body(of: origin.url(), with: session) }
                }
            }
        }
    }

    @Test(
        "Digests are those of the encoded bytes", arguments: Reading.allCases,
        [OriginFraming.automatic, .chunked(size: 7)])
    func encoded(_ reading: Reading, _ framing: OriginFraming) async throws {
        let encoded = StoredCoding.gzip(DigestScene.bytes)
        for (content, isRight) in [(encoded, true), (DigestScene.bytes, false)] {
            let value = try DigestScene.field(content, .sha256)
            try await TestOrigin.withOrigin { _ in
                .encoded(encoded, coding: "gzip", headers: ["Content-Digest": value, "Repr-Digest": value]).with {
                    $0.framing = framing
                }
            } run: { origin in
                let session = DigestScene.session(.required)
                if isRight {
                    let body = try await reading.body(of: origin.url(), with: session)
                    #expect(body == DigestScene.bytes)
                } else {
                    await DigestScene.expectMismatch { try await reading.body(of: origin.url(), with: session) }
                }
            }
        }
    }

    @Test(
        "A chunked body without digests is accepted unless they are required, whatever its trailers",
        arguments: Reading.allCases)
    func trailersWithoutDigest(_ reading: Reading) async throws {
        try await TestOrigin.withOrigin { _ in
            .text(DigestScene.text).with {
                $0.framing = .chunked(size: 3)
                $0.trailers = ["Content-Digest": "md5=:AAAA:", "X-Sum": "1"]
            }
        } run: { origin in
            let body = try await reading.body(of: origin.url(), with: DigestScene.session())
            #expect(body == DigestScene.bytes)
            let error = await DigestScene.expectMismatch {
                try await reading.body(of: origin.url(), with: DigestScene.session(.required))
            }
            #expect(error?.underlying as? DigestError == .missing)
        }
    }

    @Test("A correct header does not excuse a wrong trailer")
    func bothPlaces() async throws {
        let (right, wrong) = (try DigestScene.field(DigestScene.bytes, .sha256), try DigestScene.wrong(.sha512))
        try await TestOrigin.withOrigin { _ in
            .text(DigestScene.text, headers: ["Content-Digest": right]).with {
                $0.framing = .chunked()
                $0.trailers = ["Content-Digest": wrong]
            }
        } run: { origin in
            await DigestScene.expectMismatch { try await DigestScene.session().get(origin.url()).body }
        }
    }

    @Test("Digests are off by default, and the options of a call override the session's policy")
    func policies() async throws {
        let wrong = try DigestScene.wrong()
        #expect(SessionConfiguration.default.digestVerification == .off)
        #expect(RequestOptions().digestVerification == nil)
        try await TestOrigin.withOrigin { _ in
            .text(DigestScene.text, headers: ["Content-Digest": wrong])
        } run: { origin in
            let off = DigestScene.session(.off)
            let unverified = try await off.get(origin.url())
            #expect(unverified.text == DigestScene.text)
            await DigestScene.expectMismatch {
                try await off.get(origin.url(), options: .init { $0.digestVerification = .whenPresent }).text
            }
            let on = DigestScene.session(.required)
            // A raw body contains its framing, and is not verified.
            for options in [RequestOptions { $0.digestVerification = .off }, .init { $0.returnsRawBody = true }] {
                let exchange = try await on.get(origin.url(), options: options)
                #expect(exchange.text == DigestScene.text)
            }
        }
    }

    @Test("A required digest is asked for, unless the caller asks differently")
    func preferences() async throws {
        let value = try DigestScene.field(DigestScene.bytes, .sha256)
        try await TestOrigin.withOrigin { _ in
            .text(DigestScene.text, headers: ["Content-Digest": value])
        } run: { origin in
            _ = try await DigestScene.session(.required).get(origin.url())
            _ = try await DigestScene.session(.required).get(origin.url(), headers: ["Want-Repr-Digest": "sha-512=9"])
            _ = try await DigestScene.session().get(origin.url())
            let fields = origin.recorder.requests.map { $0.headers }
            #expect(fields.map { $0["Want-Repr-Digest"] } == ["sha-256=10, sha-512=3", "sha-512=9", nil])
            #expect(
                fields.map { $0["Want-Content-Digest"] } == ["sha-256=10, sha-512=3", "sha-256=10, sha-512=3", nil])
        }
    }

    @Test("Redirects and challenges are followed though they have no digest, and the last response is verified")
    func hops() async throws {
        let (right, wrong) = (try DigestScene.field(DigestScene.bytes, .sha256), try DigestScene.wrong())
        try await TestOrigin.withOrigin { request in
            if request.path != "/right", request.path != "/wrong" {
                return .redirect(to: request.path == "/to-right" ? "/right" : "/wrong").with {
                    $0.body = .text("moved")
                }
            }
            guard request.headers["Authorization"] != nil else {
                return .status(401, headers: ["WWW-Authenticate": "Basic realm=\"r\""])
            }
            return .text(DigestScene.text, headers: ["Content-Digest": request.path == "/right" ? right : wrong])
        } run: { origin in
            let session = DigestScene.session(.required) {
                $0.authentication.credentials = .any(user: "u", password: "p")
            }
            let right = try await session.get(origin.url("/to-right"))
            #expect(right.text == DigestScene.text)
            await DigestScene.expectMismatch { try await session.get(origin.url("/to-wrong")).text }
        }
    }

    @Test("A middleware that reads the body receives the error, also after the network middleware")
    func middleware() async throws {
        let wrong = try DigestScene.wrong()
        let reader = ClosureMiddleware { request, _, next in
            var response = try await next(request)
            response.setBody(try await response.body?.collect() ?? [])
            return response
        }
        try await TestOrigin.withOrigin { _ in
            .text(DigestScene.text, headers: ["Content-Digest": wrong])
        } run: { origin in
            for isNetwork in [false, true] {
                let session = DigestScene.session {
                    if isNetwork { $0.networkMiddleware = [reader] } else { $0.middleware = [reader] }
                }
                await DigestScene.expectMismatch { try await session.get(origin.url()).text }
            }
        }
    }

    @Test("A truncated body is reported as truncated, not as a mismatch")
    func truncated() async throws {
        let value = try DigestScene.field(DigestScene.bytes, .sha256)
        let script = ServerScript.respond(
            "HTTP/1.1 200 OK\r\nContent-Digest: \(value)\r\nContent-Length: 12\r\n\r\nhello")
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let error = await #expect(throws: HTTPError.self) { try await DigestScene.session().get(origin.url()) }
            #expect(error?.code == .truncated)
        }
    }

    @Test("A field with thousands of members is verified within the limits of the head")
    func manyMembers() async throws {
        let wrong = try DigestScene.wrong()
        let members = (0..<2000).map { "a\($0)=1" }.joined(separator: ",") + ",\(wrong)"
        try await TestOrigin.withOrigin { _ in
            .text(DigestScene.text, headers: ["Content-Digest": members])
        } run: { origin in
            await DigestScene.expectMismatch { try await DigestScene.session().get(origin.url()).text }
        }
    }

    @Test("The policy survives coding")
    func coding() throws {
        for policy in DigestVerificationPolicy.allCases {
            let options = RequestOptions { $0.digestVerification = policy }
            let read = try JSONDecoder().decode(RequestOptions.self, from: try JSONEncoder().encode(options))
            #expect(read.digestVerification == policy)
            var configuration = SessionConfiguration.default
            configuration.digestVerification = policy
            let copy = try JSONDecoder().decode(
                SessionConfiguration.self, from: try JSONEncoder().encode(configuration))
            #expect(copy.digestVerification == policy)
        }
    }
}
