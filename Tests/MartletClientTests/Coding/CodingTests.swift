import FoundationEssentials
import Martlet
import MartletTesting
import Testing

@Suite("Codable configurations and requests")
struct CodingTests {
    private static func json(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    private static func decode<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> Value {
        try JSONDecoder().decode(type, from: Data(text.utf8))
    }

    /// A configuration with a value other than the default for every property that can be encoded.
    private static func changed() throws -> SessionConfiguration {
        var configuration = SessionConfiguration.ephemeral
        configuration.timeouts = Timeouts(
            poolWait: .seconds(1), connect: .milliseconds(2_500), head: nil, idle: .seconds(4),
            unread: nil, total: .seconds(5))
        configuration.bufferedBodyLimit = .kibibytes(3)
        configuration.headers[.acceptLanguage] = "de"
        configuration.userAgent = nil
        configuration.decompressesResponses = false
        configuration.decompressionLimits = DecompressionLimits(maximumByteCount: 7, maximumRatio: 8)
        configuration.continueTimeout = .milliseconds(5)
        configuration.pool = PoolLimits(connectionsPerHost: 3, maximumAge: .seconds(9))
        configuration.bandwidth = BandwidthLimits(
            total: BandwidthLimit(upload: .bytesPerSecond(10)),
            perHost: BandwidthLimit(download: BandwidthRate(bytesPerSecond: 20, burst: 5)))
        configuration.wireLimits.isStrict = true
        configuration.tls.trust = try .only(.text("roots"), .file("/etc/roots.pem"), .bytes([0xFF, 0x00]))
            .pinningPublicKeys(
                PublicKeyPin(sha256: Array(repeating: 1, count: 32)).description,
                backup: PublicKeyPin(sha256: Array(repeating: 2, count: 32)).description)
        configuration.tls.hosts["*.example.com"] = TLSHostSettings(
            trust: .dangerouslyAcceptingAnyCertificate, revocation: .lists(.file("/crl"), scope: .leaf))
        configuration.tls.minimumVersion = .tls13
        configuration.tls.cipherSuites = "TLS_AES_128_GCM_SHA256"
        configuration.tls.revocation = .lists(.file("/other"), acceptsMissingLists: true)
        configuration.proxy = try .socks5("::1", port: 9050).bypassing(
            "a.example, 10.0.0.0/8:80, [fe80::]/10:8080, *.b"
        )
        .alwaysTunneling()
        configuration.redirects = .follow(limit: 3)
        configuration.redirects.secretFields = [try #require(HTTPField.Name("X-Api-Key"))]
        configuration.redirects.methodPreservingStatuses = [301, 302]
        configuration.redirects.staysOnHost = true
        configuration.retry = .transient(
            maximumAttempts: 5, backoff: .exponential(from: .seconds(1), upTo: .seconds(2)))
        configuration.retry.timeLimit = .seconds(3)
        configuration.resolveOverrides = [
            Endpoint(host: "a", port: 1): [
                try #require(SocketAddress(literal: "127.0.0.1", port: 2)),
                try #require(SocketAddress(literal: "::1", port: 3)),
                try #require(SocketAddress(unixPath: "@abstract")),
            ]
        ]
        configuration.connectOverrides = [ConnectOverride(fromHost: "a", toPort: 8080)]
        configuration.unixSocketPath = "/run/x.sock"
        configuration.happyEyeballs.families = .ipv4Only
        configuration.serviceClass = .background
        configuration.priority = .high
        configuration.queueOrder = .lastComeFirstServed
        configuration.concurrency = .sharedQueue
        configuration.queryEncoding = .bracketed
        return configuration
    }

    @Test(
        "A default and a fully changed configuration stay equal when encoded and decoded"
    )
    func roundTrip() throws {
        for configuration in [SessionConfiguration.default, .ephemeral, try CodingTests.changed()] {
            let text = try CodingTests.json(configuration)
            let decoded = try CodingTests.decode(SessionConfiguration.self, text)
            #expect(try CodingTests.json(decoded) == text)
            #expect(decoded.tls == configuration.tls)
            #expect(decoded.timeouts == configuration.timeouts)
            #expect(decoded.userAgent == configuration.userAgent)
            #expect(decoded.retry == configuration.retry)
            #expect(decoded.redirects == configuration.redirects)
            #expect(decoded.resolveOverrides == configuration.resolveOverrides)
            #expect(decoded.socketOptions == configuration.socketOptions)
            #expect(decoded.serviceClass == configuration.serviceClass)
            #expect(decoded.bandwidth == configuration.bandwidth)
            #expect(decoded.queueOrder == configuration.queueOrder)
            #expect(decoded.concurrency == configuration.concurrency)
            #expect(
                try decoded.queryEncoding.encoded(["a": [true, nil]])
                    == configuration.queryEncoding.encoded(["a": [true, nil]]))
        }
    }

    @Test("Options and requests stay equal when encoded and decoded")
    func requests() throws {
        var options = RequestOptions(
            timeouts: Timeouts(total: .seconds(1)), priority: .lowest, bodyLimit: 5, decompresses: false,
            redirects: .doNotFollow, retry: .never, idempotencyKey: .value("key"))
        options.version = .http10
        options.omittedFields = [.accept]
        options.trailers[.contentType] = "x/y"
        options.proxy = try .http("proxy.example:3128")
        options.usesCookies = false
        options.usesHSTS = false
        options.bandwidth.download = .bytesPerSecond(3)
        options.returnsRawBody = true
        options.ignoresContentLength = true
        options.allowsResendingNonIdempotentMethods = true
        options.queueOrder = .lastComeFirstServed
        options.meteredNetworks = .waits
        options.serviceClass = .voice
        for value in [options, RequestOptions()] {
            let text = try CodingTests.json(value)
            let decoded = try CodingTests.decode(RequestOptions.self, text)
            #expect(try CodingTests.json(decoded) == text)
            #expect(decoded.queueOrder == value.queueOrder)
        }
        let drawn = RequestOptions(idempotencyKey: .random)
        #expect(
            try CodingTests.decode(RequestOptions.self, CodingTests.json(drawn)).idempotencyKey == .random)
        var request = try HTTPRequest(method: .post, url: "https://example.com/a?b=c")
        request.headerFields[.accept] = "text/plain"
        #expect(try CodingTests.decode(HTTPRequest.self, CodingTests.json(request)) == request)
    }

