import Foundation
import Martlet
import MartletTesting
import Synchronization
import Testing

/// The features of MKNetworkKit 2 that hosts, sessions and caches have.
enum HostScenarios {
    static let all = [
        MigrationScenario("M1", "A host has a base, default fields and a parameter encoding", host),
        MigrationScenario(
            "M2", "A request goes to a path below the host or to a whole URL, by any method", requests),
        MigrationScenario("M3", "Sessions are default, ephemeral or in the background", sessions),
        MigrationScenario("M4", "A cache has limits, and a directory or only memory", caches),
        MigrationScenario("M5", "A request is prepared by middleware and by the cache", preparation),
        MigrationScenario("M6", "A service maps a response to its own error", errors),
        MigrationScenario("M7", "A request chooses its use of the cache", cacheModes),
    ]

    static func host() async throws {
        let cases: [(ParameterEncoding, String, String)] = [
            (.form, "application/x-www-form-urlencoded", "name=Anna"),
            (.json, "application/json", #"{"name":"Anna"}"#),
            (.propertyList(.xml), "application/x-plist", "<string>Anna</string>"),
        ]
        try await TestOrigin.withOrigin(handler: .echo) { origin async throws in
            let session = HTTPSession.plain()
            for (encoding, type, body) in cases {
                let api = try session.host(
                    named: "127.0.0.1", port: origin.port, path: "v2", isSecure: false,
                    headers: [.acceptLanguage: "de"], encoding: encoding)
                for path in ["users", "/users"] {
                    let report: EchoReport = try await api.post(path, parameters: ["name": "Anna"]).decode()
                    #expect(report.path == "/v2/users")
                    #expect(report.header("Accept-Language") == "de")
                    #expect(report.header("Content-Type") == type)
                    #expect(report.body?.contains(body) == true)
                }
            }
            #expect(throws: HTTPError.self) { try session.host(named: "") }
        }
    }

    static func requests() async throws {
        try await TestOrigin.withOrigin(.tls(), handler: .echo) { secure async throws in
            try await TestOrigin.withOrigin(handler: .echo) { origin async throws in
                let key = try #require(HTTPField.Name("X-Key"))
                let session = HTTPSession.trusting(secure)
                let api = try session.host(origin.url("/v2"), headers: [.init(key): "secret"])
                let exchanges = [
                    ("GET", "/v2/a?n=1", "", try await api.get("a", query: ["n": 1])),
                    ("DELETE", "/v2/a?n=1", "", try await api.delete("a", query: ["n": 1])),
                    ("POST", "/v2/a", "n=1", try await api.post("a", parameters: ["n": 1])),
                    ("PUT", "/v2/a", "n=1", try await api.put("a", parameters: ["n": 1])),
                    ("PATCH", "/v2/a", "n=1", try await api.patch("a", parameters: ["n": 1])),
                    (
                        "POST", "/v2/a?n=1", "b",
                        try await api.request(method: .post, "a", parameters: ["n": 1], body: .text("b"))
                    ),
                    (
                        "OPTIONS", "/v2/a", "n=1",
                        try await api.request(method: .options, "a", parameters: ["n": 1])
                    ),
                ]
                for (method, target, body, exchange) in exchanges {
                    let report: EchoReport = try exchange.decode()
                    #expect([report.method, report.target, report.body ?? ""] == [method, target, body])
                    #expect(report.header("X-Key") == "secret")
                }
                #expect(try await api.head("a").bytes == [])
                #expect(origin.requests.last?.method == .head)
                let whole: EchoReport = try await api.get(secure.url("/b")).decode()
                #expect(whole.target == "/b")
                #expect(whole.tls != nil)
                #expect(whole.header("X-Key") == nil)
            }
        }
    }

    static func sessions() async throws {
        await #expect(processExitsWith: .success) { try await HostScenarios.leavesNoFile() }
        // A response to a request with credentials is stored separately for these. In the part of the cache that all
        // callers share, only the response can allow that (RFC 9111 §3.5).
        for (partition, control, sources) in [
            (nil, "max-age=600", [HTTPExchange.Source.network, .cache, .network]),
            ("", "max-age=600", [.network, .network, .network]),
            ("", "max-age=600, public", [.network, .cache, .cache]),
        ] as [(String?, String, [HTTPExchange.Source])] {
            try await TestOrigin.withOrigin(handler: .versions(control)) { origin async throws in
                let session = HTTPSession.plain {
                    $0.cache = .memoryOnly()
                    $0.cachePartition = partition
                }
                for (user, source) in zip(["anna", "anna", "berta"], sources) {
                    let headers: HTTPHeaders = [.authorization: "Bearer \(user)"]
                    #expect(try await session.get(origin.url(), headers: headers).source == source)
                }
            }
        }
        try await withDirectory { directory async throws in
            let content = OriginContent(body: .pattern(3_000_000), entityTag: "\"t\"")
            let isHeld = Mutex(true)
            try await TestOrigin.withOrigin { request in
                content.response(to: request).with { response in
                    if isHeld.withLock({ $0 }) {
                        response.fault = OriginFault(.stall, afterBodyBytes: 2_000_000)
                    }
                }
            } run: { origin async throws in
                let first = try await DownloadManager.background(directory: directory.file("queue"))
                let id = try await first.add(
                    origin.url(), to: directory.file("out"), options: DownloadOptions(segments: 1))
                for await value in try #require(first.download(id)).progress
                where value.completedByteCount >= 1_000_000 { break }
                await first.close()
                isHeld.withLock { $0 = false }
                let second = try await DownloadManager.background(directory: directory.file("queue"))
                let result = try await #require(second.download(id)).value
                #expect(result.resumedByteCount >= 1_000_000)
                #expect(try directory.bytes(of: "out") == TestPattern.bytes(from: 0, count: 3_000_000))
                await second.close()
            }
        }
    }

    /// Uses an ephemeral session with all writable directories inside one, which is inspected afterwards.
    static func leavesNoFile() async throws {
        try await withDirectory { directory async throws in
            for name in ["HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"] {
                unsafe setenv(name, directory.path, 1)
            }
            guard FileManager.default.changeCurrentDirectoryPath(directory.path) else { exit(2) }
            try await TestOrigin.withOrigin(.tls(), handler: .versions("max-age=600")) {
                origin async throws in
                var configuration = SessionConfiguration.ephemeral
                configuration.timeouts = .patient
                configuration.tls.trust = .only(.text(origin.authorityPEM ?? ""))
                let session = HTTPSession(configuration: configuration)
                for text in ["1", "2"] {
                    guard try await session.get(origin.url()).text == text else { exit(3) }
                }
                await session.finishAndInvalidate()
            }
            guard try FileManager.default.contentsOfDirectory(atPath: directory.path) == [] else { exit(4) }
        }
    }

    /// Uses the default cache directory, below a directory that is removed afterwards.
    static func usesDefaultDirectory() async throws {
        try await withDirectory { directory async throws in
            unsafe setenv("XDG_CACHE_HOME", directory.path, 1)
            guard ResponseCache.defaultDirectory.string.hasPrefix("\(directory.path)/") else { exit(2) }
            try await TestOrigin.withOrigin(handler: .versions("max-age=600")) { origin async throws in
                for source in [HTTPExchange.Source.network, .cache] {
                    let cache = try ResponseCache.at(ResponseCache.defaultDirectory)
                    let session = HTTPSession.plain { $0.cache = cache }
                    guard try await session.get(origin.url()).source == source else { exit(3) }
                }
            }
        }
    }

    static func caches() async throws {
        await #expect(processExitsWith: .success) { try await HostScenarios.usesDefaultDirectory() }
        try await withDirectory { directory async throws in
            try await TestOrigin.withOrigin { request in
                OriginResponse(headers: ["Cache-Control": "max-age=600"], body: .pattern(100_000))
            } run: { origin async throws in
                let url = origin.url("/a")
                let cache = try ResponseCache.at(
                    directory.file("cache"), memory: .kibibytes(64), disk: .mebibytes(8))
                for session in [HTTPSession.plain { $0.cache = cache }, .plain { $0.cache = cache }] {
                    #expect(try await session.get(url).bytes.count == 100_000)
                }
                #expect(cache.statistics.memoryBytes <= 64 << 10)
                #expect(cache.statistics.diskBytes >= 100_000)
                let again = try ResponseCache.at(directory.file("cache"))
                #expect(try await HTTPSession.plain { $0.cache = again }.get(url).source == .cache)
                #expect(origin.requests.count == 1)
                let memory = HTTPSession.plain { $0.cache = .memoryOnly(.mebibytes(1)) }
                for number in 0..<30 { _ = try await memory.get(origin.url("/\(number)")) }
                #expect((1 << 20) >= memory.configuration.cache?.statistics.memoryBytes ?? .max)
                #expect(try await memory.get(origin.url("/29")).source == .cache)
                for _ in 0..<2 { #expect(try await HTTPSession.plain().get(url).source == .network) }
            }
        }
    }

    private struct Signature: HTTPMiddleware {
        func handle(
            _ request: HTTPCall.Request, context: CallContext, next: HTTPNext
        ) async throws -> HTTPCall.Response {
            var signed = request
            signed.headers[.authorization] = "Token \(request.head.path ?? "")"
            return try await next(signed)
        }
    }

    static func preparation() async throws {
        let day = Date(timeIntervalSince1970: 784_111_777)
        let content = OriginContent(body: .text("x"), entityTag: "\"v1\"", lastModified: day)
        try await TestOrigin.withOrigin { request in
            content.response(to: request).with { $0.headers["Cache-Control"] = "public, no-cache" }
        } run: { origin async throws in
            let session = HTTPSession.plain {
                $0.cache = .memoryOnly()
                $0.middleware = [Signature()]
            }
            #expect(try await session.get(origin.url("/a")).source == .network)
            let second = try await session.get(origin.url("/a"))
            #expect(second.source == .validatedCache)
            #expect(second.text == "x")
            let sent = try #require(origin.requests.last?.headers)
            #expect(sent["Authorization"] == "Token /a")
            #expect(sent["If-None-Match"] == "\"v1\"")
            #expect(sent["If-Modified-Since"] == "Sun, 06 Nov 1994 08:49:37 GMT")
        }
    }

    private struct ServiceError: Error, Decodable, Equatable { var message: String }

    static func errors() async throws {
        try await TestOrigin.withOrigin { _ in
            .json(text: #"{"message":"no"}"#, status: 422)
        } run: { origin async throws in
            let lenient = try HTTPSession.plain().host(origin.base)
            #expect(try await lenient.get("a").statusCode == 422)
            let api = lenient.with { $0.errors = .decoding(ServiceError.self) }
            await #expect(throws: ServiceError(message: "no")) { try await api.get("a") }
            let session = HTTPSession.plain {
                $0.validator = .success
                $0.errors = ErrorMapper { ServiceError(message: $0.exchange?.text ?? "") }
            }
            await #expect(throws: ServiceError(message: #"{"message":"no"}"#)) {
                try await session.get(origin.url())
            }
            let validating = HTTPSession.plain {
                $0.validator = .custom { exchange in
                    throw try JSONDecoder().decode(ServiceError.self, from: Data(exchange.body))
                }
            }
            await #expect(throws: ServiceError(message: "no")) { try await validating.get(origin.url()) }
        }
    }

    static func cacheModes() async throws {
        let cases: [(CacheMode, age: Int?, source: HTTPExchange.Source, requests: Int)] = [
            (.standard, nil, .cache, 1), (.standard, 900, .validatedCache, 2), (.reload, nil, .network, 2),
            (.revalidate, nil, .validatedCache, 2), (.preferCache, 900, .staleCache, 1),
            (.onlyIfCached, nil, .cache, 1), (.noStore, nil, .network, 2),
        ]
        for (mode, age, source, count) in cases {
            try await TestOrigin.withOrigin(handler: .versions("max-age=600", age: age)) {
                origin async throws in
                let session = HTTPSession.plain { $0.cache = .memoryOnly() }
                var options = RequestOptions()
                options.cacheMode = mode
                _ = try await session.get(origin.url())
                #expect(try await session.get(origin.url(), options: options).source == source, "\(mode)")
                #expect(origin.requests.count == count, "\(mode)")
                if mode == .noStore { #expect(try await session.get(origin.url()).text == "1") }
                if mode == .onlyIfCached {
                    #expect(try await session.get(origin.url("/new"), options: options).statusCode == 504)
                }
            }
        }
        try await TestOrigin.withOrigin(handler: .versions("max-age=600", age: 900)) { origin async throws in
            let session = HTTPSession.plain { $0.cache = .memoryOnly() }
            _ = try await session.get(origin.url())
            var sources: [HTTPExchange.Source] = []
            for try await delivery in session.deliveries(for: origin.url(), cache: .cacheThenNetwork) {
                sources.append(delivery.exchange.source)
            }
            #expect(sources == [.staleCache, .validatedCache])
        }
    }
}
