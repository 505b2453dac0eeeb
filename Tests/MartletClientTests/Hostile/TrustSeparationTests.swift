import MartletCore
import MartletTesting
import Testing

/// Views of one session have separate connections, TLS sessions and trust decisions.
@Suite("Trust of views is separate", .timeLimit(.minutes(20)))
struct TrustSeparationTests {
    private func view(_ session: HTTPSession, _ trust: TrustPolicy) -> HTTPSession {
        session.with { $0.tls.trust = trust }
    }

    /// Sends a request on a connection that is closed afterwards.
    private func once(_ session: HTTPSession, _ origin: TestOrigin, isResumed: Bool) async throws {
        let exchange = try await session.get(origin.url(), headers: [.connection: "close"])
        #expect(exchange.metrics.connection?.tls?.isResumed == isResumed)
    }

    @Test("A server accepted without verification is verified by the next view")
    func verdictIsNotRemembered() async throws {
        try await TestOrigin.withOrigin(.tls(.selfSigned), respond: { _ in .text("good") }) { origin in
            let careless = view(HTTPSession(configuration: .patient), .dangerouslyAcceptingAnyCertificate)
            let careful = view(careless, .only(.text(origin.authorityPEM ?? "")))
            for _ in 0..<2 {
                let text = try await careless.get(origin.url()).text
                #expect(text == "good")
                let error = await #expect(throws: HTTPError.self) { try await careful.get(origin.url()) }
                #expect(error?.code == .tlsFailed)
            }
            #expect(origin.requests.count == 2)
        }
    }

    @Test("A view that verifies host names does so after a view that did not")
    func nameIsVerifiedAgain() async throws {
        try await TestOrigin.withOrigin(.tls(.wrongName), respond: { _ in .text("good") }) { origin in
            var configuration = SessionConfiguration.patient
            configuration.tls.trust = .only(.text(origin.authorityPEM ?? ""))
            configuration.tls.verifiesHostName = false
            let careless = HTTPSession(configuration: configuration)
            let careful = careless.with { $0.tls.verifiesHostName = true }
            let text = try await careless.get(origin.url()).text
            #expect(text == "good")
            let error = await #expect(throws: HTTPError.self) { try await careful.get(origin.url()) }
            #expect(error?.code == .tlsFailed)
        }
    }

    @Test("TLS sessions are resumed within a view, and never by a view with other trust")
    func ticketsAreApart() async throws {
        try await TestOrigin.withOrigin(.tls(), respond: { _ in .text("good") }) { origin in
            let careless = view(HTTPSession(configuration: .patient), .dangerouslyAcceptingAnyCertificate)
            try await once(careless, origin, isResumed: false)
            try await once(careless, origin, isResumed: true)
            let careful = view(careless, .only(.text(origin.authorityPEM ?? "")))
            try await once(careful, origin, isResumed: false)
            try await once(careful, origin, isResumed: true)
        }
    }

    @Test("An idle connection is not used by a view with other trust, identity or versions")
    func connectionsAreApart() async throws {
        try await TestOrigin.withOrigin(.tls(), respond: { _ in .text("good") }) { origin in
            let credentials = try #require(origin.credentials)
            let first = view(HTTPSession(configuration: .patient), .only(.text(credentials.authorityPEM)))
            let identity = TLSIdentity(
                certificateChain: .text(credentials.clientIdentity.certificatePEM),
                privateKey: .text(credentials.clientIdentity.privateKeyPEM))
            let views = [
                first,
                view(first, .dangerouslyAcceptingAnyCertificate),
                first.with { $0.tls.identity = identity },
                first.with { $0.tls.verifiesHostName = false },
                first.with { $0.tls.maximumVersion = .tls12 },
                first.with { $0.tls.applicationProtocols = [] },
            ]
            for _ in 0..<2 {
                for view in views { _ = try await view.get(origin.url()).validated() }
            }
            #expect(origin.connectionCount == views.count)
        }
    }

    @Test("An idle connection is used by views with the same connection settings")
    func connectionsAreShared() async throws {
        try await TestOrigin.withOrigin(.tls(), respond: { _ in .text("good") }) { origin in
            let first = view(HTTPSession(configuration: .patient), .only(.text(origin.authorityPEM ?? "")))
            let views = [
                first, first.with { $0.userAgent = nil }, first.with { $0.timeouts.total = TestTimeouts.long },
            ]
            for view in views { _ = try await view.get(origin.url()).validated() }
            #expect(origin.connectionCount == 1)
        }
    }
}
