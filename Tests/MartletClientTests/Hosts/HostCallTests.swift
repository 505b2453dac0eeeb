import FoundationEssentials
import Martlet
import MartletTesting
import Synchronization
import SystemPackage
import Testing

@Suite("Calls of a host", .timeLimit(.minutes(20)))
struct HostCallTests {
    private struct Draft: Codable, Equatable {
        var title: String
    }

    /// Responds with the method, target, type and body of the request.
    private static let echo: OriginHandler.Respond = { request in
        let body = try await request.collectText()
        return .text("\(request.method) \(request.target) \(request.headers["Content-Type"] ?? "-") \(body)")
    }

    @Test("Each verb sends its method, its parameters and its body")
    func verbs() async throws {
        try await TestOrigin.withOrigin(respond: HostCallTests.echo) { origin in
            let api = try HTTPSession.own().host(origin.url("/v2"))
            let page = try await api.get("posts", query: ["tags": ["swift", "linux"], "limit": 20])
            #expect(page.text == "GET /v2/posts?limit=20&tags=swift&tags=linux - ")
            #expect(try await api.get().text == "GET /v2 - ")
            #expect(
                try await api.get("/x", query: Draft(title: "a b")).text == "GET /v2/x?title=a%20b - ")
            #expect(try await api.delete("x", query: ["id": 7]).text == "DELETE /v2/x?id=7 - ")
            let form = "application/x-www-form-urlencoded"
            #expect(
                try await api.post("x", parameters: ["a": 1, "b": "c"]).text == "POST /v2/x \(form) a=1&b=c")
            #expect(try await api.put("x", parameters: Draft(title: "t")).text == "PUT /v2/x \(form) title=t")
            #expect(try await api.patch("x", parameters: ["a": nil]).text == "PATCH /v2/x \(form) ")
            #expect(try await api.post("x").text == "POST /v2/x - ")
            let text = "text/plain; charset=utf-8"
            #expect(try await api.post("x", body: .text("hi")).text == "POST /v2/x \(text) hi")
            #expect(try await api.put("x", body: .text("hi")).text == "PUT /v2/x \(text) hi")
            #expect(try await api.patch("x", body: .text("hi")).text == "PATCH /v2/x \(text) hi")
            let json = "application/json {\"n\":1}"
            let (session, url) = (api.session, origin.url("/v2/x"))
            #expect(try await api.post("x", query: ["a": 1], json: ["n": 1]).text == "POST /v2/x?a=1 \(json)")
            #expect(try await api.put("x", json: ["n": 1]).text == "PUT /v2/x \(json)")
            #expect(try await api.patch("x", json: ["n": 1]).text == "PATCH /v2/x \(json)")
            #expect(try await session.post(url, query: ["a": 1], json: ["n": 1]).text == "POST /v2/x?a=1 \(json)")
            #expect(try await session.put(url, json: ["n": 1]).text == "PUT /v2/x \(json)")
            #expect(try await session.patch(url, json: ["n": 1]).text == "PATCH /v2/x \(json)")
            let name = "Ada L."
            let nick: String? = nil
            #expect(try await api.get("x", query: ["nick": nick]).text == "GET /v2/x - ")
            let mixed = try await session.get(url, query: ["q": .value(name), "nick": .value(nick), "limit": 20])
            #expect(mixed.text == "GET /v2/x?limit=20&q=Ada%20L. - ")
            let sent = "\(form) name=Ada+L.&tag=1&tag=2"
            let senders: [(any HTTPSender, String)] = [(api, "x"), (session, url)]
            for (sender, x) in senders {
                let fields: KeyValuePairs<String, String?> = ["name": name, "nick": nick, "tag": "1", "tag": "2"]
                #expect(try await sender.post(x, query: ["a": 1], form: fields).text == "POST /v2/x?a=1 \(sent)")
                #expect(try await sender.put(x, form: fields).text == "PUT /v2/x \(sent)")
                #expect(try await sender.patch(x, form: fields).text == "PATCH /v2/x \(sent)")
                #expect(try await sender.post(x, form: ["a": nick, "b": name]).text == "POST /v2/x \(form) b=Ada+L.")
                #expect(try await sender.post(x, form: ["a": "b"]).text == "POST /v2/x \(form) a=b")
            }
            #expect(try await api.post(form: ["a": "b"]).text == "POST /v2 \(form) a=b")
            #expect(try await api.send(.put, "x", query: ["a": 1], body: .text("b")).text == "PUT /v2/x?a=1 \(text) b")
            #expect(try await api.send(.delete, "x").text == "DELETE /v2/x - ")
            let options = try await api.request(method: .options, "x", parameters: ["a": 1], body: .text("b"))
            #expect(options.text == "OPTIONS /v2/x?a=1 \(text) b")
            #expect(try await api.head("x", query: ["q": "1"]).statusCode == 200)
            #expect(origin.requests.last?.target == "/v2/x?q=1")
            #expect(origin.requests.last?.method == .head)
        }
    }

    @Test(
        "A host with JSON encoding posts JSON, and the call's Content-Type overrides the type"
    )
    func json() async throws {
        try await TestOrigin.withOrigin(respond: HostCallTests.echo) { origin in
            let api = try HTTPSession.own().host(origin.base, encoding: .json)
            #expect(
                try await api.post("x", parameters: Draft(title: "t")).text
                    == #"POST /x application/json {"title":"t"}"#)
            #expect(
                try await api.post(
                    "x", parameters: ["a": [1, "b"]], headers: [.contentType: "application/vnd.x+json"]
                ).text == #"POST /x application/vnd.x+json {"a":[1,"b"]}"#)
            #expect(try await api.get("x", query: ["a": 1]).text == "GET /x?a=1 - ")
        }
    }

    @Test(
        "Default fields are sent unless the call overrides them; the body's type overrides a default type"
    )
    func headers() async throws {
        try await TestOrigin.withOrigin { request in
            .text(
                "\(request.headers["Accept"] ?? "-") \(request.headers["X-Key"] ?? "-") "
                    + "\(request.headers["Content-Type"] ?? "-")")
        } run: { origin async throws in
            let key = try #require(HTTPField.Name("X-Key"))
            let api = try HTTPSession.own { $0.headers[.accept] = "session/x" }.host(
                origin.base, headers: [.accept: "application/json", .init(key): "k", .contentType: "text/x"])
            #expect(try await api.get().text == "application/json k text/x")
            #expect(try await api.get(headers: [.accept: "a/b"]).text == "a/b k text/x")
            #expect(
                try await api.post(parameters: ["a": 1]).text
                    == "application/json k application/x-www-form-urlencoded")
            var options = RequestOptions()
            options.omittedFields = [key]
            #expect(try await api.get(options: options).text == "application/json - text/x")
            // A host is a value: changing a copy does not change the original.
            let changed = api.with { $0.headers[key] = "other" }
            #expect(try await changed.get().text == "application/json other text/x")
            #expect(try await api.get().text == "application/json k text/x")
        }
    }

    @Test("A host has its own trust, and its session is unchanged")
    func tls() async throws {
        try await TestOrigin.withOrigin(.tls(), respond: HostCallTests.echo) { origin in
            let session = HTTPSession.own()
            let strict = try session.host(origin.base)
            let trust = TrustPolicy.only(.text(origin.authorityPEM ?? ""))
            let trusting = strict.with { $0.tls = TLSHostSettings(trust: trust) }
            #expect(try await trusting.get("x").text == "GET /x - ")
            for _ in 0..<2 {
                let error = await #expect(throws: HTTPError.self) { try await strict.get("x") }
                #expect(error?.code == .tlsFailed)
                _ = try await trusting.get("x")
            }
        }
    }

    @Test("Streams, uploads, downloads and tasks use the host's paths and fields")
    func otherShapes() async throws {
        try await TestOrigin.withOrigin { request in
            let body = try await request.collectText()
            return .text("\(request.method) \(request.target) \(request.headers["X-Key"] ?? "-") \(body)")
        } run: { origin async throws in
            let key = try #require(HTTPField.Name("X-Key"))
            let api = try HTTPSession.own().host(origin.url("/v2"), headers: [.init(key): "k"])
            let streamed = try await api.stream("s", parameters: ["a": 1]) { response, body in
                #expect(response.status == .ok)
                return String(decoding: try await body.collect(upTo: 1000), as: UTF8.self)
            }
            #expect(streamed == "GET /v2/s?a=1 k ")
            let last = Mutex<TransferProgress?>(nil)
            let uploaded = try await api.upload(.text("body"), to: "u", query: ["a": 1]) { progress in
                last.withLock { $0 = progress }
            }
            #expect(uploaded.text == "POST /v2/u?a=1 k body")
            #expect(last.withLock { $0?.completedByteCount } == 4)
            let directory = try TemporaryDirectory()
            let file = FilePath("\(directory.path)/d")
            try await api.download("d", to: file, query: ["b": 2])
            #expect(
                try String(contentsOfFile: file.string, encoding: .utf8) == "GET /v2/d?b=2 k ")
            let task = try await api.task(method: .post, "t", parameters: ["c": 3])
            #expect(task.kind == .upload)
            #expect(try await task.value.text == "POST /v2/t k c=3")
        }
    }

    @Test("A prepared request can be sent by any session with the host's options")
    func prepared() async throws {
        try await TestOrigin.withOrigin { request in
            .text("\(request.target) \(request.headers["Authorization"] ?? "-")")
        } run: { origin async throws in
            let session = HTTPSession.own()
            let api = try session.host(origin.url("/v2")).with {
                $0.credentials = .basic(user: "me", password: "hunter2")
            }
            let made = try api.prepare(.get, "p", parameters: ["a": 1])
            #expect(!"\(made)".contains("hunter2"))
            let exchange = try await session.send(made.request, body: made.body, options: made.options)
            #expect(exchange.text == "/v2/p?a=1 Basic bWU6aHVudGVyMg==")
        }
    }

    @Test("The configured languages are sent, and none by default")
    func languages() async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.headers["Accept-Language"] ?? "-")
        } run: { origin async throws in
            #expect(try await HTTPSession.own().get(origin.url()).text == "-")
            let session = HTTPSession.own { $0.languages = ["de-DE", "en"] }
            #expect(try await session.get(origin.url()).text == "de-DE;q=1, en;q=0.9")
        }
    }
}
