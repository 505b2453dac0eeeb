import Testing

@testable import MartletTransport

@Suite("TLS session tickets")
struct TLSResumptionTests {
    /// Connects, sends a byte in each direction so that session tickets arrive, and closes; returns whether the session
    /// was resumed.
    private func connect(
        _ client: TLSContext, _ server: TLSContext, name: String = "localhost", port: Int = 443,
        isClean: Bool = true
    ) async throws -> Bool {
        let outcome = await (try TLSPair()).handshake(client: client, server: server, name: name, port: port)
        let (near, far) = (try outcome.client.get(), try outcome.server.get())
        try await far.send([1])
        #expect(try await near.receive().1 == [1])
        if isClean { far.close() } else { far.closeWithoutNotifying() }
        #expect(try await near.receive().0 == .endOfStream(isClean: isClean))
        near.close()
        return near.information.tls?.isResumed ?? false
    }

    @Test("The second connection to an origin resumes the session of the first", arguments: TLSVersion.allCases)
    func resumes(version: TLSVersion) async throws {
        let client = try Certificates.client { $0.maximumVersion = version }
        let server = try Certificates.server()
        #expect(try await connect(client, server) == false)
        #expect(try await connect(client, server) == true)
        #expect(try await connect(client, server) == true)
    }

    @Test("A session is resumed even if its connection ended without close_notify", arguments: TLSVersion.allCases)
    func resumesAfterTruncation(version: TLSVersion) async throws {
        let client = try Certificates.client { $0.maximumVersion = version }
        let server = try Certificates.server()
        #expect(try await connect(client, server, isClean: false) == false)
        #expect(try await connect(client, server) == true)
    }

    @Test("A resumed session retains the peer's certificate")
    func certificate() async throws {
        let (client, server) = (try Certificates.client(), try Certificates.server())
        #expect(try await connect(client, server) == false)
        let outcome = await (try TLSPair()).handshake(client: client, server: server)
        let tls = try #require(try outcome.client.get().information.tls)
        #expect(tls.isResumed)
        #expect(tls.peerCertificate.first == 0x30)
    }

    @Test("A different context never resumes the session")
    func otherContext() async throws {
        let server = try Certificates.server()
        #expect(try await connect(try Certificates.client(), server) == false)
        #expect(try await connect(try Certificates.client(), server) == false)
        let careless = try Certificates.client { $0.trust = .dangerouslyAcceptingAnyCertificate }
        #expect(try await connect(careless, server) == false)
        #expect(try await connect(careless, server) == true)
        #expect(try await connect(try Certificates.client(), server) == false)
    }

    @Test("A different host or port never resumes the session")
    func otherPlace() async throws {
        let (client, server) = (try Certificates.client(), try Certificates.server())
        #expect(try await connect(client, server) == false)
        #expect(try await connect(client, server, port: 444) == false)
        #expect(try await connect(client, server, name: "127.0.0.1") == false)
        #expect(try await connect(client, server, name: "LOCALHOST") == true)
    }

    @Test("A context without tickets resumes no session", arguments: TLSVersion.allCases)
    func off(version: TLSVersion) async throws {
        let client = try Certificates.client {
            $0.maximumVersion = version
            $0.usesSessionTickets = false
        }
        let server = try Certificates.server()
        #expect(try await connect(client, server) == false)
        #expect(try await connect(client, server) == false)
    }

    @Test("A TLS 1.3 session is used once unless it is the last, and the cache stays within its limit")
    func bounds() async throws {
        let client = try Certificates.client()
        let server = try Certificates.server()
        let cache = try #require(client.sessions)
        #expect(try await connect(client, server) == false)
        let key = TLSSessionCache.Key(host: "localhost", port: 443)
        let session = try #require(cache.take(for: key))
        #expect(session.servesOnce)
        let small = TLSSessionCache(destinationLimit: 3, sessionLimit: 2)
        for port in 1...5 {
            for _ in 1...3 { small.insert(session, for: .init(host: "a", port: port)) }
        }
        #expect(small.destinationCount == 3)
        #expect(small.take(for: .init(host: "a", port: 2)) == nil)
        let other = try #require(small.take(for: .init(host: "a", port: 5)))
        for _ in 1...2 { #expect(small.take(for: .init(host: "a", port: 5)) === other) }
        #expect(small.destinationCount == 3)
    }

    // Such a server once received the session again with every connection, and every handshake failed until the
    // sessions expired.
    @Test("After a failed handshake the sessions of that origin are not offered again", arguments: TLSVersion.allCases)
    func rejectedSession(version: TLSVersion) async throws {
        let client = try Certificates.client { $0.maximumVersion = version }
        let server = try Certificates.server()
        #expect(try await connect(client, server) == false)
        let pair = try TLSPair()
        pair.server.close()
        let cut = await TLSPair.connect(pair.client, client, "localhost", 443)
        #expect(throws: TransportError.self) { try cut.get() }
        #expect(client.sessions?.destinationCount == 0)
        #expect(try await connect(client, server) == false)
        #expect(try await connect(client, server) == true)
    }

    @Test("After a handshake timeout the sessions of that origin are not offered again", arguments: TLSVersion.allCases)
    func swallowedSession(version: TLSVersion) async throws {
        let client = try Certificates.client { $0.maximumVersion = version }
        let server = try Certificates.server()
        #expect(try await connect(client, server) == false)
        let pair = try TLSPair()
        do {
            _ = try await TLSStream.connect(
                socket: pair.client, context: client, serverName: "localhost", port: 443,
                deadline: MonotonicTime.now().advanced(by: .milliseconds(20)))
            Issue.record("nobody answered")
        } catch TransportError.timedOut {
        }
        #expect(client.sessions?.destinationCount == 0)
        pair.server.close()
    }

    @Test("An alert for an offered session removes only the sessions of that origin")
    func alert() async throws {
        let client = try Certificates.client { $0.maximumVersion = .tls12 }
        let server = try Certificates.server()
        #expect(try await connect(client, server) == false)
        #expect(try await connect(client, server, port: 444) == false)
        let strict = try Certificates.server { $0.minimumVersion = .tls13 }
        let rejected = await (try TLSPair()).handshake(client: client, server: strict)
        #expect(rejected.clientError?.kind == .protocolVersion)
        #expect(try await connect(client, server) == false)
        #expect(try await connect(client, server, port: 444) == true)
    }

    @Test("An expired session is dropped")
    func tooOld() async throws {
        let client = try Certificates.client()
        #expect(try await connect(client, try Certificates.server()) == false)
        let cache = try #require(client.sessions)
        #expect(cache.take(for: .init(host: "localhost", port: 443), now: Int.max) == nil)
        #expect(cache.destinationCount == 0)
    }
}