    @Test("Encoded configurations and options contain no secrets")
    func secrets() throws {
        var configuration = SessionConfiguration.default
        configuration.headers[.authorization] = "Bearer secret-1"
        configuration.headers[.cookie] = "a=secret-2"
        configuration.headers[.proxyAuthorization] = "Basic secret-3"
        configuration.authentication.credentials = .basic(user: "secret-4", password: "secret-5")
        configuration.proxy = try .https(
            "https://secret-6:secret-7@proxy.example",
            tls: TLSSettings(identity: TLSIdentity(pkcs12: .file("/id"), passphrase: "secret-8")))
        configuration.tls.identity = TLSIdentity(
            certificateChain: .text("secret-9"), privateKey: .text("secret-10"), passphrase: "secret-11")
        configuration.tls.hosts["a"] = TLSHostSettings(identity: configuration.tls.identity)
        var options = RequestOptions()
        options.authentication = AuthenticationSettings(credentials: .bearer("secret-12"))
        options.proxy = configuration.proxy.withCredentials(
            ProxyCredentials(user: "secret-13", password: "secret-14"))
        options.trailers[.authorization] = "secret-15"
        for text in [try CodingTests.json(configuration), try CodingTests.json(options)] {
            #expect(!text.contains("secret-"))
            #expect(text.contains("proxy.example"))
        }
    }

    @Test("Encoding a closure, a validator or a private key among the roots is an error")
    func closures() throws {
        var trust = SessionConfiguration.default
        trust.tls.trust = .custom { _, _ in .deny(reason: "no") }
        var suffixes = SessionConfiguration.default
        suffixes.tls.publicSuffixes = PublicSuffixRule { _ in true }
        var proxy = SessionConfiguration.default
        proxy.proxy = .selector { _ in nil }
        var key = SessionConfiguration.default
        key.tls.trust = .only(.text("-----BEGIN PRIVATE KEY-----"))
        var validator = SessionConfiguration.default
        validator.validator = .success
        for configuration in [trust, suffixes, proxy, key, validator] {
            #expect(throws: EncodingError.self) { try CodingTests.json(configuration) }
        }
        for options in [RequestOptions(validator: .anything), RequestOptions { $0.onInterimResponse = { _ in } }] {
            #expect(throws: EncodingError.self) { try CodingTests.json(options) }
        }
    }

    @Test("Public suffix rules without a closure stay equal when encoded and decoded")
    func publicSuffixes() throws {
        for rule in [PublicSuffixRule.system, .singleLabel] {
            var configuration = SessionConfiguration.default
            configuration.tls.publicSuffixes = rule
            let text = try CodingTests.json(configuration)
            #expect(try CodingTests.decode(SessionConfiguration.self, text).tls.publicSuffixes == rule)
        }
    }

