import FoundationEssentials
import MartletTesting
import MartletTransport
import Testing

@Suite("Origins over TLS")
struct TLSTests {
    private func context(
        _ origin: TestOrigin, identity: OriginCredentials.Identity? = nil,
        _ change: (inout TLSSettings) -> Void = { _ in }
    ) throws -> TLSContext {
        var settings = TLSSettings(trust: .only(.text(try #require(origin.authorityPEM))))
        if let identity {
            settings.identity = TLSIdentity(
                certificateChain: .text(identity.certificatePEM), privateKey: .text(identity.privateKeyPEM))
        }
        change(&settings)
        return try TLSContext(client: settings)
    }

    private func failure(of tls: OriginTLS) async throws -> TLSError.Kind? {
        try await TestOrigin.withOrigin(.tls(tls), handler: .echo) { origin in
            let context = try context(origin)
            do {
                _ = try await RawClient(origin, tls: context)
                return nil
            } catch TransportError.tls(let error) {
                try await origin.recorder.waitForCounts { $0.failedHandshakes == 1 }
                return error.kind
            }
        }
    }

    @Test("A trusted origin responds and reports the name, version and resumption")
    func trusted() async throws {
        try await TestOrigin.withOrigin(.tls(), handler: .echo) { origin in
            #expect(origin.url("/x") == "https://127.0.0.1:\(origin.port)/x")
            let client = try await RawClient(origin, tls: try context(origin))
            let answer = try await client.get("/")
            let report = try JSONDecoder().decode(EchoReport.self, from: Data(answer.body))
            #expect(report.tls == "TLSv1.3")
            #expect(report.serverName == "localhost")
            #expect(report.clientCertificate == nil)
        }
    }

    @Test("The client reports each certificate fault as the matching error")
    func faults() async throws {
        #expect(try await failure(of: .trusted) == nil)
        #expect(try await failure(of: .expired) == .expired)
        #expect(try await failure(of: .notYetValid) == .notYetValid)
        #expect(try await failure(of: .wrongName) == .nameMismatch(["wrong.example"]))
        #expect(try await failure(of: .unknownAuthority) == .unknownAuthority)
        #expect(try await failure(of: .selfSigned) == .selfSigned)
    }

    @Test("A required client certificate is identified by its name")
    func clientCertificate() async throws {
        try await TestOrigin.withOrigin(.tls(.demandsClientCertificate), handler: .echo) { origin in
            let identity = try #require(origin.credentials).clientIdentity
            let client = try await RawClient(origin, tls: try context(origin, identity: identity))
            let answer = try await client.get("/")
            let report = try JSONDecoder().decode(EchoReport.self, from: Data(answer.body))
            #expect(report.clientCertificate == "martlet test client")
        }
    }

    @Test("A client with a missing or untrusted certificate is rejected")
    func refusesClients() async throws {
        try await TestOrigin.withOrigin(
            .tls(.demandsClientCertificate.versions(.tls12 ... .tls12)), handler: .echo
        ) {
            origin in
            let stranger = try #require(origin.credentials).untrustedIdentity
            for identity in [nil, stranger] {
                let context = try context(origin, identity: identity)
                await #expect(throws: TransportError.self) { try await RawClient(origin, tls: context) }
            }
        }
    }

    @Test("An origin accepts only its configured TLS versions")
    func versions() async throws {
        try await TestOrigin.withOrigin(.tls(.trusted.versions(.tls12 ... .tls12)), handler: .echo) {
            origin in
            let client = try await RawClient(origin, tls: try context(origin))
            #expect(client.stream.information.tls?.version == "TLSv1.2")
            let tooNew = try context(origin) { $0.minimumVersion = .tls13 }
            await #expect(throws: TransportError.self) { try await RawClient(origin, tls: tooNew) }
        }
    }

    @Test("A script closes TLS with or without a close_notify")
    func endsCleanlyOrNot() async throws {
        try await TestOrigin.withOrigin(
            .tls(), scripts: ServerScript(.send("x"), .close), ServerScript(.send("x"), .closeWithoutNotify)
        ) { origin in
            let context = try context(origin)
            let orderly = try await RawClient(origin, tls: context)
            #expect(try await orderly.end() == true)
            let cut = try await RawClient(origin, tls: context)
            #expect(try await cut.end() == false)
        }
    }

    @Test("A client that disconnects over TLS cancels its handler")
    func departureCancels() async throws {
        try await TestOrigin.withOrigin(.tls()) { _ in
            try await Task.sleep(for: .seconds(3600))
            return .text("late")
        } run: { origin in
            let client = try await RawClient(origin, tls: try context(origin))
            try await client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n")
            try await origin.waitForRequests(count: 1)
            client.close()
            try await origin.recorder.waitForOpenConnections(atMost: 0)
        }
    }

    @Test("A large body passes over TLS, and stopping ends it in the middle")
    func largeBodies() async throws {
        let origin = try await TestOrigin.start(.tls(), handler: .bytes(1 << 40))
        let client = try await RawClient(origin, tls: try context(origin))
        try await client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n")
        _ = try await client.receive(through: "\r\n\r\n")
        let start = try await client.receive(exactly: 1 << 20)
        #expect(TestPattern.firstMismatch(in: start, at: 0) == nil)
        await origin.stop()
        #expect(origin.openConnectionCount == 0)
    }
}
