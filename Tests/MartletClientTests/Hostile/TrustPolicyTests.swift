import Martlet
import MartletTesting
import Synchronization
import Testing

/// Trust and identity in complete calls: pins, custom policies, revocation lists and rules for single hosts.
@Suite("Trust policies of sessions", .timeLimit(.minutes(20)))
struct TrustPolicyTests {
    private func configuration(_ origin: TestOrigin) -> SessionConfiguration {
        var configuration = SessionConfiguration.patient
        configuration.tls.trust = .only(.text(origin.authorityPEM ?? ""))
        configuration.resolveOverrides = [Endpoint(host: "*", port: origin.port): [origin.socketAddress]]
        return configuration
    }

    private func kind(_ error: HTTPError?) -> TLSError.Kind? {
        (error?.underlying as? TLSError)?.kind
    }

    private static let spare = PinText.unused(1)

    @Test("A matching pin is accepted, also on a resumed connection, and another pin sends nothing")
    func pins() async throws {
        try await TestOrigin.withOrigin(.tls(), respond: { _ in .text("good") }) { origin in
            let configuration = configuration(origin)
            let pin = try PublicKeyPin(of: .text(origin.authorityPEM ?? "")).description
            let session = HTTPSession(configuration: configuration)
            let pinned = try configuration.tls.trust.pinningPublicKeys(pin, backup: TrustPolicyTests.spare)
            let good = session.with { $0.tls.trust = pinned }
            for isResumed in [false, true] {
                let answer = try await good.get(origin.url(), headers: [.connection: "close"])
                #expect(answer.metrics.connection?.tls?.isResumed == isResumed)
            }
            let mismatched = try configuration.tls.trust.pinningPublicKeys(
                PinText.unused(2), backup: TrustPolicyTests.spare)
            let bad = session.with { $0.tls.trust = mismatched }
            let error = await #expect(throws: HTTPError.self) { try await bad.get(origin.url()) }
            guard case .pinMismatch(let found) = kind(error) else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(found.map(\.description).contains(pin))
            #expect(error?.code == .tlsFailed)
            #expect(error?.phase == .tlsHandshake)
            #expect(error?.wasSent == false)
            #expect(origin.requests.count == 2)
        }
    }

    @Test(
        "Views with other pins, lists, closures, suffixes or host rules share no connection or TLS session"
    )
    func apart() async throws {
        try await TestOrigin.withOrigin(.tls(), respond: { _ in .text("good") }) { origin in
            let first = HTTPSession(configuration: configuration(origin))
            let trust = first.configuration.tls.trust
            let pin = try PublicKeyPin(of: .text(origin.authorityPEM ?? "")).description
            let one = try trust.pinningPublicKeys(pin, backup: TrustPolicyTests.spare)
            let two = try trust.pinningPublicKeys(pin, backup: PinText.unused(2))
            let views = [
                first,
                first.with { $0.tls.trust = one },
                first.with { $0.tls.trust = two },
                first.with { $0.tls.trust = trust.pinningCertificates(.text(origin.authorityPEM ?? "")) },
                first.with { $0.tls.trust = trust.evaluated { _, _ in .accept } },
                first.with { $0.tls.trust = trust.evaluated { _, _ in .accept } },
                first.with { $0.tls.publicSuffixes = PublicSuffixRule { _ in false } },
                first.with { $0.tls.hosts["localhost"] = TLSHostSettings(verifiesHostName: false) },
            ]
            for _ in 0..<2 {
                for view in views { _ = try await view.get(origin.url()).validated() }
            }
            #expect(origin.connectionCount == views.count)
            for (index, view) in views.enumerated() {
                // The view's first connection does not resume another view's TLS session.
                let answer = try await view.with { $0.socketOptions.localAddress = "127.0.0.1" }
                    .get(origin.url(), headers: [.connection: "close"])
                #expect(answer.metrics.connection?.tls?.isResumed == false, "view \(index)")
            }
        }
    }

