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

    /// The error of a client, which under TLS 1.3 comes with the first read only.
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

    /// Whether a client says in its first flight that it can be asked for a certificate later: an extension of no bytes
    /// (RFC 8446 §4.2.6).
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

    // Servers that ask for a certificate for a part of a site answered 403 without asking.
    @Test("A client that has an identity can be asked for it after the handshake, and others cannot")
    func laterAuthentication() async throws {
        let identity = try Certificates.authority.get().issue(.client("caller")).identity
        #expect(try await offersLaterAuthentication(try Certificates.client { $0.identity = identity }))
        #expect(try await !offersLaterAuthentication(try Certificates.client()))
    }

    @Test("A certificate that is demanded and given is accepted", arguments: TLSVersion.allCases)
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
        "A certificate that is demanded and missing is an error that says so", arguments: TLSVersion.allCases)
    func missing(version: TLSVersion) async throws {
        let outcome = await (try TLSPair()).handshake(
            client: try Certificates.client(), server: try demanding(version))
        #expect(await clientError(outcome)?.kind == .clientCertificateRequired)
        #expect(outcome.serverError != nil)
    }

    @Test("A writer to a server that refused the client's certificate learns of the alert")
    func writerLearns() async throws {
        let outcome = await (try TLSPair()).handshake(
            client: try Certificates.client(), server: try demanding(.tls13))
        let client = try outcome.client.get()
        #expect {
            // The server has closed the socket, so nothing is taken.
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
        "A client certificate of a stranger is refused, and both sides know", arguments: TLSVersion.allCases)
    func stranger(version: TLSVersion) async throws {
        let identity = try CertificateAuthority(commonName: "Stranger").issue(.client("caller")).identity
        let client = try Certificates.client { $0.identity = identity }
        let outcome = await (try TLSPair()).handshake(client: client, server: try demanding(version))
        #expect(outcome.serverError?.kind == .unknownAuthority)
        guard case .clientCertificateRefused(48, _) = await clientError(outcome)?.kind else {
            Issue.record("the client does not know")
            return
        }
    }

    @Test("A server's certificate is no client's")
    func wrongUsage() async throws {
        let identity = try Certificates.authority.get().issue(.loopback).identity
        let client = try Certificates.client { $0.identity = identity }
        let outcome = await (try TLSPair()).handshake(client: client, server: try demanding(.tls13))
        guard case .wrongPurpose = outcome.serverError?.kind else {
            Issue.record("not refused")
            return
        }
    }

    @Test("An encrypted key is opened by its pass phrase")
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
        let folder = PEMFolder()
        defer { folder.remove() }
        let authority = try Certificates.authority.get()
        let issued = try authority.issue(.client("caller"))
        let root = folder.write("root.pem", authority.rootPEM)
        let both = folder.write("client.pem", issued.privateKeyPEM + issued.certificateChainPEM)
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

    @Test("A wrong pass phrase, and none, are different faults of the identity")
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

    @Test("A key that belongs to another certificate is a fault of the identity")
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

    @Test("Text without a certificate, and without a key, is a fault of the identity")
    func notPEM() throws {
        #expect(
            try identityFault(TLSIdentity(certificateChain: .text("hello")))?.reason.contains("certificate")
                == true)
        let issued = try Certificates.authority.get().issue(.client("caller"))
        let fault = try identityFault(TLSIdentity(certificateChain: .text(issued.certificateChainPEM)))
        #expect(fault?.reason.contains("private key") == true)
    }

    @Test("Neither a pass phrase nor a key shows in a description")
    func secrets() throws {
        let issued = try Certificates.authority.get().issue(.client("caller"))
        let identity = TLSIdentity(
            certificateChain: .text(issued.certificateChainPEM), privateKey: .text(issued.privateKeyPEM),
            passphrase: "correct horse")
        #expect(!"\(identity)".contains("horse"))
        #expect(!"\(identity)".contains("PRIVATE"))
    }
}
