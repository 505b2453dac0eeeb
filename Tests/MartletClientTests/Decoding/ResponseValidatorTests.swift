import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Response validation", .timeLimit(.minutes(20)))
struct ResponseValidatorTests {
    /// The error object that the test service sends.
    private struct ServiceFault: Error, Equatable {
        let words: String
    }

    private static func response(_ status: Int, _ type: String?, _ body: String) -> OriginResponse {
        OriginResponse(status, headers: type.map { ["Content-Type": $0] } ?? [:], body: .text(body))
    }

    /// Returns an exchange with a given response.
    private func exchange(
        _ status: Int = 200, _ type: String? = nil, _ body: String = "", accept: String? = nil
    ) async throws -> HTTPExchange {
        try await TestOrigin.withOrigin(handler: .fixed(Self.response(status, type, body))) { origin in
            let fields: HTTPHeaders = accept.map { [.accept: $0] } ?? [:]
            return try await HTTPSession.own().get(origin.url(), headers: fields)
        }
    }

    private func rejection(
        _ validator: ResponseValidator, of exchange: HTTPExchange
    ) async -> HTTPError? {
        await #expect(throws: HTTPError.self) { _ = try await exchange.validated(validator) }
    }

    @Test("A status of 400 or more becomes an error with the response's head and body")
    func statusCarriesTheAnswer() async throws {
        let exchange = try await exchange(422, "application/json", "{\"why\":\"no\"}")
        let error = try #require(#expect(throws: HTTPError.self) { try exchange.validated() })
        #expect(error.code == .unacceptableStatus)
        #expect(error.phase == .processingResponse)
        #expect(error.message.contains("422"))
        #expect(error.exchange?.statusCode == 422)
        #expect(try error.exchange?.json["why"] == "no")
        #expect(!error.description.contains("why"), "bodies are not printed")
    }

    @Test("Statuses are accepted by ranges and by codes")
    func statuses() async throws {
        let found = try await exchange(304)
        for validator: ResponseValidator in [
            .status(200..<400), .status(200..<300, 304..<305), .status(300...399), .status(200, 304),
            .anything,
        ] {
            #expect(try await found.validated(validator).statusCode == 304)
        }
        for validator: ResponseValidator in [
            .success, .status(200..<300), .status(200...303), .status(200, 201), .status(304..<304),
            .standard,
        ] {
            #expect(await rejection(validator, of: found)?.code == .unacceptableStatus)
        }
    }

    @Test(
        "Content types are accepted by name, by wildcard and by weight",
        arguments: [
            ("text/html; charset=x", ["text/html"], true), ("text/html", ["application/json"], false),
            ("text/html", ["application/json", "text/*"], true), ("text/html", ["*/*"], true),
            ("text/html", ["text/*, text/html;q=0"], false), ("nonsense", ["text/*"], false),
            ("nonsense", ["*/*"], true), (nil, ["text/*"], false), (nil, ["*/*"], true),
            ("text/html", [], false),
        ] as [(String?, [String], Bool)])
    func contentTypes(type: String?, ranges: [String], isTaken: Bool) async throws {
        let found = try await exchange(200, type, "x")
        let validator =
            ranges.count == 2
            ? ResponseValidator.contentType(ranges[0], ranges[1])
            : ranges.first.map { .contentType($0) } ?? .contentType()
        if isTaken {
            #expect(try await found.validated(validator).text == "x")
        } else {
            let error = await rejection(validator, of: found)
            #expect(error?.code == .unacceptableContentType)
            #expect(error?.exchange?.text == "x")
        }
    }

    @Test("An empty body needs no content type")
    func emptyBody() async throws {
        let found = try await exchange(204)
        #expect(try await found.validated(.success, .contentType("application/json")).statusCode == 204)
    }

    @Test("An empty body passes type validation whatever its Content-Type")
    func emptyTypedBody() async throws {
        let found = try await exchange(200, "text/html")
        #expect(found.response.headerFields[.contentType] == "text/html")
        #expect(try await found.validated(.contentType("application/json")).statusCode == 200)
        #expect(try found.decode(using: .nilIfEmpty(.json)) == .none)
    }

    @Test("Without an Accept field in the request, the session's Accept field decides if it was sent")
    func requestedBySession() async throws {
        let response = ResponseValidatorTests.response(200, "text/html", "x")
        try await TestOrigin.withOrigin(handler: .fixed(response)) { origin in
            let session = HTTPSession.own { $0.headers[.accept] = "application/json" }
            let found = try await session.get(origin.url())
            #expect(await rejection(.standard, of: found)?.code == .unacceptableContentType)
            let own = try await session.get(origin.url(), headers: [.accept: "text/*"])
            _ = try await own.validated(.standard)
            var options = RequestOptions()
            options.omittedFields = [.accept]
            _ = try await session.get(origin.url(), options: options).validated(.standard)
        }
    }

