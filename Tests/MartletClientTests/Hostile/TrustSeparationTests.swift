import MartletCore
import MartletTesting
import Testing

/// What one view of a session was allowed, another is not: connections, TLS sessions and verdicts are kept apart.
@Suite("Views of one session do not share trust", .timeLimit(.minutes(20)))
struct TrustSeparationTests {
    private func view(_ session: HTTPSession, _ trust: TrustPolicy) -> HTTPSession {
        session.with { $0.tls.trust = trust }
    }

    /// A request that leaves no connection behind.
    private func once(_ session: HTTPSession, _ origin: TestOrigin, isResumed: Bool) async throws {
        let exchange = try await session.get(origin.url(), headers: [.connection: "close"])
        #expect(exchange.metrics.connection?.tls?.isResumed == isResumed)
    }

    @Test("A server accepted without a look is verified by the next view, whatever was kept")
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

    @Test("The host's name is verified by a view that does, after one that did not")
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

    @Test("A kept connection serves no view with other trust, identity or versions")
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

    @Test("A kept connection serves views that differ in nothing that concerns it")
    func connectionsAreShared() async throws {
        try await TestOrigin.withOrigin(.tls(), respond: { _ in .text("good") }) { origin in
            let first = view(HTTPSession(configuration: .patient), .only(.text(origin.authorityPEM ?? "")))
            let views = [
                first, first.with { $0.userAgent = nil }, first.with { $0.timeouts.total = Patience.long },
            ]
            for view in views { _ = try await view.get(origin.url()).validated() }
            #expect(origin.connectionCount == 1)
        }
    }
}
