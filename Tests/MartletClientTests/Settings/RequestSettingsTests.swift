import Martlet
@testable import MartletCore
import MartletTesting
import MartletTestSupport
import MartletTransport
import Synchronization
import Testing

/// Settings that URLSession's requests have, each for a session and for a call. Metered networks have their own suite.
@Suite("Settings of a request")
struct RequestSettingsTests {
    @Test("The cache mode of a call overrides that of the session")
    func cachePolicy() async throws {
        try await TestOrigin.withOrigin { request in
            CacheScene.answer("\(request.number)")
        } run: { origin async throws in
            let (session, _) = try CacheScene.session { $0.cacheMode = .reload }
            #expect(try await session.get(origin.url()).text == "1")
            #expect(try await session.get(origin.url()).text == "2")
            let stored = RequestOptions { $0.cacheMode = .onlyIfCached }
            #expect(try await session.get(origin.url(), options: stored).text == "2")
        }
    }

    @Test("Cookies come from the session's jar unless the call or its host disables them")
    func cookies() async throws {
        try await TestOrigin.withOrigin { request in
            OriginResponse(
                200, headers: ["Set-Cookie": "a=b"], body: .text(request.headers["Cookie"] ?? "none"))
        } run: { origin async throws in
            let session = HTTPSession.own { $0.cookies = CookieJar() }
            #expect(try await session.get(origin.url()).text == "none")
            #expect(try await session.get(origin.url()).text == "a=b")
            let without = RequestOptions { $0.usesCookies = false }
            #expect(try await session.get(origin.url(), options: without).text == "none")
            let api = try session.host(origin.url(), options: without)
            #expect(try await api.get().text == "none")
            #expect(try await api.get(options: .init { $0.usesCookies = true }).text == "a=b")
        }
    }

    @Test("Requests are never pipelined: the next one on a connection is sent after the response")
    func pipelining() async throws {
        let mock = MockTransport(
            scripts: ServerScript(
                .expectRequestHead, .await("go"), .send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1"),
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2"), .awaitClose))
        let connector = RecordingConnector(mock)
        let session = HTTPSession.own {
            $0.connector = connector
            $0.pool.connectionsPerHost = 1
        }
        async let first = session.get("http://a.test/1")
        #expect(await eventually { connector.sent.contains("GET /1") })
        async let second = session.get("http://a.test/2")
        #expect(await eventually { session.poolStatus.waiting == 1 })
        #expect(!connector.sent.contains("GET /2"))
        mock.signals.raise("go")
        #expect(try await [first.text, second.text] == ["1", "2"])
        #expect(connector.count == 1)
    }

    @Test(
        "The total timeout of a call overrides that of the session, in both directions",
        arguments: [false, true])
    func timeout(isShorter: Bool) async throws {
        try await TestOrigin.withOrigin(scripts: ServerScript(.expectRequestHead, .stall)) {
            origin async throws in
            let short = Duration.milliseconds(200)
            let session = HTTPSession.own { $0.timeouts.total = isShorter ? TestTimeouts.long : .milliseconds(1) }
            let call = RequestOptions { $0.timeouts.total = short }
            let error = await #expect(throws: HTTPError.self) {
                try await session.get(origin.url(), options: call)
            }
            #expect(error?.timeout == .total && (error?.elapsed ?? .zero) >= short)
        }
    }

    @Test("A connection has the service class of its current call, or else of the session")
    func serviceClass() async throws {
        let connector = RecordingConnector(MockTransport { _ in .text("x") })
        let session = HTTPSession.own {
            $0.connector = connector
            $0.serviceClass = .background
        }
        for serviceClass: ServiceClass? in [nil, .voice, .voice, .bestEffort, nil, nil] {
            let options = RequestOptions { $0.serviceClass = serviceClass }
            #expect(try await session.get("http://a.test/", options: options).text == "x")
        }
        #expect(connector.count == 1)
        #expect(connector.marks == [.voice, .bestEffort, .background])
    }

    @Test("The service class of a call, or else of its session, sets the priority unless a priority is set there")
    func priority() throws {
        func priority(
            of session: (serviceClass: ServiceClass?, priority: RequestPriority?) = (nil, nil),
            _ change: (inout RequestOptions) -> Void = { _ in }
        ) throws -> RequestPriority {
            var configuration = SessionConfiguration.default
            configuration.serviceClass = session.serviceClass
            if let priority = session.priority { configuration.priority = priority }
            return try Call(
                .get, [:], url: HTTPURL("http://a.test/"), body: .none, options: RequestOptions(change),
                settings: SessionSettings(configuration)
            ).priority
        }
        for (serviceClass, expected) in [
            (nil, .normal), (.background, .low), (.bestEffort, .normal), (.voice, .high),
        ] as [(ServiceClass?, RequestPriority)] {
            #expect(try priority { $0.serviceClass = serviceClass } == expected)
            #expect(try priority(of: (serviceClass, nil)) == expected)
            #expect(try priority(of: (serviceClass, .lowest)) == .lowest)
            #expect(try priority(of: (serviceClass, .normal)) == .normal)
            #expect(try priority(of: (serviceClass, .lowest)) { $0.serviceClass = .voice } == .high)
            #expect(try priority(of: (serviceClass, .lowest)) { $0.priority = .high } == .high)
        }
        #expect(
            try priority {
                $0.serviceClass = .voice
                $0.priority = .lowest
            } == .lowest)
    }
}

/// Connects to a mock transport, and records sent data and the service classes of its streams.
private final class RecordingConnector: StreamConnector {
    private final class Stream: ForwardingStream {
        let stream: any ByteStream
        let connector: RecordingConnector

        init(_ stream: any ByteStream, _ connector: RecordingConnector) {
            self.stream = stream
            self.connector = connector
        }

        func write(_ buffer: UnsafeRawBufferPointer) throws(TransportError) -> Int {
            let bytes = unsafe Array(buffer)
            connector.state.withLock { $0.sent += bytes }
            return unsafe try stream.write(buffer)
        }

        func mark(_ serviceClass: ServiceClass) { connector.state.withLock { $0.marks.append(serviceClass) } }
    }

    private let connector: any StreamConnector
    private let state = Mutex((count: 0, marks: [ServiceClass](), sent: [UInt8]()))

    init(_ connector: any StreamConnector) { self.connector = connector }

    var sent: String { String(decoding: state.withLock { $0.sent }, as: UTF8.self) }
    var count: Int { state.withLock { $0.count } }
    var marks: [ServiceClass] { state.withLock { $0.marks } }

    func connect(to destination: Destination) async throws(TransportError) -> any ByteStream {
        let stream = try await connector.connect(to: destination)
        state.withLock { $0.count += 1 }
        return Stream(stream, self)
    }
}
