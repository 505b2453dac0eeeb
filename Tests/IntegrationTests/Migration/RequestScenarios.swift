import Foundation
import Martlet
import MartletImages
import MartletTestSupport
import MartletTesting
import MartletXML
import Synchronization
import Testing

/// The features of AFNetworking that its serializers, its security policy and its additions have.
enum RequestScenarios {
    static let all = [
        MigrationScenario(
            "A8", "Parameters are written as AFNetworking writes them, or as a closure does", parameters),
        MigrationScenario(
            "A10", "Requests have languages, a user agent and Basic credentials", defaultFields),
        MigrationScenario(
            "A11", "A form is streamed from its files, within a bandwidth limit", throttledForm),
        MigrationScenario("A12", "Responses are validated and decoded by composable rules", serializers),
        MigrationScenario(
            "A15", "Paths are below the base whatever their slashes, and each method has a function", verbs),
        MigrationScenario("A16", "An image is downloaded once for all waiters, the latest first", images),
        MigrationScenario("A17", "Configurations, options and requests are stored and read again", coding),
        MigrationScenario(
            "A18", "A download that cannot be published fails, and its bytes are kept", failedMove),
    ]

    static func parameters() async throws {
        let family = "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}"
        let nested: ParameterValue = [
            "phone": ["mobile": "1", "home": "2"], "families": ["father", "mother"], "yes": true,
            "nothing": nil,
            "a b&=+[]?/": .string(family),
        ]
        let expected = [
            "a%20b%26%3D%2B%5B%5D?/=%F0%9F%91%A8%E2%80%8D%F0%9F%91%A9%E2%80%8D%F0%9F%91%A7",
            "families%5B%5D=father", "families%5B%5D=mother", "nothing", "phone%5Bhome%5D=2",
            "phone%5Bmobile%5D=1", "yes=1",
        ]
        let form = ParameterEncoding.form.with {
            $0.query.arrays = .brackets
            $0.query.booleans = .numeric
            $0.query.nulls = .bareKey
        }
        try await TestOrigin.withOrigin(handler: .echo) { origin async throws in
            let api = try HTTPSession.plain().host(origin.base, encoding: form)
            for exchange in [
                try await api.get("a", query: nested), try await api.delete("a", query: nested),
            ] {
                let report: EchoReport = try exchange.decode()
                #expect(report.query?.components(separatedBy: "&") == expected)
            }
            #expect(try await api.head("a", query: ["n": 1]).statusCode == 200)
            #expect(origin.requests.last?.target == "/a?n=1")
            let posted: EchoReport = try await api.post("a", parameters: nested).decode()
            #expect(posted.body?.components(separatedBy: "&") == expected)
            #expect(posted.query == nil)
            let own = api.with {
                $0.encoding.query.serializer = { value in
                    guard case .object(let values) = value else { return "" }
                    return values.keys.sorted().joined(separator: ",")
                }
            }
            let listed: EchoReport = try await own.get("a", query: ["b": 1, "a": 2]).decode()
            #expect(listed.query == "a,b")
            let json: EchoReport = try await api.with { $0.encoding = .json }.post(
                "a", parameters: ["b": [1, true]]
            )
            .decode()
            #expect(json.body == #"{"b":[1,true]}"#)
            let list: EchoReport = try await api.with { $0.encoding = .propertyList(.binary) }
                .post("a", parameters: ["b": "x"]).decode()
            let data = try #require(Data(base64Encoded: list.bodyBase64))
            #expect(try PropertyListDecoder().decode([String: String].self, from: data) == ["b": "x"])
        }
    }

    static func defaultFields() async throws {
        try await TestOrigin.withOrigin(handler: .echo) { origin async throws in
            let session = HTTPSession.plain {
                $0.languages = ["de-DE", "en"]
                $0.userAgent = "Harbour/1"
            }
            var api = try session.host(origin.base)
            api.credentials = .basic(user: "user", password: "p\u{E4}ss")
            let report: EchoReport = try await api.get().decode()
            #expect(report.header("Accept-Language") == "de-DE;q=1, en;q=0.9")
            #expect(report.header("User-Agent") == "Harbour/1")
            #expect(report.header("Authorization") == "Basic dXNlcjpww6Rzcw==")
            let plain: EchoReport = try await HTTPSession.plain().get(origin.url()).decode()
            #expect(plain.header("User-Agent")?.hasPrefix("Martlet/") == true)
        }
    }