    @Test("Decoding ignores unknown keys and uses the defaults for missing ones")
    func leniency() throws {
        let decoded = try CodingTests.decode(
            SessionConfiguration.self,
            #"{"later":1,"priority":3,"tls":{"newer":[]},"redirects":{"limit":2,"x":{}},"userAgent":null}"#)
        #expect(decoded.priority == .high)
        #expect(decoded.redirects.limit == 2)
        #expect(decoded.redirects.followsRedirects)
        #expect(decoded.tls == TLSSettings())
        #expect(decoded.userAgent == nil)
        #expect(decoded.timeouts == Timeouts())
        #expect(try CodingTests.decode(SessionConfiguration.self, "{}").userAgent != nil)
        #expect(try CodingTests.decode(RequestOptions.self, "{}").usesCookies == nil)
    }

    /// Keys without a default of their own. That of `isForWholeChain` is the strictest value.
    private static let requiredKeys: Set = ["bytes", "isForWholeChain", "usesEnvironment"]

    /// The value without one member of one of its objects, for each such member.
    private static func reduced(_ value: JSONValue) -> [JSONValue] {
        guard let object = value.objectValue else { return [] }
        var results: [JSONValue] = []
        for name in object.names where !requiredKeys.contains(name) {
            var copy = object
            copy[name] = JSONValue?.none
            results.append(.object(copy))
            for part in reduced(object[name] ?? .null) {
                copy[name] = part
                results.append(.object(copy))
            }
        }
        return results
    }

    @Test("Each setting without one of its keys has the default of that key")
    func missingKeys() throws {
        let text = try CodingTests.json(SessionConfiguration.default)
        let reduced = CodingTests.reduced(try JSONValue(parsing: text))
        #expect(reduced.count > 60)
        for value in reduced {
            let part = String(decoding: value.bytes(), as: UTF8.self)
            let decoded = try CodingTests.decode(SessionConfiguration.self, part)
            #expect(try CodingTests.json(decoded) == text, "\(part)")
        }
    }

    @Test("A null disables a setting, and the keys beside it have their defaults")
    func partialSettings() throws {
        let decoded = try CodingTests.decode(
            SessionConfiguration.self,
            #"""
            {"socketOptions":{"keepAliveInterval":null},"pool":{"agingInterval":null,"connectionsPerHost":4},
            "happyEyeballs":{"families":"ipv4Only"},"retry":{"attempts":3,"budget":null},
            "concurrency":{"wifi":{"total":2}},"bandwidth":{"perHost":{"upload":{"bytesPerSecond":9}}}}
            """#)
        #expect(decoded.socketOptions.keepAliveInterval == nil)
        #expect(decoded.socketOptions.tcpNoDelay)
        #expect(decoded.pool == PoolLimits(connectionsPerHost: 4, agingInterval: nil))
        #expect(decoded.happyEyeballs == HappyEyeballsOptions(families: .ipv4Only))
        #expect(decoded.retry == .transient(maximumAttempts: 3, budget: nil))
        #expect(decoded.concurrency == ConcurrencyPolicy(wifi: ConcurrencyPolicy.Limits(total: 2)))
        #expect(decoded.bandwidth.perHost.upload?.bytesPerSecond == 9)
        let again = try CodingTests.decode(SessionConfiguration.self, CodingTests.json(decoded))
        #expect(try CodingTests.json(again) == CodingTests.json(decoded))
        #expect(again.socketOptions == decoded.socketOptions)
    }

    @Test(
        "Decoding an invalid value is an error",
        arguments: [
            #"{"timeouts":{"idle":[-1,0]}}"#, #"{"bufferedBodyLimit":{"bytes":-1}}"#, #"{"priority":99}"#,
            #"{"tls":{"securityLevel":6}}"#, #"{"tls":{"minimumVersion":10}}"#,
            #"{"tls":{"trust":{"pinnedPublicKeys":["x"]}}}"#,
            #"{"proxy":{"server":{"scheme":"ftp","host":"a"}}}"#,
            #"{"proxy":{"server":{"scheme":"http","host":"a b"}}}"#,
            #"{"proxy":{"server":{"scheme":"http","host":"a","port":0}}}"#, #"{"redirects":{"limit":-1}}"#,
            #"{"retry":{"attempts":0}}"#, #"{"retry":{"attempts":2,"budget":-1}}"#,
            #"{"retry":{"attempts":2,"wait":[-1,0]}}"#, #"{"continueTimeout":[-1,0]}"#,
            #"{"bandwidth":{"total":{"upload":{"bytesPerSecond":0}},"perHost":{}}}"#,
            #"{"resolveOverrides":[{"host":"a","port":1},[{"host":"b","port":1}]]}"#,
            #"{"serviceClass":64}"#, #"{"socketOptions":{"tcpNoDelay":1}}"#, #"{"headers":7}"#, "[]",
        ])
    func badValues(_ text: String) {
        #expect(throws: DecodingError.self) { try CodingTests.decode(SessionConfiguration.self, text) }
    }

    @Test("A list of proxy bypass rules stays equal when encoded and decoded")
    func bypass() throws {
        let settings = try ProxySettings.http("p").bypassingOnly(
            ProxyBypass("*, .a.example:81, 10.1.2.3, 192.168.0.0/16, ::1, [2001:db8::]/32:443"))
        let text = try CodingTests.json(settings)
        #expect(try CodingTests.json(CodingTests.decode(ProxySettings.self, text)) == text)
        #expect(text.contains("[2001:db8:0:0:0:0:0:0]/32:443"))
        #expect(text.contains("a.example:81"))
    }
}
