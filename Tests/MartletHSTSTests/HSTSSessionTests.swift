import FoundationEssentials
import Martlet
import MartletTesting
import MartletTestSupport
import Synchronization
import Testing

/// A site with both schemes: an http origin at port 80 of every host, and an https origin at port 443.
private struct Site {
    let plain: TestOrigin
    let secure: TestOrigin
    let store = HSTSStore()

    static func run(
        certificate: OriginTLS = .trusted, secure: @escaping OriginHandler.Respond = { .text($0.path) },
        plain: @escaping OriginHandler.Respond = { _ in .text("plain") }, _ body: (Site) async throws -> Void
    ) async throws {
        var tls = certificate
        tls.additionalNames = ["known.example", "sub.known.example", "other.example"]
        try await TestOrigin.withOrigin(.plain, respond: plain) { plain in
            try await TestOrigin.withOrigin(.tls(tls), respond: secure) { secure in
                try await body(Site(plain: plain, secure: secure))
            }
        }
    }

    func session(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> HTTPSession {
        var configuration = SessionConfiguration.ephemeral.patient(total: .seconds(600))
        configuration.proxy = .none
        configuration.tls.trust = .only(.text(secure.authorityPEM ?? ""))
        configuration.resolveOverrides = [
            Endpoint(host: "*", port: 80): [plain.socketAddress],
            Endpoint(host: "*", port: 443): [secure.socketAddress],
        ]
        configuration.hsts = store
        change(&configuration)
        return HTTPSession(configuration: configuration)
    }

    func know(_ host: String = "known.example") throws { store.set(try HSTSEntry(host: host)) }
}

private let fieldName = "Strict-Transport-Security"

private func strict(_ value: String) -> OriginHandler.Respond {
    { _ in OriginResponse.text("secure").with { $0.headers.append(fieldName, value) } }
}

@Suite("HSTS of a session", .timeLimit(.minutes(20)))
struct HSTSSessionTests {
    @Test("After a response over TLS no byte is sent to the host over http")
    func upgrade() async throws {
        try await Site.run(secure: strict("max-age=1000; includeSubDomains")) { site in
            let session = site.session()
            #expect(try await session.get("http://known.example/").text == "plain")
            #expect(try await session.get("https://known.example/").text == "secure")
            #expect(site.store.entries.map(\.host) == ["known.example"])
            let count = site.plain.connectionCount
            for url in ["http://known.example/a?b#c", "http://KNOWN.example:80/a?b", "http://sub.known.example/a?b"] {
                let exchange = try await session.get(url)
                #expect(exchange.text == "secure" && exchange.url.scheme == .https && exchange.url.port == 443)
                #expect(exchange.metrics.hops.isEmpty && exchange.metrics.attempts == 1)
            }
            #expect(site.plain.connectionCount == count)
            #expect(site.secure.requests.last?.headers["Host"] == "sub.known.example")
            #expect(try await session.get("http://other.example/").text == "plain")
        }
    }

    @Test("Every kind of call is upgraded: streams, opened responses, tasks, uploads, downloads and hosts")
    func kinds() async throws {
        try await Site.run { site in
            try site.know()
            let (session, url) = (site.session(), "http://known.example/x")
            try await session.stream(url) { response, body in
                var bytes: [UInt8] = []
                for try await chunk in body { bytes += chunk }
                #expect(String(decoding: bytes, as: UTF8.self) == "/x")
            }
            #expect(try await session.open(url).url.scheme == .https)
            let request = try HTTPRequest(method: .get, url: url)
            #expect(try await session.task(for: request).value.text == "/x")
            #expect(try await session.post(url, body: .text("body")).url.scheme == .https)
            #expect(site.secure.requests.last?.text == "body")
            let host = try session.host("http://known.example/base")
            #expect(try await host.get("y").text == "/base/y")
            let path = FileManager.default.temporaryDirectory.path + "/martlet-hsts-\(UUID().uuidString)"
            defer { try? FileManager.default.removeItem(atPath: path) }
            try await session.download(url, to: path)
            #expect(try String(contentsOfFile: path, encoding: .utf8) == "/x")
            let whole = HTTPRequest(method: .options, scheme: "http", authority: "known.example:80", path: "*")
            #expect(try await session.send(whole).status.code == 200)
            #expect(site.secure.requests.last?.target == "*")
            #expect(site.plain.connectionCount == 0)
        }
    }