    @Test("The request's Accept field decides which types are accepted; without one, all are")
    func requestedTypes() async throws {
        let asked = try await exchange(200, "text/html", "x", accept: "application/json, text/*;q=0.1")
        _ = try await asked.validated(.standard)
        let other = try await exchange(200, "text/html", "x", accept: "application/json")
        #expect(await rejection(.acceptedContentType, of: other)?.code == .unacceptableContentType)
        let none = try await exchange(200, "text/html", "x")
        _ = try await none.validated(.standard)
    }

    @Test("Bodies are accepted by size")
    func sizes() async throws {
        let found = try await exchange(200, nil, "12345")
        _ = try await found.validated(.body(atMost: 5), .body(atLeast: 5), .body(atLeast: .bytes(1)))
        #expect(await rejection(.body(atMost: 4), of: found)?.code == .bodyTooLarge)
        #expect(await rejection(.body(atLeast: 6), of: found)?.code == .unacceptableBody)
        #expect(await rejection(.body(atLeast: 1), of: try await exchange(204))?.code == .unacceptableBody)
    }

    @Test("A validation closure receives head and body, may await, and its error is thrown")
    func custom() async throws {
        let validator = ResponseValidator.custom { exchange in
            await Task.yield()
            if exchange.text.contains("error") {
                throw ServiceFault(words: "\(exchange.statusCode) \(exchange.text)")
            }
        }
        let error = await #expect(throws: ServiceFault.self) {
            _ = try await exchange(200, nil, "error 7").validated(.success, validator)
        }
        #expect(error == ServiceFault(words: "200 error 7"))
        _ = try await exchange(200, nil, "fine").validated(validator)
    }

    @Test("Validators can be combined, and the first rejection is the error")
    func composition() async throws {
        let found = try await exchange(500, "text/html", "x")
        let type = ResponseValidator.contentType("application/json")
        #expect(await rejection(.all(.success, type), of: found)?.code == .unacceptableStatus)
        #expect(await rejection(type.and(.success), of: found)?.code == .unacceptableContentType)
        _ = try await found.validated(.all(.status(500), .contentType("text/*")))
        _ = try await found.validated(.all())
    }

    @Test("The session's validator checks every response unless the call overrides it")
    func ofSession() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(Self.response(404, "text/plain", "gone"))) { origin in
            let session = HTTPSession.own { $0.validator = .success }
            let error = await #expect(throws: HTTPError.self) { _ = try await session.get(origin.url()) }
            #expect(error?.code == .unacceptableStatus)
            #expect(error?.exchange?.text == "gone")
            let options = RequestOptions(validator: .anything)
            #expect(try await session.get(origin.url(), options: options).text == "gone")
            let task = try await session.task(for: HTTPRequest(method: .get, url: origin.url()))
            let other = await #expect(throws: HTTPError.self) { _ = try await task.value }
            #expect(other?.code == .unacceptableStatus)
            let strict = RequestOptions(validator: .custom { _ in throw ServiceFault(words: "no") })
            await #expect(throws: ServiceFault(words: "no")) {
                _ = try await HTTPSession.own().get(origin.url(), options: strict)
            }
            #expect(session.poolStatus.leased == 0)
        }
    }

    @Test("Every verb accepts conditions in addition to the session's validator")
    func verbs() async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin(handler: .fixed(.text("no", status: 404))) { origin async throws in
            let (session, url) = (HTTPSession.own(), origin.url())
            let verbs: [@Sendable (ResponseValidator?) async throws -> Int] = [
                { try await session.send(url, validate: $0).statusCode },
                { try await session.send(.options, url, validate: $0).statusCode },
                { try await session.get(url, validate: $0).statusCode },
                { try await session.get(url, query: Query(), validate: $0).statusCode },
                { try await session.head(url, validate: $0).statusCode },
                { try await session.delete(url, validate: $0).statusCode },
                { try await session.post(url, validate: $0).statusCode },
                { try await session.put(url, validate: $0).statusCode },
                { try await session.patch(url, validate: $0).statusCode },
                { try await session.upload(.text("a"), to: url, validate: $0).statusCode },
                { try await session.stream(url, validate: $0) { response, _ in response.status.code } },
                { try await session.open(url, validate: $0).statusCode },
                { try await session.task(for: url, validate: $0).value.statusCode },
            ]
            for (index, verb) in verbs.enumerated() {
                #expect(try await verb(nil) == 404, "\(index)")
                let error = await #expect(throws: HTTPError.self) { try await verb(.success) }
                #expect(error?.code == .unacceptableStatus && error?.status == 404, "\(index)")
            }
            let error = await #expect(throws: HTTPError.self) {
                try await session.save(url, to: directory.path + "/a", overwrites: true, validate: .status(204))
            }
            #expect(error?.code == .unacceptableStatus)
            // The results of these functions are discardable.
            try await session.delete(url)
            try await session.post(url, body: .text("a"))
            try await session.put(url, body: .text("a"))
            try await session.patch(url, body: .text("a"))
        }
    }

    private struct Query: Encodable {}
}
