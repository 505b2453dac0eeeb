import MartletTestSupport
import MartletTransport
import Testing

@Suite("TLS client certificates")
struct TLSClientCertificateTests {
    private func demanding(_ version: TLSVersion) throws -> TLSContext {
        let root = try Certificates.authority.get().rootPEM
        return try Certificates.server { settings in
            settings.clientAuthority = .text(root)
            settings.requiresClientCertificate = true
            settings.minimumVersion = version
            settings.maximumVersion = version
        }
    }

    /// Returns the error of a client, which under TLS 1.3 is thrown only by the first read.
    private func clientError(_ outcome: TLSPair.Outcome) async -> TLSError? {
        do {
            let stream = try outcome.client.get()
            _ = try await stream.receive()
            return nil
        } catch TransportError.tls(let error) {
            return error
        } catch {
            return nil
        }
    }

    /// Returns whether the client's first flight has the empty extension for post-handshake authentication (RFC 8446
    /// §4.2.6).
    private func offersLaterAuthentication(_ client: TLSContext) async throws -> Bool {
        let pair = try TLSPair()
        async let connected = TLSPair.connect(pair.client, client, "localhost", 443)
        var buffer = [UInt8](repeating: 0, count: 16_384)
        var hello: [UInt8] = []
        while hello.isEmpty {
            let outcome = try unsafe buffer.withUnsafeMutableBytes { raw throws(TransportError) in
                unsafe try pair.server.receive(into: raw)
            }
            switch outcome {
            case .bytes(let count): hello = Array(buffer[..<count])
            case .wouldBlock: try await pair.server.wait(for: .read, until: TLSPair.soon)
            case .endOfStream: throw TransportError.closed
            }
        }
        pair.server.close()
        _ = await connected
        let wanted: [UInt8] = [0, 49, 0, 0]
        return hello.indices.contains { hello[$0...].starts(with: wanted) }
    }

    // Servers that require a certificate only for a part of a site once responded with 403 without requesting one.
    @Test("A client with an identity can be asked for it after the handshake, and others cannot")
    func laterAuthentication() async throws {
        let identity = try Certificates.authority.get().issue(.client("caller")).identity
        #expect(try await offersLaterAuthentication(try Certificates.client { $0.identity = identity }))
        #expect(try await !offersLaterAuthentication(try Certificates.client()))
    }

    @Test("A required certificate that the client sends is accepted", arguments: TLSVersion.allCases)
    func given(version: TLSVersion) async throws {
        let identity = try Certificates.authority.get().issue(.client("caller")).identity
        let client = try Certificates.client { $0.identity = identity }
        let outcome = await (try TLSPair()).handshake(client: client, server: try demanding(version))
        let server = try outcome.server.get()
        #expect(server.information.tls?.peerCertificate.isEmpty == false)
        try await server.send([1])
        #expect(try await outcome.client.get().receive().1 == [1])
    }

    @Test(
        "A required certificate that is missing is a specific error", arguments: TLSVersion.allCases)
    func missing(version: TLSVersion) async throws {
        let outcome = await (try TLSPair()).handshake(
            client: try Certificates.client(), server: try demanding(version))
        #expect(await clientError(outcome)?.kind == .clientCertificateRequired)
        #expect(outcome.serverError != nil)
    }

