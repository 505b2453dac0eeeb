import FoundationEssentials
import Martlet
import MartletTesting
import Testing

@Suite("Response decoders", .timeLimit(.minutes(20)))
struct ResponseDecoderTests {
    private struct User: Codable, Equatable {
        var name: String
        var scores: [String: Int]
    }

    private func exchange(
        _ body: some Sequence<UInt8>, _ type: String? = nil, status: Int = 200
    ) async throws -> HTTPExchange {
        let response = OriginResponse(
            status, headers: type.map { ["Content-Type": $0] } ?? [:], body: .bytes(Array(body)))
        return try await TestOrigin.withOrigin(handler: .fixed(response)) { origin in
            try await HTTPSession.own().get(origin.url())
        }
    }

    @Test("One response can be decoded as bytes, text, a value and a JSON tree")
    func kinds() async throws {
        let found = try await exchange("{\"name\":\"é\",\"scores\":{}}".utf8, "application/json")
        #expect(found.bytes == found.body)
        #expect(found.text == "{\"name\":\"é\",\"scores\":{}}")
        #expect(try found.decode(User.self) == User(name: "é", scores: [:]))
        #expect(try found.json == ["name": "é", "scores": [:]])
        #expect(try found.decode(using: .bytes) == found.body)
        #expect(try found.decode(using: .text) == found.text)
        #expect(try found.decode(using: .json) == found.json)
        #expect(try found.decode(using: .json(User.self)) == User(name: "é", scores: [:]))
    }

    @Test(
        "Text is decoded by byte order mark, then by charset, and as UTF-8 otherwise",
        arguments: [
            ("text/plain; charset=iso-8859-15", [0xA4], "€"), ("text/plain", [0xC3, 0xA9], "é"),
            (nil, [0xC3, 0xA9], "é"), ("text/plain; charset=\"utf-32\"", [0, 1, 0xF6, 0], "😀"),
            ("text/plain; charset=latin1", [0xEF, 0xBB, 0xBF, 0x41], "A"),
            ("text/plain; charset=x", [0xFF], "\u{FFFD}"),
        ] as [(String?, [UInt8], String)])
    func text(type: String?, bytes: [UInt8], text: String) async throws {
        let found = try await exchange(bytes, type)
        #expect(found.text == text)
        #expect(try found.decode(using: .text) == text)
    }

    /// Returns the underlying error of a body that cannot be decoded.
    private func cause<Value, Cause: Error>(
        _ decode: () throws -> Value, location: SourceLocation = #_sourceLocation
    ) -> Cause? {
        let error = #expect(throws: HTTPError.self, sourceLocation: location) { _ = try decode() }
        #expect(error?.code == .decodingFailed, sourceLocation: location)
        return error?.underlying as? Cause
    }

    @Test("Strict text decoding reports an unknown charset or the first invalid byte")
    func strictText() async throws {
        let unknown = try await exchange("x".utf8, "text/plain; charset=koi8-r")
        let charset: ResponseDecodingError? = cause { try unknown.decode(using: .strictText) }
        guard case .unknownCharset("koi8-r")? = charset else {
            Issue.record("koi8-r is not known")
            return
        }
        let malformed = try await exchange([0x41, 0xFF], "text/plain")
        #expect(cause { try malformed.decode(using: .strictText) } as ResponseDecodingError? != nil)
        #expect(try malformed.decode(using: .text) == "A\u{FFFD}")
        #expect(try await exchange([0xE9], "text/plain; charset=latin1").decode(using: .strictText) == "é")
    }

    @Test(
        "Decoding validates status and content type first, and other statuses on request")
    func conditions() async throws {
        let problem = try await exchange(
            "{\"name\":\"x\",\"scores\":{}}".utf8, "application/problem+json", status: 404)
        let status = #expect(throws: HTTPError.self) { try problem.decode(using: .json(User.self)) }
        #expect(status?.code == .unacceptableStatus)
        #expect(try problem.decode(using: .json(User.self), status: 400..<500).name == "x")
        #expect(throws: HTTPError.self) { try problem.decode(using: .json, status: 404..<404) }
        let page = try await exchange("{}".utf8, "text/html")
        let type = #expect(throws: HTTPError.self) { try page.decode(using: .json) }
        #expect(type?.code == .unacceptableContentType)
        #expect(type?.exchange?.text == "{}")
        let untyped = try await exchange("{}".utf8).decode(using: .json)
        #expect(untyped.objectValue?.isEmpty == true)
    }