    @Test("All segments of an upgraded download are sent with the credentials of its URL")
    func segments() async throws {
        // Files of up to 8 MiB are fetched with one request.
        var pattern = (0...250).map { UInt8($0) }
        while pattern.count < 9 << 20 { pattern += pattern }
        let bytes = pattern
        try await Site.run { request in
            guard request.headers["Authorization"] == "mine" else { return .status(401) }
            guard let range = request.headers["Range"]?.split(separator: "=").last?.split(separator: "-"),
                let first = range.first.flatMap({ Int($0) })
            else { return OriginResponse.bytes(bytes).with { $0.headers.append("ETag", "\"1\"") } }
            let last = min(range.count > 1 ? Int(range[1]) ?? bytes.count - 1 : bytes.count - 1, bytes.count - 1)
            return OriginResponse.bytes(Array(bytes[first...last])).with {
                $0.status = 206
                $0.headers.append("ETag", "\"1\"")
                $0.headers.append("Content-Range", "bytes \(first)-\(last)/\(bytes.count)")
            }
        } _: { site in
            try site.know()
            let path = FileManager.default.temporaryDirectory.path + "/martlet-hsts-\(UUID().uuidString)"
            defer { try? FileManager.default.removeItem(atPath: path) }
            var options = DownloadOptions()
            options.segments = 4
            try await site.session().download(
                "http://known.example/file", to: path, headers: [.authorization: "mine"], options: options)
            #expect(FileManager.default.contents(atPath: path).map { Array($0) } == bytes)
            #expect(site.secure.requests.count > 1 && site.plain.connectionCount == 0)
            #expect(site.secure.requests.allSatisfy { $0.headers["Authorization"] == "mine" })
        }
    }

    @Test("A redirect to http is upgraded before it is judged, and stays within its origin")
    func redirects() async throws {
        try await Site.run { request in
            request.path == "/start"
                ? .redirect(to: "http://known.example/end") : .text(request.headers["Authorization"] ?? "-")
        } plain: { _ in
            .redirect(to: "http://known.example/end")
        } _: { site in
            let session = site.session()
            let error = await #expect(throws: HTTPError.self) { try await session.get("https://known.example/start") }
            #expect(error?.code == .redirectRejected)
            try site.know()
            let exchange = try await session.get(
                "https://known.example/start", headers: [.authorization: "secret"])
            #expect(exchange.text == "secret" && exchange.url.absoluteString == "https://known.example/end")
            #expect(exchange.metrics.hops.map(\.url.absoluteString) == ["https://known.example/start"])
            #expect(site.plain.connectionCount == 0)
            // A redirect by another host, over http: the field is meant for that host only.
            let second = try await session.get("http://other.example/", headers: [.authorization: "secret"])
            #expect(second.text == "-" && second.url.scheme == .https && site.plain.connectionCount == 1)
        }
    }

    @Test("The caller's fields, credentials and Secure cookies are sent with the upgraded request")
    func credentials() async throws {
        try await Site.run { request in
            guard request.path == "/basic", request.headers["Authorization"] == nil else {
                return .text("\(request.headers["Authorization"] ?? "-") \(request.headers["Cookie"] ?? "-")")
            }
            return .status(401, headers: ["WWW-Authenticate": "Basic realm=\"x\""])
        } _: { site in
            try site.know()
            let jar = CookieJar()
            let url = try HTTPURL("https://known.example/")
            await jar.store(setCookieValues: ["a=1; Secure"], from: url)
            let session = site.session { $0.cookies = jar }
            #expect(
                try await session.get("http://known.example/", headers: [.authorization: "mine"]).text == "mine a=1")
            #expect(try await session.get("http://u:p@known.example/basic").text == "Basic dTpw a=1")
            let users = session.with { $0.authentication.credentials = .basic(user: "u", password: "p") }
            #expect(try await users.get("http://known.example/basic").text == "Basic dTpw a=1")
            #expect(site.plain.connectionCount == 0)
        }
    }