    @Test("A writer receives the alert of a server that rejected the client's certificate")
    func writerLearns() async throws {
        let outcome = await (try TLSPair()).handshake(
            client: try Certificates.client(), server: try demanding(.tls13))
        let client = try outcome.client.get()
        #expect {
            // The server has closed the socket and accepts nothing more.
            while true {
                _ = try unsafe [UInt8](repeating: 0, count: 16_384).withUnsafeBytes {
                    try unsafe client.write($0)
                }
            }
        } throws: { error in
            if case TransportError.tls(let error) = error, error.kind == .clientCertificateRequired {
                true
            } else {
                false
            }
        }
    }

    @Test(
        "A client certificate of an unknown authority is rejected, and both peers report it",
        arguments: TLSVersion.allCases)
    func stranger(version: TLSVersion) async throws {
        let identity = try CertificateAuthority(commonName: "Stranger").issue(.client("caller")).identity
        let client = try Certificates.client { $0.identity = identity }
        let outcome = await (try TLSPair()).handshake(client: client, server: try demanding(version))
        #expect(outcome.serverError?.kind == .unknownAuthority)
        guard case .clientCertificateRejected(48, _) = await clientError(outcome)?.kind else {
            Issue.record("the client does not know")
            return
        }
    }

    @Test("A server certificate is not accepted as a client certificate")
    func wrongUsage() async throws {
        let identity = try Certificates.authority.get().issue(.loopback).identity
        let client = try Certificates.client { $0.identity = identity }
        let outcome = await (try TLSPair()).handshake(client: client, server: try demanding(.tls13))
        guard case .wrongPurpose = outcome.serverError?.kind else {
            Issue.record("not refused")
            return
        }
    }

    @Test("An encrypted key is decrypted with its passphrase")
    func passphrase() throws {
        let issued = try Certificates.authority.get().issue(.client("caller"))
        let key = try issued.encryptedPrivateKeyPEM(passphrase: "correct horse")
        #expect(key.contains("ENCRYPTED"))
        #expect(throws: Never.self) {
            try Certificates.client {
                $0.identity = TLSIdentity(
                    certificateChain: .text(issued.certificateChainPEM), privateKey: .text(key),
                    passphrase: "correct horse")
            }
        }
    }

    @Test("Roots, certificate and key are read from files")
    func files() async throws {
        let directory = PEMDirectory()
        defer { directory.remove() }
        let authority = try Certificates.authority.get()
        let issued = try authority.issue(.client("caller"))
        let root = directory.write("root.pem", authority.rootPEM)
        let both = directory.write("client.pem", issued.privateKeyPEM + issued.certificateChainPEM)
        let client = try TLSContext(
            client: TLSSettings(
                trust: .only(.file(root)), identity: TLSIdentity(certificateChain: .file(both))))
        let outcome = await (try TLSPair()).handshake(client: client, server: try demanding(.tls13))
        #expect(throws: Never.self) { try outcome.server.get() }
    }

    private func identityFault(_ identity: TLSIdentity) throws -> (reason: String, source: String)? {
        do throws(TLSError) {
            _ = try TLSContext(
                client: TLSSettings(trust: try Certificates.authority.get().trust, identity: identity))
            return nil
        } catch {
            guard case .identity(let reason, let source) = error.kind else { throw error }
            return (reason, source)
        }
    }

    @Test("A wrong and a missing passphrase are different identity errors")
    func wrongPassphrase() throws {
        let issued = try Certificates.authority.get().issue(.client("caller"))
        let key = try issued.encryptedPrivateKeyPEM(passphrase: "correct horse")
        func kind(_ passphrase: String?) throws -> TLSError.Kind? {
            let identity = TLSIdentity(
                certificateChain: .text(issued.certificateChainPEM), privateKey: .text(key),
                passphrase: passphrase)
            return #expect(throws: TLSError.self) {
                try TLSContext(client: TLSSettings(trust: .only(), identity: identity))
            }?.kind
        }
        let source = "PEM text of \(key.utf8.count) bytes"
        #expect(try kind("battery") == .wrongPassphrase(source: source))
        #expect(try kind(nil) == .passphraseRequired(source: source))
    }

    @Test("A key of another certificate is an identity error")
    func mismatchedKey() throws {
        let authority = try Certificates.authority.get()
        let (one, two) = (try authority.issue(.client("one")), try authority.issue(.client("two")))
        let fault = try identityFault(
            TLSIdentity(
                certificateChain: .text(one.certificateChainPEM), privateKey: .text(two.privateKeyPEM)))
        #expect(fault?.reason.contains("does not belong") == true)
    }

    @Test("A file that cannot be read is named in the error")
    func missingFile() throws {
        let fault = try identityFault(TLSIdentity(certificateChain: .file("/nowhere/client.pem")))
        #expect(fault?.source == "/nowhere/client.pem")
        #expect(fault?.reason.contains("No such file") == true)
    }

    @Test("Text without a certificate or without a key is an identity error")
    func notPEM() throws {
        #expect(
            try identityFault(TLSIdentity(certificateChain: .text("hello")))?.reason.contains("certificate")
                == true)
        let issued = try Certificates.authority.get().issue(.client("caller"))
        let fault = try identityFault(TLSIdentity(certificateChain: .text(issued.certificateChainPEM)))
        #expect(fault?.reason.contains("private key") == true)
    }

    @Test("No description contains a passphrase or a key")
    func secrets() throws {
        let issued = try Certificates.authority.get().issue(.client("caller"))
        let identity = TLSIdentity(
            certificateChain: .text(issued.certificateChainPEM), privateKey: .text(issued.privateKeyPEM),
            passphrase: "correct horse")
        #expect(!"\(identity)".contains("horse"))
        #expect(!"\(identity)".contains("PRIVATE"))
    }
}
