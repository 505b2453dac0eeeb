#if Configuration
    import Configuration
    import Foundation
    import Martlet
    import MartletTesting
    import Synchronization
    import Testing

    @Suite("Settings of swift-configuration", .timeLimit(.minutes(20)))
    struct SettingsTests {
        private func read(_ values: [AbsoluteConfigKey: ConfigValue]) async throws -> SessionConfiguration {
            try await SessionConfiguration(reading: ConfigReader(provider: InMemoryProvider(values: values)))
        }

        @Test("Each key has its effect, with typed values and below a prefix")
        func typedValues() async throws {
            let values: [AbsoluteConfigKey: ConfigValue] = [
                "http.timeouts.total": 60, "http.timeouts.connect": 2.5, "http.timeouts.head": "none",
                "http.timeouts.idle": "0.25", "http.timeouts.poolWait": 3, "http.timeouts.unread": 4,
                "http.continueTimeout": 0, "http.requestInterval": 0.5, "http.pool.idleLifetime": 5,
                "http.pool.maximumAge": 600, "http.pool.connectionsPerHost": 2, "http.pool.totalConnections": 3,
                "http.pool.idleConnectionsPerHost": 0, "http.pool.idleConnections": 1, "http.pool.maximumUses": 9,
                "http.bufferedBodyLimit": 1024, "http.decompressesResponses": false, "http.redirects.follows": false,
                "http.redirects.limit": 7, "http.retry.maximumAttempts": 4, "http.retry.budget": 0.5,
                "http.retry.timeLimit": 30, "http.bandwidth.total.upload": 1000,
                "http.bandwidth.total.download": "2000",
                "http.bandwidth.perHost.upload": 3000, "http.bandwidth.perHost.download": 4000,
                "http.proxy.url": "socks5h://proxy.example:1080", "http.proxy.bypass": "intranet",
                "http.tls.minimumVersion": 1.3, "http.tls.usesSystemAuthorities": false,
                "http.cache.memoryLimit": 1_000_000, "http.unknown": true, "timeouts.total": 1,
            ]
            let reader = ConfigReader(provider: InMemoryProvider(values: values)).scoped(to: "http")
            let read = try await SessionConfiguration(reading: reader)
            #expect(
                read.timeouts
                    == Timeouts(
                        poolWait: .seconds(3), connect: .seconds(2.5), head: nil, idle: .milliseconds(250),
                        unread: .seconds(4), total: .seconds(60)))
            #expect(read.continueTimeout == .zero && read.requestInterval == .milliseconds(500))
            #expect(
                read.pool
                    == PoolLimits(
                        connectionsPerHost: 2, totalConnections: 3, idleConnectionsPerHost: 0, idleConnections: 1,
                        idleLifetime: .seconds(5), maximumAge: .seconds(600), maximumUses: 9))
            #expect(read.bufferedBodyLimit == 1024 && !read.decompressesResponses)
            #expect(!read.redirects.followsRedirects && read.redirects.limit == 7)
            var retry = RetryPolicy.transient(maximumAttempts: 4, budget: 0.5)
            retry.timeLimit = .seconds(30)
            #expect(read.retry == retry)
            let rate = BandwidthRate.bytesPerSecond
            let total = BandwidthLimit(upload: rate(1000), download: rate(2000))
            #expect(read.bandwidth == .init(total: total, perHost: .init(upload: rate(3000), download: rate(4000))))
            #expect("\(read.proxy)" == "the proxy socks5h://proxy.example:1080")
            #expect(read.tls.minimumVersion == .tls13 && !read.tls.trust.usesSystemRoots)
            #expect(read.cache != nil && read.cache?.directory == nil)
        }

        @Test("Texts of the environment are read, and missing settings stay as they are")
        func environment() async throws {
            let variables = [
                "TIMEOUTS_TOTAL": "1e2", "POOL_MAXIMUM_AGE": "none", "HEADERS": "X-Zone: a:1, Accept: text/plain",
                "USER_AGENT": "", "DECOMPRESSES_RESPONSES": "NO", "PROXY_URL": "none", "TLS_MAXIMUM_VERSION": "1.2",
                "REDIRECTS_FOLLOWS": "1", "RETRY_MAXIMUM_ATTEMPTS": "1", "RETRY_BUDGET": "none",
            ]
            var configuration = SessionConfiguration.ephemeral
            configuration.headers = ["Accept": "text/html", "X-Other": "b"]
            configuration.timeouts.head = .seconds(7)
            configuration.pool.maximumAge = .seconds(1)
            configuration.redirects = .doNotFollow
            configuration.retry = .transient(maximumAttempts: 5, statuses: [503])
            let provider = EnvironmentVariablesProvider(environmentVariables: variables)
            try await configuration.update(from: ConfigReader(provider: provider))
            #expect(configuration.timeouts == Timeouts(head: .seconds(7), total: .seconds(100)))
            #expect(configuration.pool.maximumAge == nil && configuration.userAgent == nil)
            #expect(configuration.headers == ["Accept": "text/plain", "X-Other": "b", "X-Zone": "a:1"])
            #expect(!configuration.decompressesResponses && "\(configuration.proxy)" == "no proxy")
            #expect(configuration.tls.maximumVersion == .tls12 && !configuration.tls.usesSessionTickets)
            #expect(configuration.redirects == .follow())
            #expect(configuration.retry == .transient(maximumAttempts: 1, budget: nil, statuses: [503]))
        }

        @Test(
            "A wrong type and a value that is not allowed are errors that name the key, but not the value",
            arguments: [
                ("timeouts.total", true, "a number of seconds from 0.001 to 1000000000, or “none”"),
                ("timeouts.total", "1 minute 17", "a number of seconds"), ("timeouts.connect", 0, "0.001"),
                ("timeouts.idle", -17, "0.001"), ("timeouts.head", "nan", "0.001"), ("timeouts.head", 1e17, "0.001"),
                ("timeouts.unread", .init(.stringArray(["17"]), isSecret: false), "seconds"),
                ("timeouts.poolWait", .init(.bytes([17]), isSecret: false), "seconds"),
                ("requestInterval", -17, "from 0"),
                ("continueTimeout", "none", "from 0 to"), ("pool.connectionsPerHost", 0, "at least 1"),
                ("pool.idleConnections", -17, "at least 0"), ("pool.totalConnections", 17.5, "a whole number"),
                ("pool.maximumUses", "", "at least 1, or “none”"), ("bufferedBodyLimit", "17 MiB", "at least 0"),
                ("bandwidth.total.upload", 0, "at least 1, or “none”"), ("userAgent", "17\r\nX: y", "a header field"),
                ("headers", "17", "“Name: value”"), ("headers", "X Y: 17", "“Name: value”"),
                ("headers", ": 17", "“Name"),
                ("decompressesResponses", 17, "true or false"), ("redirects.follows", "maybe17", "true or false"),
                ("redirects.limit", -17, "at least 0"), ("retry.maximumAttempts", 0, "at least 1"),
                ("retry.budget", 17, "a number from 0 to 1, or “none”"),
                ("proxy.url", "ftp://17", "the URL of a proxy"),
                ("tls.minimumVersion", "1.17", "“1.2” or “1.3”"), ("tls.authorities", "/nowhere", "PEM files"),
                ("tls.certificate", "/nowhere", "a PEM file"), ("cache.memoryLimit", -17, "at least 0"),
                ("cache.directory", "/tmp", "a directory"),
            ] as [(String, ConfigValue, String)])
        func invalid(key: String, value: ConfigValue, expected: String) async throws {
            var configuration = SessionConfiguration.default
            // Read before most others, and discarded after the error.
            let values: [AbsoluteConfigKey: ConfigValue] = [.init(ConfigKey(key)): value, "pool.idleLifetime": 5]
            let provider = InMemoryProvider(values: values)
            let thrown = await #expect(throws: InvalidSettingError.self) {
                try await configuration.update(from: ConfigReader(provider: provider))
            }
            let error = try #require(thrown)
            #expect(error.key == key && error.expected.contains(expected), "\(error)")
            #expect(error.description.contains(key) && !error.description.contains("17"), "\(error)")
            #expect(configuration.pool.idleLifetime == .seconds(60))
        }

        @Test(
            "A setting without the one that it belongs to, and versions that contradict each other, are errors",
            arguments: [
                (["proxy.password": "x"], "proxy.user"), (["tls.privateKey": "/k"], "tls.certificate"),
                (["tls.passphrase": "x"], "tls.certificate"), (["cache.diskLimit": 9], "cache.directory"),
                (["tls.minimumVersion": "1.3", "tls.maximumVersion": "1.2"], "tls.minimumVersion"),
            ] as [([AbsoluteConfigKey: ConfigValue], String)])
        func incomplete(values: [AbsoluteConfigKey: ConfigValue], key: String) async {
            let error = await #expect(throws: InvalidSettingError.self) { try await read(values) }
            #expect(error?.key == key)
        }

        @Test("The failure of a provider is not taken for a missing value")
        func failingProvider() async {
            struct Failing: ConfigProvider {
                let providerName = "failing"

                func value(forKey key: AbsoluteConfigKey, type: ConfigType) throws -> LookupResult {
                    throw CocoaError(.fileReadUnknown)
                }
                func fetchValue(forKey key: AbsoluteConfigKey, type: ConfigType) async throws -> LookupResult {
                    try value(forKey: key, type: type)
                }
                func watchValue<Return: ~Copyable>(
                    forKey key: AbsoluteConfigKey, type: ConfigType,
                    updatesHandler: (ConfigUpdatesAsyncSequence<Result<LookupResult, any Error>, Never>) async throws ->
                        Return
                ) async throws -> Return {
                    try await watchValueFromValue(forKey: key, type: type, updatesHandler: updatesHandler)
                }
                func snapshot() -> any ConfigSnapshot { InMemoryProvider(values: [:]).snapshot() }
                func watchSnapshot<Return: ~Copyable>(
                    updatesHandler: (ConfigUpdatesAsyncSequence<any ConfigSnapshot, Never>) async throws -> Return
                ) async throws -> Return {
                    try await watchSnapshotFromSnapshot(updatesHandler: updatesHandler)
                }
            }
            let error = await #expect(throws: InvalidSettingError.self) {
                try await SessionConfiguration(reading: ConfigReader(provider: Failing()))
            }
            #expect(error?.underlying is CocoaError)
        }

        @Test("Secrets are marked for the reports of accesses, and other values are not")
        func secrets() async throws {
            let reporter = Reporter()
            let provider = EnvironmentVariablesProvider(environmentVariables: [
                "PROXY_URL": "http://u:p@proxy.example", "PROXY_USER": "u", "PROXY_PASSWORD": "p",
                "HEADERS": "Authorization: Bearer x", "TLS_PASSPHRASE": "p", "TLS_CERTIFICATE": "/nowhere",
            ])
            await #expect(throws: InvalidSettingError.self) {
                try await SessionConfiguration(reading: ConfigReader(provider: provider, accessReporter: reporter))
            }
            let secrets = reporter.keys.withLock { keys in keys.filter { $0.value }.keys }
            #expect(Set(secrets) == ["headers", "proxy.password", "proxy.url", "tls.passphrase"])
        }

        @Test("The page of the documentation lists the keys that are read, and no others")
        func documentedKeys() async throws {
            let reporter = Reporter()
            let provider = InMemoryProvider(values: [:])
            _ = try await SessionConfiguration(reading: ConfigReader(provider: provider, accessReporter: reporter))
            let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent().appending(path: "Sources/Martlet/Martlet.docc/ServerSettings.md")
            let rows = try String(contentsOf: page, encoding: .utf8).split(separator: "\n").filter {
                $0.hasPrefix("| `")
            }
            let documented = rows.flatMap { row in
                row.split(separator: "|")[0].matches(of: /`([^`]+)`/).map { String($0.output.1) }
            }
            #expect(documented.count > 40 && documented.count == Set(documented).count)
            #expect(Set(reporter.keys.withLock { $0.keys }) == Set(documented))
        }

        /// A reporter of the keys that are read, and of whether their values are secret.
        private final class Reporter: AccessReporter {
            let keys = Mutex<[String: Bool]>([:])

            func report(_ event: AccessEvent) {
                let value = try? event.result.get()
                keys.withLock { $0["\(event.metadata.key)"] = value?.isSecret == true }
            }
        }

        @Test("A session uses the authorities, the client certificate, the fields and the cache of its settings")
        func session() async throws {
            try await TestOrigin.withOrigin(.tls(.demandsClientCertificate)) { request in
                let fields = ["User-Agent", "X-Zone"].map { request.headers[$0] ?? "" }
                var response = OriginResponse.text(fields.joined(separator: " "))
                response.headers["Cache-Control"] = "max-age=600"
                return response
            } run: { origin async throws in
                let directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
                try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
                defer { try? FileManager.default.removeItem(at: directory) }
                let credentials = try #require(origin.credentials)
                var values: [AbsoluteConfigKey: ConfigValue] = [
                    "userAgent": "app/1", "headers": "X-Zone: a", "tls.usesSystemAuthorities": false,
                    "cache.directory": .init(.string(directory.appending(path: "cache").path), isSecret: false),
                    "timeouts.connect": 300, "timeouts.head": 300,
                ]
                for (key, text) in [
                    ("authorities", credentials.authorityPEM),
                    ("certificate", credentials.clientIdentity.certificatePEM),
                    ("privateKey", credentials.clientIdentity.privateKeyPEM),
                ] {
                    let file = directory.appending(path: key)
                    try text.write(to: file, atomically: false, encoding: .utf8)
                    values[AbsoluteConfigKey(ConfigKey("tls.\(key)"))] = .init(.string(file.path), isSecret: false)
                }
                let session = HTTPSession(configuration: try await read(values))
                for _ in 0..<2 { #expect(try await session.get(origin.url("/")).text == "app/1 a") }
                #expect(origin.recorder.counts.requests == 1)
            }
        }

        @Test("Calls use the proxy of the settings with its credentials, except for the excluded hosts")
        func proxy() async throws {
            try await TestOrigin.withOrigin { request in
                .text(request.headers["Proxy-Authorization"] ?? "direct")
            } run: { origin async throws in
                let values: [AbsoluteConfigKey: ConfigValue] = [
                    "proxy.url": .init(.string(origin.base), isSecret: true), "proxy.user": "u", "proxy.password": "p",
                    "proxy.bypass": "127.0.0.1,intranet", "timeouts.connect": 300, "timeouts.head": 300,
                ]
                let session = HTTPSession(configuration: try await read(values))
                #expect(try await session.get("http://example.invalid/").text == "Basic dTpw")
                #expect(try await session.get(origin.url("/")).text == "direct")
            }
        }
    }
#endif