    @Test("A custom policy that denies sends nothing, and one that accepts gets the response")
    func custom() async throws {
        try await TestOrigin.withOrigin(.tls(.selfSigned), respond: { _ in .text("good") }) { origin in
            var configuration = configuration(origin)
            configuration.tls.trust = .custom { chain, host in
                .deny(reason: "\(host) \(chain.isTrusted) \(chain.certificates.count)")
            }
            let denying = HTTPSession(configuration: configuration)
            let error = await #expect(throws: HTTPError.self) {
                try await denying.get("https://127.0.0.1:\(origin.port)/")
            }
            #expect(kind(error) == .denied(reason: "127.0.0.1 false 1"))
            #expect(error?.wasSent == false)
            #expect(origin.requests.isEmpty)
            let accepting = denying.with { $0.tls.trust = .custom { _, _ in .accept } }
            let text = try await accepting.get(origin.url()).text
            #expect(text == "good")
        }
    }

    @Test("A waiting custom policy is ended by the connect timeout and by cancellation")
    func customWaits() async throws {
        try await TestOrigin.withOrigin(.tls(), respond: { _ in .text("good") }) { origin in
            var configuration = configuration(origin)
            configuration.tls.trust = .custom { _, _ in
                _ = await TrustPolicyTests.cancellation()
                return .accept
            }
            configuration.timeouts.connect = .milliseconds(500)
            let short = HTTPSession(configuration: configuration)
            let error = await #expect(throws: HTTPError.self) { try await short.get(origin.url()) }
            #expect(error?.code == .timedOut)
            #expect(error?.timeout == .connect)

            // This policy signals when it is called: on a busy machine the timeout above may expire before the
            // handshake.
            let (asked, tell) = AsyncStream.makeStream(of: Void.self)
            configuration.tls.trust = .custom { _, _ in
                tell.yield()
                _ = await TrustPolicyTests.cancellation()
                return .accept
            }
            configuration.timeouts.connect = nil
            let session = HTTPSession(configuration: configuration)
            let url = origin.url()
            let call = Task { try await session.get(url) }
            var questions = asked.makeAsyncIterator()
            await questions.next()
            call.cancel()
            await #expect(throws: CancellationError.self) { try await call.value }
            #expect(origin.requests.isEmpty)
        }
    }

    /// Waits until the task is cancelled.
    private static func cancellation() async -> Void? {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        await withTaskCancellationHandler {
            for await _ in stream {}
        } onCancel: {
            continuation.finish()
        }
        return nil
    }

    @Test("A missing revocation list for the server's authority is a typed error")
    func revocation() async throws {
        try await TestOrigin.withOrigin(.tls(), respond: { _ in .text("good") }) { origin in
            var configuration = configuration(origin)
            configuration.tls.revocation = .lists(.text("no list"))
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession(configuration: configuration).get(origin.url())
            }
            guard case .revocationList = kind(error) else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(origin.requests.isEmpty)
        }
    }

    @Test("An identity is sent only to the host that it is configured for")
    func identityPerHost() async throws {
        try await TestOrigin.withOrigin(.tls(.demandsClientCertificate), respond: { _ in .text("good") }) {
            origin in
            let credentials = try #require(origin.credentials)
            var configuration = configuration(origin)
            configuration.tls.hosts["localhost"] = TLSHostSettings(
                identity: TLSIdentity(
                    certificateChain: .text(credentials.clientIdentity.certificatePEM),
                    privateKey: .text(credentials.clientIdentity.privateKeyPEM)))
            let session = HTTPSession(configuration: configuration)
            for _ in 0..<2 {
                let text = try await session.get("https://localhost:\(origin.port)/").text
                #expect(text == "good")
                let error = await #expect(throws: HTTPError.self) {
                    try await session.get("https://127.0.0.1:\(origin.port)/")
                }
                #expect(kind(error) == .clientCertificateRequired)
            }
        }
    }

    @Test("The trust of one host does not apply to another")
    func trustPerHost() async throws {
        try await TestOrigin.withOrigin(.tls(.selfSigned), respond: { _ in .text("good") }) { origin in
            var configuration = configuration(origin)
            configuration.tls.hosts["localhost"] = TLSHostSettings(
                trust: .dangerouslyAcceptingAnyCertificate)
            let session = HTTPSession(configuration: configuration)
            for _ in 0..<2 {
                let text = try await session.get("https://localhost:\(origin.port)/").text
                #expect(text == "good")
                let error = await #expect(throws: HTTPError.self) {
                    try await session.get("https://127.0.0.1:\(origin.port)/")
                }
                #expect(kind(error) == .selfSigned)
            }
        }
    }
}

/// Pins that match no key.
private enum PinText {
    static func unused(_ number: Int) -> String {
        number == 1
            ? "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=" : "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    }
}
