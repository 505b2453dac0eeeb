import MartletCore
import MartletDiagnostics
import MartletHosts
import MartletTesting
import Testing

/// Servers without TLS or with invalid certificates. No request reaches them.
@Suite("Hostile TLS", .timeLimit(.minutes(20)))
struct HostileTLSTests {
    /// Returns the error of a request to an origin.
    private func failure(
        _ tls: OriginTLS, host: String = "127.0.0.1",
        configure: (inout SessionConfiguration) -> Void = { _ in }
    ) async throws -> HTTPError? {
        try await TestOrigin.withOrigin(.tls(tls), respond: { _ in .text("EVIL") }) { origin in
            var configuration = SessionConfiguration.patient
            configuration.tls.trust = .only(.text(origin.authorityPEM ?? ""))
            configuration.resolveOverrides = [
                Endpoint(host: "*", port: origin.port): [origin.socketAddress]
            ]
            configure(&configuration)
            let session = HTTPSession(configuration: configuration)
            var failure: HTTPError?
            do {
                let exchange = try await session.get("https://\(host):\(origin.port)/")
                Issue.record("answered \(exchange.text)")
            } catch let error as HTTPError {
                failure = error
            }
            #expect(origin.requests.isEmpty)
            #expect(origin.recorder.counts.bytesReceived == 0)
            return failure
        }
    }

    private static func kind(_ error: HTTPError?) -> TLSError.Kind? {
        (error?.underlying as? TLSError)?.kind
    }

    @Test(
        "Expired, future, unknown and self-signed certificates cause different errors",
        arguments: [
            (OriginTLS.expired, TLSError.Kind.expired), (.notYetValid, .notYetValid),
            (.unknownAuthority, .unknownAuthority), (.selfSigned, .selfSigned),
            (.wrongName, .nameMismatch(["wrong.example"])),
        ])
    func badCertificate(_ tls: OriginTLS, _ kind: TLSError.Kind) async throws {
        for versions in [TLSVersion.tls12...TLSVersion.tls12, TLSVersion.tls13...TLSVersion.tls13] {
            let error = try await failure(tls.versions(versions))
            #expect(error?.code == .tlsFailed)
            #expect(error?.phase == .tlsHandshake)
            #expect(error?.wasSent == false)
            #expect(HostileTLSTests.kind(error) == kind)
        }
    }

    @Test("A host name only in the subject is ignored")
    func nameInSubjectAlone() async throws {
        // The subject's common name is `localhost`; the alternative names contain another host.
        let error = try await failure(.wrongName, host: "localhost")
        #expect(HostileTLSTests.kind(error) == .nameMismatch(["wrong.example"]))
    }