    @Test("The error of a decoder is the underlying error of the call's error")
    func malformedJSON() async throws {
        let found = try await exchange("{\"a\":}".utf8, "application/json")
        #expect(throws: JSONError(reason: .unexpectedByte, offset: 5)) { try found.json }
        #expect(cause { try found.decode(using: .json) } as JSONError? != nil)
        #expect(cause { try found.decode(using: .json(User.self)) } as DecodingError? != nil)
    }

    @Test("Nulls are removed from JSON before it is decoded")
    func nullRemoval() async throws {
        let found = try await exchange("{\"name\":\"a\",\"scores\":{\"x\":null,\"y\":1}}".utf8, "text/json")
        #expect(cause { try found.decode(using: .json(User.self)) } as DecodingError? != nil)
        #expect(try found.decode(using: .json(User.self, removingNulls: true)).scores == ["y": 1])
        let tree = try found.decode(using: .json(removingNulls: true))
        #expect(tree.text() == "{\"name\":\"a\",\"scores\":{\"y\":1}}")
    }

    @Test(
        "XML and binary property lists are decoded",
        arguments: [PropertyListDecoder.PropertyListFormat.xml, .binary])
    func propertyList(format: PropertyListDecoder.PropertyListFormat) async throws {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = format
        let user = User(name: "é", scores: ["a": -1])
        let found = try await exchange(try encoder.encode(user), "application/x-plist")
        #expect(try found.decode(using: .propertyList(User.self)) == user)
        let other = try await exchange(try encoder.encode(user), "text/plain")
        #expect(throws: HTTPError.self) { try other.decode(using: .propertyList(User.self)) }
    }

    @Test("A response that must be empty is checked")
    func empty() async throws {
        try await exchange([], status: 204).decode(using: .empty)
        let full = try await exchange("abc".utf8)
        let rest: ResponseDecodingError? = cause { try full.decode(using: .empty) }
        guard case .bodyNotEmpty(byteCount: 3)? = rest else {
            Issue.record("a body of three bytes is not empty")
            return
        }
        #expect(
            try await exchange(" ".utf8, "application/json").decode(using: .nilIfEmpty(.json(User.self)))
                == nil)
        #expect(try await exchange([], status: 204).decode(using: .nilIfEmpty(.json)) == .none)
        #expect(try await exchange("1".utf8).decode(using: .nilIfEmpty(.json)) == .some(1))
    }

    @Test("A compound decoder tries its decoders in order, by content type and by content")
    func compound() async throws {
        let user = User(name: "a", scores: [:])
        func decoded(_ body: some Sequence<UInt8>, _ type: String?) async throws -> User {
            try await exchange(body, type).decode(
                using: .first(of: .json(User.self), .propertyList(User.self)))
        }
        let json = Array(try JSONEncoder().encode(user))
        let plist = Array(try PropertyListEncoder().encode(user))
        #expect(try await decoded(json, "application/json") == user)
        #expect(try await decoded(plist, "application/x-plist") == user)
        #expect(try await decoded(json, nil) == user)
        #expect(try await decoded(plist, nil) == user)
        await #expect(throws: HTTPError.self) { try await decoded(json, "image/png") }
    }

    @Test("The error of a compound decoder contains the error of each decoder")
    func compoundFailure() async throws {
        let found = try await exchange("nothing".utf8, "application/xml")
        let error: ResponseDecodingError? = cause {
            try found.decode(using: .first(of: .json(User.self), .propertyList(User.self)))
        }
        guard case .noDecoderSucceeded(let errors)? = error else {
            Issue.record("nothing is no user")
            return
        }
        #expect(errors.count == 2)
        #expect((errors.first as? HTTPError)?.code == .unacceptableContentType)
        #expect(errors.last is DecodingError)
    }

    @Test("Outputs of different decoders are mapped to one type")
    func mapping() async throws {
        let decoder = ClosureResponseDecoder<String>.first(
            of: ClosureResponseDecoder<JSONValue>.json.map { "tree \($0)" },
            ClosureResponseDecoder<String>.strictText.map { "text \($0)" })
        #expect(try await exchange("[1]".utf8).decode(using: decoder) == "tree [1]")
        #expect(try await exchange("[1".utf8).decode(using: decoder) == "text [1")
        #expect(try await exchange("[1]".utf8, "text/plain").decode(using: decoder) == "text [1]")
    }

    @Test("Cancelling one decoder cancels the compound decoder")
    func cancelledCompound() async throws {
        let decoder = ClosureResponseDecoder<String>.first(
            of: ClosureResponseDecoder { _ -> String in throw CancellationError() }, .text)
        let found = try await exchange("x".utf8)
        #expect(throws: CancellationError.self) { try found.decode(using: decoder) }
    }
}