    @Test("Middleware sees the https URL, and an http URL that it sets is upgraded without loss of credentials")
    func middleware() async throws {
        try await Site.run {
            .text($0.headers["Authorization"] ?? "-")
        } _: { site in
            try site.know()
            final class Log: Sendable { let schemes = Mutex<[String]>([]) }
            let log = Log()
            let session = site.session {
                $0.middleware = [
                    ClosureMiddleware { request, _, next in
                        log.schemes.withLock { $0.append(request.head.scheme ?? "-") }
                        var request = request
                        request.head.scheme = "http"
                        return try await next(request)
                    }
                ]
            }
            let exchange = try await session.get("http://known.example/", headers: [.authorization: "mine"])
            #expect(exchange.text == "mine" && exchange.url.scheme == .https)
            #expect(log.schemes.withLock { $0 } == ["https"])
            #expect(site.plain.connectionCount == 0)
        }
    }

    @Test("A field over http, or from an IP address, is ignored")
    func insecure() async throws {
        try await Site.run(secure: strict("max-age=1000"), plain: strict("max-age=1000")) { site in
            let session = site.session()
            _ = try await session.get("http://known.example/")
            _ = try await session.get("http://127.0.0.1/")
            #expect(try await session.get("https://127.0.0.1/").headers[.strictTransportSecurity] == "max-age=1000")
            #expect(site.store.entries.isEmpty)
            // Nor does a field over http remove an entry.
            try site.know("other.example")
            let plain = session.with { $0.hsts = nil }
            _ = try await plain.get("http://other.example/")
            #expect(site.store.entries.count == 1)
        }
    }

    /// Certificates and settings that accept them, and whether fields of such connections count.
    static let trust: [(OriginTLS, isStored: Bool, change: @Sendable (inout TLSSettings) -> Void)] = [
        (.trusted, true, { _ in }),
        (.trusted, false, { $0.trust = .dangerouslyAcceptingAnyCertificate }),
        (.trusted, false, { $0.verifiesHostName = false }),
        (.trusted, false, { $0.hosts["known.example"] = TLSHostSettings(verifiesHostName: false) }),
        (.trusted, false, { $0.hosts["*.example"] = TLSHostSettings(trust: .dangerouslyAcceptingAnyCertificate) }),
        (.trusted, true, { $0.hosts["else.example"] = TLSHostSettings(verifiesHostName: false) }),
        (.trusted, true, { $0.trust = $0.trust.evaluated { _, _ in .accept } }),
        (.selfSigned, false, { $0.trust = .dangerouslyAcceptingAnyCertificate }),
        (.unknownAuthority, false, { $0.trust = $0.trust.evaluated { _, _ in .accept } }),
        (.expired, false, { $0.trust = $0.trust.evaluated { _, _ in .accept } }),
    ]

    @Test("A field counts only if the certificate was verified without an exception", arguments: trust.indices)
    func verification(_ index: Int) async throws {
        let (certificate, isStored, change) = HSTSSessionTests.trust[index]
        try await Site.run(certificate: certificate, secure: strict("max-age=1000")) { site in
            let session = site.session { change(&$0.tls) }
            #expect(try await session.get("https://known.example/").text == "secure")
            #expect(site.store.entries.isEmpty == !isStored)
            // Entries apply in any case.
            try site.know()
            #expect(try await session.get("http://known.example/").text == "secure")
        }
    }

    @Test(
        "Only the first field of a response counts, on every status",
        arguments: [200, 302, 401, 404, 503])
    func fields(_ status: Int) async throws {
        try await Site.run { request in
            OriginResponse.status(request.path == "/end" ? 200 : status).with { response in
                guard request.path != "/end" else { return }
                if status == 302 { response.headers.append("Location", "/end") }
                if request.path == "/bad" { response.headers.append(fieldName, "max-age") }
                response.headers.append(fieldName, "max-age=1000")
                response.headers.append(fieldName, "max-age=0")
            }
        } _: { site in
            let session = site.session()
            _ = try await session.get("https://known.example/bad")
            #expect(site.store.entries.isEmpty)
            _ = try await session.get("https://known.example/good")
            #expect(site.store.entries.map(\.host) == ["known.example"])
        }
    }

