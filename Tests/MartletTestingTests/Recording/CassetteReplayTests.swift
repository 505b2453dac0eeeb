import MartletContent
import MartletCore
import MartletTesting
import Testing

@Suite("Replaying a cassette", .timeLimit(.minutes(5)))
struct CassetteReplayTests {
    private let scene: CassetteScene

    init() throws { scene = try CassetteScene() }

    @Test("An unmatched request is an error with the nearest candidates, and nothing is sent")
    func unmatched() async throws {
        try scene.write([
            "http://other.org/": "", "http://example.org/users?page=1": "", "http://example.org/posts?page=2": "",
            "http://example.org/users?page=3": "", "http://example.org/users/7": "",
        ])
        try await CassetteScene.withSession(0) { session in
            let error = await #expect(throws: CassetteError.self) {
                try await session.with(scene.cassette(.replay)).get("http://example.org/users?page=2")
            }
            guard case .unmatched(let mismatch) = error else { return _ = Issue.record("\(String(describing: error))") }
            #expect(mismatch.candidates.map(\.index) == [1, 3, 2])
            #expect(mismatch.candidates[0].differences == ["query: recorded “page=1”, sent “page=2”"])
            #expect(mismatch.candidates[2].differences == ["path: recorded “/posts”, sent “/users”"])
            #expect(
                mismatch.description
                    == """
                    GET http://example.org/users?page=2: no recorded request matches in \(scene.file); change the \
                    matching rule, or record again with the mode .record
                      entry 1, GET http://example.org/users?page=1: query: recorded “page=1”, sent “page=2”
                      entry 3, GET http://example.org/users?page=3: query: recorded “page=3”, sent “page=2”
                      entry 2, GET http://example.org/posts?page=2: path: recorded “/posts”, sent “/users”
                    """)
        }
    }

    @Test("Equal requests get their responses in order, then the last one or an error")
    func repeats() async throws {
        try scene.write(["http://e.org/": "1", "http://e.org/b": "b", "http://e.org/": "2"])
        try await CassetteScene.withSession(0) { session in
            func texts(_ count: Int, _ session: HTTPSession) async throws -> [String] {
                var texts: [String] = []
                for _ in 0..<count { texts.append(try await session.get("http://e.org/").text) }
                return texts
            }
            let first = session.with(try scene.cassette(.replay))
            let second = session.with(try scene.cassette(.replay) { $0.repeats = .never })
            #expect(try await texts(4, first) == ["1", "2", "2", "2"])
            #expect(try await texts(2, second) == ["1", "2"])
            let error = await #expect(throws: CassetteError.self) { try await second.get("http://e.org/") }
            #expect(try #require(error).description.contains("all matching responses were used"))
            #expect(try #require(error).description.contains("entry 2, GET http://e.org/: already used"))
            #expect(try await second.get("http://e.org/b").text == "b")
        }
    }

    @Test("Concurrent calls use each recorded response once")
    func concurrent() async throws {
        let texts = (0..<40).map { "\($0)" }
        try scene.write(CassetteScene.har(texts.map { CassetteScene.entry(url: "http://e.org/", text: $0) }))
        try await CassetteScene.withSession(0) { session in
            let view = session.with(try scene.cassette(.replay) { $0.repeats = .never })
            let received = try await withThrowingTaskGroup(of: String.self) { group in
                for _ in texts { group.addTask { try await view.get("http://e.org/").text } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(received.sorted() == texts.sorted())
        }
    }

    @Test("Only missing requests are sent and added; other entries and members are preserved")
    func replayOrRecord() async throws {
        let failed = #"{"_x":1,"request":{"method":"GET","url":"http://e.org/f"},"response":{"status":0}}"#
        try scene.write(
            #"{"log":{"comment":"kept","entries":["#
                + [failed, CassetteScene.entry(url: "http://e.org/", text: "old")].joined(separator: ",") + "]}}")
        try await CassetteScene.withSession(2, { .text("new \($0.path)") }) { session in
            let cassette = try scene.cassette(.replayOrRecord)
            let view = session.with(cassette)
            #expect(try await view.get("http://e.org/").text == "old")
            for _ in 1...2 { #expect(try await view.get("http://e.org/f").text == "new /f") }
            #expect(cassette.entries.count == 3)
        }
        let log = try #require(JSONValue(parsing: try scene.bytes())["log"])
        #expect(log["comment"] == "kept" && log["entries"]?[0]?["_x"] == 1 && log["entries"]?.arrayValue?.count == 4)
        let size = try scene.bytes()
        try await CassetteScene.withSession(0) { session in
            let cassette = try scene.cassette(.replayOrRecord) { $0.repeats = .never }
            for path in ["f", "", "f"] { _ = try await session.with(cassette).get("http://e.org/\(path)") }
            try await cassette.save()
        }
        #expect(try scene.bytes() == size)
    }

    @Test("A new recording replaces the file, and records every request")
    func recordsAgain() async throws {
        try scene.write("not JSON")
        try await CassetteScene.withSession(2, { .text($0.path) }) { session in
            let view = session.with(try scene.cassette(.record))
            for _ in 1...2 { _ = try await view.get("http://e.org/a") }
            #expect(try scene.cassette(.replay).entries.map(\.body) == [Array("/a".utf8), Array("/a".utf8)])
        }
    }

    @Test("A missing file is an error only if nothing can be recorded")
    func missing() throws {
        let error = #expect(throws: CassetteError.self) { try scene.cassette(.replay) }
        #expect(try #require(error).description.contains("record the cassette with the mode .record"))
        for mode in [Cassette.Mode.record, .replayOrRecord] { #expect(try scene.cassette(mode).entries.isEmpty) }
    }

    @Test("Middleware of the session runs above the cassette")
    func middleware() async throws {
        try scene.write(["http://e.org/b": "b"])
        func configure(_ configuration: inout SessionConfiguration) {
            let rewrite = ClosureMiddleware { request, _, next in
                try await next(HTTPCall.Request(HTTPRequest(method: .get, url: try HTTPURL("http://e.org/b"))))
            }
            configuration.middleware = [rewrite]
            configuration.networkMiddleware = [rewrite]
        }
        try await CassetteScene.withSession(0, { _ in .status(500) }, configure) { session in
            let view = session.with(try scene.cassette(.replay))
            let text = try await view.get("http://e.org/a").text
            #expect(text == "b")
        }
    }

    /// A recorded and a sent request, and whether they match.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let rule: @Sendable (inout CassetteMatching) -> Void
        var method = ("GET", HTTPRequest.Method.get)
        var url = ("http://e.org/", "http://e.org/")
        var headers: ([(String, String)], HTTPHeaders) = ([], [:])
        var body: (String?, String?) = (nil, nil)
        let difference: String?

        static let all: [Case] = [
            Case(testDescription: "equal", rule: { _ in }, difference: nil),
            Case(
                testDescription: "method", rule: { _ in }, method: ("PUT", .get),
                difference: "method: recorded “PUT”, sent “GET”"),
            Case(
                testDescription: "default port and fragment", rule: { _ in },
                url: ("http://E.org:80/#a", "http://e.org/#b"), difference: nil),
            Case(
                testDescription: "scheme", rule: { _ in }, url: ("https://e.org/", "http://e.org/"),
                difference: "origin: recorded “https://e.org”, sent “http://e.org”"),
            Case(
                testDescription: "query order", rule: { _ in }, url: ("http://e.org/?a=1&b=2", "http://e.org/?b=2&a=1"),
                difference: "query: recorded “a=1&b=2”, sent “b=2&a=1”"),
            Case(
                testDescription: "ignored query order", rule: { $0.ignoresQueryOrder = true },
                url: ("http://e.org/?a=1&b=2&a=3", "http://e.org/?b=2&a=1&a=3"), difference: nil),
            Case(
                testDescription: "order of one name", rule: { $0.ignoresQueryOrder = true },
                url: ("http://e.org/?a=1&a=2", "http://e.org/?a=2&a=1"),
                difference: "query: recorded “a=1&a=2”, sent “a=2&a=1”"),
            Case(
                testDescription: "ignored items", rule: { $0.ignoredQueryItems = ["t ime"] },
                url: ("http://e.org/?t%20ime=1&a=1", "http://e.org/?a=1&t+ime=2&t+ime"), difference: nil),
            Case(
                testDescription: "other items", rule: { $0.ignoredQueryItems = ["time"] },
                url: ("http://e.org/?times=1", "http://e.org/?time=1"), difference: "query: recorded “times=1”, sent “”"
            ),
            Case(
                testDescription: "ignored fields and bodies", rule: { _ in }, headers: ([("X-A", "1")], ["X-A": "2"]),
                body: ("a", "b"), difference: nil),
            Case(
                testDescription: "fields", rule: { $0.headers = [.accept] },
                headers: ([("accept", "a"), ("Accept", "b")], ["Accept": "a"]),
                difference: "field Accept: recorded “a, b”, sent “a”"),
            Case(
                testDescription: "missing fields", rule: { $0.headers = [.accept, .contentType] },
                headers: ([("accept", "a")], ["Accept": "a"]), difference: nil),
            Case(
                testDescription: "bytes", rule: { $0.body = .exact }, body: ("abc", "abd"),
                difference: "body: recorded 3 bytes, sent 3, different from byte 2"),
            Case(testDescription: "equal bytes", rule: { $0.body = .exact }, body: ("abc", "abc"), difference: nil),
            Case(
                testDescription: "equal JSON", rule: { $0.body = .json },
                body: (#"{"a":1.0,"b":[1,{}]}"#, #" {"b":[10e-1,{ }],"a":1}"#), difference: nil),
            Case(
                testDescription: "other JSON", rule: { $0.body = .json },
                body: (#"{"a":{"b":[1,2]}}"#, #"{"a":{"b":[1,3]}}"#), difference: "body: JSON differs at .a.b[1]"),
            Case(
                testDescription: "missing member", rule: { $0.body = .json }, body: (#"{"a":1}"#, #"{"a":1,"c":2}"#),
                difference: "body: JSON differs at .c"),
            Case(
                testDescription: "no JSON", rule: { $0.body = .json }, body: (#"{"a":1}"#, "{"),
                difference: "body: only one of the bodies is JSON"),
            Case(
                testDescription: "equal forms", rule: { $0.body = .form }, body: ("b=2&a=1", "a=1&b=2"),
                difference: nil),
            Case(
                testDescription: "other forms", rule: { $0.body = .form }, body: ("a=1", "a=2"),
                difference: "body: recorded form “a=1”, sent “a=2”"),
            Case(
                testDescription: "custom", rule: { $0 = .custom { $0.request.url.host == $1.url.host } },
                method: ("PUT", .get), url: ("http://e.org/a", "http://e.org/b"), difference: nil),
            Case(
                testDescription: "rejected by custom",
                rule: { $0 = .custom { $0.request.body == $1.body && $1.body.isEmpty } },
                body: ("x", nil), difference: "rejected by the custom rule"),
        ]
    }

    @Test("Requests match by the rule, and the error names what differs", arguments: Case.all)
    func matching(_ test: Case) async throws {
        try scene.write(
            CassetteScene.har([
                CassetteScene.entry(
                    method: test.method.0, url: test.url.0, headers: test.headers.0, body: test.body.0, text: "found")
            ]))
        try await CassetteScene.withSession(0) { session in
            let cassette = try scene.cassette(.replay) { test.rule(&$0.matching) }
            let body = test.body.1.map { HTTPBody.text($0, contentType: nil) } ?? .none
            var request = HTTPRequest(method: test.method.1, url: try HTTPURL(test.url.1))
            for field in test.headers.1 { request.headerFields.append(field) }
            do {
                #expect(try await session.with(cassette).send(request, body: body).text == "found")
                #expect(test.difference == nil)
            } catch CassetteError.unmatched(let mismatch) {
                #expect(mismatch.candidates.map(\.differences) == [[test.difference ?? "none"]])
            }
        }
    }
}