    static func throttledForm() async throws {
        try await withDirectory { directory async throws in
            let bytes = TestPattern.bytes(from: 0, count: 300_000)
            try Data(bytes).write(to: URL(filePath: directory.appending("in")))
            try await TestOrigin.withOrigin { request in
                if request.method == .get { return .pattern(300_000) }
                let parts = try await request.collectParts()
                return .bytes(try #require(parts.first).body)
            } run: { origin async throws in
                let session = HTTPSession.plain()
                var options = RequestOptions()
                options.bandwidth = BandwidthLimit(
                    upload: .bytesPerSecond(1_000_000), download: .bytesPerSecond(1_000_000))
                let body = HTTPBody.multipart { $0.file("file", at: directory.file("in")) }
                for (method, body) in [(HTTPRequest.Method.post, body), (.get, .none)] {
                    let start = ContinuousClock.now
                    let exchange = try await session.send(
                        HTTPRequest(method: method, url: origin.url()), body: body, options: options)
                    // One burst may send 50 ms worth of the body.
                    #expect(ContinuousClock.now - start >= .milliseconds(230))
                    #expect(exchange.bytes == bytes)
                }
            }
        }
    }

    private struct Person: Codable, Equatable, Sendable { var name: String }

    static func serializers() async throws {
        let list = try PropertyListEncoder().encode(Person(name: "Anna"))
        try await TestOrigin.withOrigin(
            handler: .router { router in
                router.get("/json", .fixed(.json(text: #"{"name":"Anna","age":null,"tags":[null]}"#)))
                router.get("/list", .fixed(.bytes([UInt8](list), contentType: "application/x-plist")))
                router.get("/xml", .fixed(.bytes(Array("<a><b/></a>".utf8), contentType: "text/xml")))
                router.get("/gone", .fixed(.json(text: "{}", status: 410)))
            }
        ) { origin async throws in
            let session = HTTPSession.plain()
            let (json, list) = (
                try await session.get(origin.url("/json")), try await session.get(origin.url("/list"))
            )
            #expect(try json.decode(using: .json(Person.self)) == Person(name: "Anna"))
            let tree: JSONValue = try json.decode(using: .json(removingNulls: true))
            #expect(tree == ["name": "Anna", "tags": [nil]])
            #expect(try list.decode(using: .propertyList(Person.self)) == Person(name: "Anna"))
            for exchange in [json, list] {
                let person = try exchange.decode(
                    using: .first(of: .json(Person.self), .propertyList(Person.self)))
                #expect(person == Person(name: "Anna"))
            }
            #expect(throws: HTTPError.self) { try list.decode(using: .json(Person.self)) }
            #expect(try await session.get(origin.url("/xml")).decode(using: .xml).root.elements.count == 1)
            let request = try HTTPRequest(method: .get, url: origin.url("/xml"))
            let names = try await session.stream(request) { _, body in
                try await body.xmlEvents.reduce(into: [String]()) { names, event in
                    if case .start(let element) = event { names.append(element.name.local) }
                }
            }
            #expect(names == ["a", "b"])
            let gone = try await session.get(origin.url("/gone"))
            let accepting = ResponseValidator.status(200..<300, 410..<411).and(
                .contentType("application/json"))
            #expect(try await gone.validated(accepting).statusCode == 410)
            let status = await #expect(throws: HTTPError.self) { try await gone.validated(.success) }
            #expect(status?.code == .unacceptableStatus)
            let type = await #expect(throws: HTTPError.self) { try await list.validated(accepting) }
            #expect(type?.code == .unacceptableContentType)
        }
    }

    static func verbs() async throws {
        try await TestOrigin.withOrigin { request in
            .text("\(request.method) \(request.target) \(try await request.collectText())")
        } run: { origin async throws in
            let session = HTTPSession.plain()
            for base in ["/v1", "/v1/"] {
                let api = try session.host(origin.url(base))
                for (path, target) in [
                    ("foo", "/v1/foo"), ("/foo", "/v1/foo"), ("foo/", "/v1/foo/"), ("", base),
                ] {
                    #expect(try await api.get(path).text == "GET \(target) ")
                }
                #expect(try await api.get(origin.url("/v2?a=1")).text == "GET /v2?a=1 ")
                await #expect(throws: HTTPError.self) { try await api.get("../v2") }
            }
            let url = origin.url("/a")
            #expect(try await session.get(url).text == "GET /a ")
            #expect(try await session.post(url, body: .text("x")).text == "POST /a x")
            #expect(try await session.put(url, body: .text("x")).text == "PUT /a x")
            #expect(try await session.patch(url, body: .text("x")).text == "PATCH /a x")
            #expect(try await session.delete(url).text == "DELETE /a ")
            #expect(try await session.head(url).bytes == [])
            #expect(origin.requests.last?.method == .head)
        }
    }

    static func images() async throws {
        let pixel =
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
        let picture = [UInt8](try #require(Data(base64Encoded: pixel)))
        let gate = Gate()
        try await TestOrigin.withOrigin { request in
            await gate.pass()
            return .bytes(picture, contentType: "image/png").with { $0.headers["Cache-Control"] = "max-age=600" }
        } run: { origin async throws in
            defer { gate.open() }
            let pressure = ManualMemoryPressure()
            let session = HTTPSession.plain {
                $0.cache = .memoryOnly()
                $0.pool.connectionsPerHost = 1
                $0.queueOrder = .lastComeFirstServed
            }
            let images = try DecodedCache<ImageInfo>(
                session: session, using: .imageInfo, memoryPressure: pressure.source
            ) { $0.size.pixelCount }
            let first = origin.url("/first")
            let waiters = (0..<3).map { _ in Task { try await images.value(for: first) } }
            try await origin.waitForRequests(count: 1)
            waiters[0].cancel()
            await #expect(throws: CancellationError.self) { try await waiters[0].value }
            var others: [Task<ImageInfo, any Error>] = []
            for number in 1...3 {
                let url = origin.url("/\(number)")
                others.append(Task { try await images.value(for: url) })
                #expect(await eventually { session.poolStatus.waiting == number })
            }
            gate.open()
            for task in waiters.dropFirst() + others { #expect(try await task.value.size.width == 1) }
            #expect(origin.requests.map(\.target) == ["/first", "/3", "/2", "/1"])
            #expect(images.count == 4)
            pressure.set(.critical)
            #expect(await eventually { images.count == 0 })
        }
    }

    private static func copy<Value: Codable>(_ value: Value) throws -> Value {
        try JSONDecoder().decode(Value.self, from: JSONEncoder().encode(value))
    }

    static func coding() async throws {
        try await TestOrigin.withOrigin(.tls(), handler: .echo) { origin async throws in
            var configuration = SessionConfiguration.ephemeral
            configuration.timeouts = .patient
            configuration.tls.trust = .only(.text(origin.authorityPEM ?? ""))
            configuration.languages = ["fi"]
            let session = HTTPSession(configuration: try copy(configuration))
            var request = try HTTPRequest(method: .put, url: origin.url("/a?b=c"))
            request.headerFields[.contentLanguage] = "de"
            var options = RequestOptions(priority: .high)
            options.cacheMode = .reload
            options.bodyLimit = .kibibytes(64)
            let (sent, read) = (try copy(request), try copy(options))
            #expect(read.priority == .high)
            #expect(read.cacheMode == .reload)
            let report: EchoReport = try await session.send(sent, body: .text("x"), options: read).decode()
            #expect([report.method, report.target, report.body] == ["PUT", "/a?b=c", "x"])
            #expect(report.header("Content-Language") == "de")
            #expect(report.header("Accept-Language") == "fi;q=1")
            options.bodyLimit = 8
            let limited = try copy(options)
            let error = await #expect(throws: HTTPError.self) {
                try await session.send(sent, options: limited)
            }
            #expect(error?.code == .bodyTooLarge)
            let custom = session.with { $0.tls.trust = .custom { _, _ in .accept } }.configuration
            #expect(throws: EncodingError.self) { try JSONEncoder().encode(custom) }
        }
    }

    static func failedMove() async throws {
        try await withDirectory { directory async throws in
            let script = ServerScript(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234"), .await("go"),
                .send("56789"), .awaitClose)
            try await TestOrigin.withOrigin(scripts: script) { origin async throws in
                let task = await HTTPSession.plain().downloadTask(
                    for: try HTTPRequest(method: .get, url: origin.url()), to: directory.file("file"))
                let progress = task.downloadProgress
                #expect(await eventually { progress.current.completedByteCount == 5 })
                // The file appears during the download, which is not allowed to replace it.
                try directory.write("old", to: "file")
                origin.signals.raise("go")
                let error = try #require(await #expect(throws: HTTPError.self) { try await task.value })
                #expect(error.code == .fileExists)
                let kept = try #require(error.unpublishedFile?.lastComponent?.string)
                #expect(try directory.bytes(of: kept) == Array("0123456789".utf8))
                #expect(try directory.bytes(of: "file") == Array("old".utf8))
            }
        }
    }
}