    @Test(
        "A certificate for other names is rejected",
        arguments: [
            ("*.example.com", "example.com"), ("*.example.com", "a.b.example.com"), ("*.com", "example.com"),
            ("f*.example.com", "foo.example.com"), ("*.*.example.com", "a.b.example.com"),
            ("example.com", "example.com.evil.example"),
            ("a.example.com", "b.example.com"), ("127.0.0.2", "127.0.0.3"),
        ])
    func otherNames(_ named: String, _ asked: String) async throws {
        var tls = OriginTLS.trusted
        tls.additionalNames = [named]
        let error = try await failure(tls, host: asked)
        #expect(error?.code == .tlsFailed)
        guard case .nameMismatch = HostileTLSTests.kind(error) else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test(
        "A missing or untrusted client certificate is an error if the server requires one",
        arguments: [true, false])
    func clientCertificateMissing(_ isStranger: Bool) async throws {
        for version in [TLSVersion.tls12, .tls13] {
            try await TestOrigin.withOrigin(
                .tls(.demandsClientCertificate.versions(version...version)), respond: { _ in .text("EVIL") }
            ) { origin in
                let credentials = try #require(origin.credentials)
                var configuration = SessionConfiguration.patient
                configuration.tls.trust = .only(.text(credentials.authorityPEM))
                if isStranger {
                    configuration.tls.identity = TLSIdentity(
                        certificateChain: .text(credentials.untrustedIdentity.certificatePEM),
                        privateKey: .text(credentials.untrustedIdentity.privateKeyPEM))
                }
                let session = HTTPSession(configuration: configuration)
                let error = await #expect(throws: HTTPError.self) { try await session.get(origin.url()) }
                #expect(error?.code == .tlsFailed, "\(version): \(String(describing: error))")
                let kind = HostileTLSTests.kind(error)
                if isStranger {
                    guard case .clientCertificateRejected = kind else {
                        Issue.record("\(version): \(String(describing: kind))")
                        return
                    }
                } else {
                    #expect(kind == .clientCertificateRequired)
                }
                #expect(origin.requests.isEmpty)
            }
        }
    }

    @Test("A trusted client certificate is accepted if the server requires one")
    func clientCertificateGiven() async throws {
        try await TestOrigin.withOrigin(.tls(.demandsClientCertificate), respond: { _ in .text("good") }) {
            origin in
            let credentials = try #require(origin.credentials)
            var configuration = SessionConfiguration.patient
            configuration.tls.trust = .only(.text(credentials.authorityPEM))
            configuration.tls.identity = TLSIdentity(
                certificateChain: .text(credentials.clientIdentity.certificatePEM),
                privateKey: .text(credentials.clientIdentity.privateKeyPEM))
            let session = HTTPSession(configuration: configuration)
            #expect(try await session.get(origin.url()).text == "good")
        }
    }

    /// Data that a server sends in place of its part of the handshake.
    @Test(
        "A server that does not speak TLS causes a TLS error and receives no request",
        arguments: [
            Array("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL".utf8),
            Array("SSH-2.0-OpenSSH_9.2p1\r\n".utf8),
            [UInt8](repeating: 0, count: 64),
            [0x15, 3, 3, 0, 2, 2, 40],
            [0x16, 3, 3, 0xFF, 0xFF] + [UInt8](repeating: 2, count: 100),
            [0x17, 3, 3, 0, 5, 1, 2, 3, 4, 5],
            [],
        ])
    func notTLS(_ bytes: [UInt8]) async throws {
        let script = ServerScript(
            .signal("open"), .send(bytes), bytes.isEmpty ? .close : .shutdownWriting, .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            var configuration = SessionConfiguration.patient
            configuration.tls.trust = .dangerouslyAcceptingAnyCertificate
            let session = HTTPSession(configuration: configuration)
            let error = await #expect(throws: HTTPError.self) {
                try await session.get("https://127.0.0.1:\(origin.port)/secret")
            }
            // If the server closed before the ClientHello arrived, the error is a failed connection.
            #expect(
                error?.code == .tlsFailed || (bytes.isEmpty && error?.code == .connectFailed),
                "\(String(describing: error))")
            #expect(error?.phase == .tlsHandshake)
            #expect(error?.wasSent == false)
            #expect(error?.isConnectFailure == true)
            if bytes == [0x15, 3, 3, 0, 2, 2, 40] {
                guard case .alert(number: 40, _) = HostileTLSTests.kind(error) else {
                    Issue.record("\(String(describing: error))")
                    return
                }
            }
        }
    }

    @Test("Plain HTTP to a TLS server is a typed error")
    func plainToTLS() async throws {
        try await TestOrigin.withOrigin(.tls(), respond: { _ in .text("EVIL") }) { origin in
            let session = HTTPSession(configuration: .patient)
            let error = await #expect(throws: HTTPError.self) {
                try await session.get("http://127.0.0.1:\(origin.port)/")
            }
            let codes: [HTTPError.Code?] = [.protocolViolation, .emptyResponse, .connectionLost]
            #expect(codes.contains(error?.code), "\(String(describing: error))")
            #expect(origin.requests.isEmpty)
        }
    }
}
