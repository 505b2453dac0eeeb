import Glibc
import MartletTestSupport
import MartletTransport
import Testing

@Suite("TLS handshakes that fail")
struct TLSHandshakeFailureTests {
    /// Returns the client's error for a peer that sends some bytes and then optionally ends.
    private func error(answer: String, ends: Bool) async throws -> TLSError? {
        let pair = try TLSPair()
        let bytes = Array(answer.utf8)
        if !bytes.isEmpty {
            _ = try unsafe bytes.withUnsafeBytes { raw throws(TransportError) in
                unsafe try pair.server.send(raw)
            }
        }
        if ends { pair.server.shutdownWriting() }
        let result = await TLSPair.connect(pair.client, try Certificates.client(), "localhost", 443)
        #expect(pair.client.isClosed)
        guard case .failure(.tls(let error)) = result else { return nil }
        return error
    }

    @Test("Plain HTTP instead of a handshake is reported as not TLS")
    func plainHTTP() async throws {
        let error = try await error(answer: "HTTP/1.1 400 Bad Request\r\n\r\n", ends: true)
        guard case .handshake(let reason) = error?.kind else {
            Issue.record("another error: \(String(describing: error))")
            return
        }
        #expect(reason.contains("does not seem to speak TLS"))
    }

    @Test("Garbage instead of a handshake is a failed handshake")
    func garbage() async throws {
        let error = try await error(answer: "\u{16}\u{03}\u{03}\u{00}\u{04}abcd", ends: false)
        guard case .handshake = error?.kind else {
            Issue.record("another error: \(String(describing: error))")
            return
        }
    }

    @Test("The end of the stream during the handshake is a truncation")
    func endsEarly() async throws {
        #expect(try await error(answer: "", ends: true)?.kind == .truncated)
        #expect(try await error(answer: "\u{16}\u{03}", ends: true)?.kind == .truncated)
    }

    @Test("Peers without a common version report a version error")
    func versions() async throws {
        let client = try Certificates.client { $0.minimumVersion = .tls13 }
        let server = try Certificates.server { $0.maximumVersion = .tls12 }
        let outcome = await (try TLSPair()).handshake(client: client, server: server)
        #expect(outcome.clientError?.kind == .protocolVersion)
        #expect(outcome.serverError?.kind == .protocolVersion)
    }

    @Test("Peers without a common cipher fail with an alert")
    func ciphers() async throws {
        let client = try Certificates.client {
            $0.maximumVersion = .tls12
            $0.cipherList = "ECDHE-RSA-AES128-GCM-SHA256"
        }
        let outcome = await (try TLSPair()).handshake(client: client, server: try Certificates.server())
        guard case .alert(40, _) = outcome.clientError?.kind else {
            Issue.record("another error: \(String(describing: outcome.clientError))")
            return
        }
        guard case .handshake = outcome.serverError?.kind else {
            Issue.record("another error: \(String(describing: outcome.serverError))")
            return
        }
    }

    @Test("A silent peer ends the handshake at its deadline")
    func deadline() async throws {
        let pair = try TLSPair()
        let context = try Certificates.client()
        await #expect {
            _ = try await TLSStream.connect(
                socket: pair.client, context: context, serverName: "localhost", port: 443,
                deadline: MonotonicTime.now().advanced(by: .milliseconds(30)))
        } throws: { error in
            if case TransportError.timedOut = error { true } else { false }
        }
        #expect(pair.client.isClosed)
    }

    @Test("An interrupt ends a handshake with a silent peer")
    func interrupt() async throws {
        let pair = try TLSPair()
        async let result = TLSPair.connect(pair.client, try Certificates.client(), "localhost", 443)
        // The first bytes of the ClientHello show that the handshake has started.
        try await pair.server.wait(for: .read, until: TLSPair.soon)
        pair.client.readiness.interrupt()
        guard case .failure(.interrupted) = try await result else {
            Issue.record("not interrupted")
            return
        }
        #expect(pair.client.isClosed)
    }

    @Test("Settings that cannot be applied are rejected")
    func settings() throws {
        let faults: [(inout TLSSettings) -> Void] = [
            {
                $0.minimumVersion = .tls13
                $0.maximumVersion = .tls12
            },
            { $0.cipherList = "NO-SUCH-CIPHER" }, { $0.cipherSuites = "NO-SUCH-SUITE" },
            { $0.applicationProtocols = [""] }, { $0.applicationProtocols = ["h2", "http/1.1"] },
            { $0.securityLevel = 9 },
            { $0.keyLogFile = "/nowhere/keys" }, { $0.trust = .only(.text("no root here")) },
            { $0.trust = .only(.file("/nowhere/root.pem")) },
        ]
        for fault in faults {
            #expect {
                _ = try Certificates.client(fault)
            } throws: { error in
                switch (error as? TLSError)?.kind {
                case .configuration, .rootCertificates: true
                default: false
                }
            }
        }
    }

    @Test("A rejected certificate closes both sockets")
    func closesBoth() async throws {
        let pair = try TLSPair()
        let server = try Certificates.server(CertificateTemplate(hostNames: ["other.example"]))
        let outcome = await pair.handshake(client: try Certificates.client(), server: server)
        #expect(outcome.clientError != nil)
        #expect(outcome.serverError != nil)
        #expect(pair.client.withDescriptor { $0 } == nil)
        #expect(pair.server.withDescriptor { $0 } == nil)
    }
}