    @Test("A max-age of 0 ends the upgrades")
    func removal() async throws {
        try await Site.run(secure: strict("max-age=0")) { site in
            try site.know()
            let session = site.session()
            #expect(try await session.get("http://known.example/").text == "secure")
            #expect(try await session.get("http://known.example/").text == "plain")
            // Without a field nothing changes; without an entry of its own, a subdomain does not remove its parent's.
            site.store.set(try HSTSEntry(host: "known.example", includesSubdomains: true))
            #expect(try await session.get("http://sub.known.example/").text == "secure")
            #expect(site.store.entries.count == 1)
        }
    }

    @Test("A call, a host and a view can do without HSTS, which is off by default")
    func optOut() async throws {
        try await Site.run(secure: strict("max-age=1000")) { site in
            let session = site.session()
            let none = RequestOptions { $0.usesHSTS = false }
            _ = try await session.get("https://known.example/", options: none)
            _ = try await session.with { $0.hsts = nil }.get("https://known.example/")
            #expect(site.store.entries.isEmpty && SessionConfiguration.default.hsts == nil)
            try site.know()
            let host = try session.host("http://known.example/") { $0.options.usesHSTS = false }
            #expect(try await session.get("http://known.example/", options: none).text == "plain")
            #expect(try await session.with { $0.hsts = nil }.get("http://known.example/").text == "plain")
            #expect(try await host.get("").text == "plain")
            let own = RequestOptions { $0.usesHSTS = true }
            #expect(try await host.get("", options: own).text == "secure")
            #expect(try await session.get("http://known.example/").text == "secure")
        }
    }

    @Test("With a cache, responses of the network and validations count, and stored responses do not")
    func caching() async throws {
        try await Site.run { request in
            let isValidation = request.headers["If-None-Match"] != nil
            return OriginResponse.status(isValidation ? 304 : 200).with {
                if !isValidation { $0.body = .text("stored") }
                $0.headers.append("ETag", "\"1\"")
                $0.headers.append("Cache-Control", request.path == "/fresh" ? "max-age=1000" : "no-cache")
                $0.headers.append(fieldName, isValidation ? "max-age=2000; includeSubDomains" : "max-age=1000")
            }
        } _: { site async throws in
            let session = site.session { $0.cache = .memoryOnly(.mebibytes(1)) }
            for path in ["/fresh", "/stale"] {
                #expect(try await session.get("https://known.example\(path)").source == .network)
                #expect(site.store.entries.map(\.includesSubdomains) == [false])
                site.store.removeAll()
            }
            #expect(try await session.get("https://known.example/fresh").source == .cache)
            #expect(site.store.entries.isEmpty)
            #expect(try await session.get("https://known.example/stale").text == "stored")
            #expect(site.store.entries.map(\.includesSubdomains) == [true])
            // The upgraded URL is the key of the cache.
            #expect(try await session.get("http://known.example/fresh").source == .cache)
            #expect(site.plain.connectionCount == 0 && site.secure.requests.count == 3)
        }
    }

    @Test("Concurrent calls of several sessions share a store")
    func concurrency() async throws {
        try await Site.run(secure: strict("max-age=1000")) { site in
            let sessions = [site.session(), site.session()]
            try await withThrowingTaskGroup { group in
                for number in 0..<20 {
                    group.addTask {
                        let host = number % 2 == 0 ? "known" : "other"
                        let exchange = try await sessions[number % 2].get("https://\(host).example/")
                        #expect(exchange.text == "secure")
                        #expect(try await sessions[1].get("http://\(host).example/").text == "secure")
                    }
                }
                try await group.waitForAll()
            }
            #expect(site.store.entries.map(\.host) == ["known.example", "other.example"])
            #expect(site.plain.connectionCount == 0)
        }
    }

    @Test("A host with an http base keeps its fields at the https URLs of its responses")
    func hostLinks() async throws {
        try await Site.run { request in
            guard request.headers["Authorization"] == "mine" else { return .status(401) }
            return OriginResponse.text(request.path).with {
                if request.path == "/1" { $0.headers.append("Link", "</2>; rel=\"next\"") }
            }
        } _: { site in
            try site.know()
            let host = try site.session().host("http://known.example") { $0.headers[.authorization] = "mine" }
            var texts: [String] = []
            for try await page in host.pages("1") { texts.append(page.text) }
            #expect(texts == ["/1", "/2"])
        }
    }
}
