import MartletTestSupport
import Testing

@testable import MartletTransport

@Suite("TLS identities")
struct TLSIdentityTests {
    private func issued() throws -> IssuedCertificate {
        try Certificates.authority.get().intermediate().issue(.client("caller"))
    }

    private func kind(_ identity: TLSIdentity) async -> TLSError.Kind? {
        do throws(TLSError) {
            try await identity.check()
            return nil
        } catch {
            return error.kind
        }
    }

    /// Returns whether a server that requires a certificate accepts the identity and its chain.
    private func isAccepted(_ identity: TLSIdentity) async throws -> Bool {
        let root = try Certificates.authority.get().rootPEM
        let server = try Certificates.server {
            $0.clientAuthority = .text(root)
            $0.requiresClientCertificate = true
        }
        let client = try Certificates.client { $0.identity = identity }
        let outcome = await (try TLSPair()).handshake(client: client, server: server)
        return (try? outcome.server.get()) != nil
    }

    @Test(
        "A PKCS#12 file with a passphrase, an empty one or none is read together with its chain",
        arguments: ["correct horse", "", nil])
    func pkcs12(passphrase: String?) async throws {
        let file = try issued().pkcs12(passphrase: passphrase)
        let identity = try TLSIdentity.pkcs12(bytes: file, passphrase: passphrase)
        #expect(try await isAccepted(identity))
        if passphrase?.isEmpty ?? true {
            for other in ["", nil] {
                #expect(throws: Never.self) { try TLSIdentity.pkcs12(bytes: file, passphrase: other) }
            }
        }
    }

    @Test("A PKCS#12 file reports a wrong and a missing passphrase as different errors")
    func pkcs12Passphrase() async throws {
        let file = try issued().pkcs12(passphrase: "correct horse")
        #expect(
            await kind(TLSIdentity(pkcs12: .bytes(file), passphrase: "battery"))
                == .wrongPassphrase(source: "PEM text of \(file.count) bytes"))
        #expect(
            await kind(TLSIdentity(pkcs12: .bytes(file)))
                == .passphraseRequired(source: "PEM text of \(file.count) bytes"))
        #expect(
            await kind(TLSIdentity(pkcs12: .bytes(file), passphrase: "correct horse\0x"))
                == .wrongPassphrase(source: "PEM text of \(file.count) bytes"))
    }

    @Test("An old PKCS#12 file is read by the legacy provider, or the error names it")
    func legacy() async throws {
        guard LegacyOpenSSLContext() != nil else {
            Issue.record("OpenSSL's legacy provider is not installed")
            return
        }
        let file = try issued().pkcs12(passphrase: "old", isLegacy: true)
        let identity = TLSIdentity(pkcs12: .bytes(file), passphrase: "old")
        #expect(await kind(identity) == nil)
        #expect(try await isAccepted(identity))
        #expect(
            await kind(TLSIdentity(pkcs12: .bytes(file), passphrase: "new"))
                == .wrongPassphrase(source: "PEM text of \(file.count) bytes"))
    }

    @Test("Invalid, truncated or empty PKCS#12 files are identity errors")
    func notPKCS12() async throws {
        let file = try issued().pkcs12(passphrase: "x")
        for bytes in [
            [], Array("hello".utf8), Array(file.dropLast(40)), [0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF],
        ] {
            guard case .identity = await kind(TLSIdentity(pkcs12: .bytes(bytes), passphrase: "x")) else {
                Issue.record("not refused: \(bytes.count) bytes")
                return
            }
        }
        let missing = await kind(TLSIdentity(pkcs12: .file("/nowhere/client.p12")))
        guard case .identity(let reason, let source) = missing else {
            Issue.record("\(String(describing: missing))")
            return
        }
        #expect(source == "/nowhere/client.p12")
        #expect(reason.contains("No such file"))
    }

    @Test("An encrypted key is decrypted in PKCS#8 and in the traditional format")
    func encryptedKeys() async throws {
        let issued = try issued()
        for key in [
            try issued.encryptedPrivateKeyPEM(passphrase: "correct horse"),
            try issued.traditionalPrivateKeyPEM(passphrase: "correct horse"),
        ] {
            func identity(_ passphrase: String?) -> TLSIdentity {
                TLSIdentity(
                    certificateChain: .text(issued.certificateChainPEM), privateKey: .text(key),
                    passphrase: passphrase)
            }
            let source = "PEM text of \(key.utf8.count) bytes"
            #expect(try await isAccepted(identity("correct horse")))
            #expect(await kind(identity("battery")) == .wrongPassphrase(source: source))
            #expect(await kind(identity("")) == .wrongPassphrase(source: source))
            #expect(await kind(identity(nil)) == .passphraseRequired(source: source))
            let long = String(repeating: "x", count: 5000)
            #expect(await kind(identity(long)) == .wrongPassphrase(source: source))
        }
    }

    @Test("A DER certificate is read like a PEM certificate")
    func der() async throws {
        let issued = try Certificates.authority.get().issue(.client("caller"))
        let identity = TLSIdentity(
            certificateChain: .bytes(issued.certificateDER), privateKey: .text(issued.privateKeyPEM))
        #expect(try await isAccepted(identity))
    }

    @Test("The error for a damaged certificate has its number and line")
    func damaged() async throws {
        let issued = try Certificates.authority.get().issue(.client("caller"))
        let good = issued.certificateChainPEM
        let text = "a comment\n" + good + good.replacing("MII", with: "!!!")
        let lines = good.utf8.count { $0 == UInt8(ascii: "\n") }
        let fault = await kind(
            TLSIdentity(certificateChain: .text(text), privateKey: .text(issued.privateKeyPEM)))
        guard case .identity(let reason, _) = fault else {
            Issue.record("\(String(describing: fault))")
            return
        }
        #expect(reason.hasPrefix("certificate 2 (line \(lines + 2)) is damaged"), "\(reason)")
        let error = #expect(throws: TLSError.self) {
            try TLSContext(client: TLSSettings(trust: .only(.text(text))))
        }
        #expect(error?.description.contains("certificate 2 (line \(lines + 2))") == true)
    }

    @Test("A key of another certificate is rejected on loading, and the error names both files")
    func mismatch() throws {
        let directory = PEMDirectory()
        defer { directory.remove() }
        let authority = try Certificates.authority.get()
        let (one, two) = (try authority.issue(.client("one")), try authority.issue(.client("two")))
        let certificate = directory.write("client.pem", one.certificateChainPEM)
        let key = directory.write("client.key", two.privateKeyPEM)
        let error = #expect(throws: TLSError.self) {
            try TLSIdentity.pem(certificates: certificate, key: key)
        }
        #expect(error?.description.contains(certificate) == true)
        #expect(error?.description.contains(key) == true)
        #expect(throws: Never.self) {
            try TLSIdentity.pem(
                certificates: certificate, key: directory.write("own.key", one.privateKeyPEM))
        }
    }

    @Test("No dump, mirror or description of the settings contains the passphrase or the key")
    func secrets() throws {
        let issued = try issued()
        let identity = TLSIdentity(
            certificateChain: .text(issued.certificateChainPEM), privateKey: .text(issued.privateKeyPEM),
            passphrase: "correct horse")
        let settings = TLSSettings(identity: identity)
        var text = "\(identity) \(settings) \(String(reflecting: settings)) \([identity])"
        dump(settings, to: &text)
        dump(identity, to: &text)
        dump(PEMSource.text("correct horse"), to: &text)
        #expect(!text.contains("horse"))
        #expect(!text.contains("PRIVATE"))
        let bytes = Array("correct horse".utf8).map(String.init).joined(separator: ", ")
        #expect(!text.contains(bytes))
    }

    @Test("Identities are equal only if their files and passphrases are equal")
    func equality() {
        func identity(_ passphrase: String?) -> TLSIdentity {
            TLSIdentity(certificateChain: .file("a"), privateKey: .file("b"), passphrase: passphrase)
        }
        #expect(identity("x") == identity("x"))
        #expect(identity("x").hashValue == identity("x").hashValue)
        #expect(identity("x") != identity("y"))
        #expect(identity("") != identity(nil))
        #expect(TLSIdentity(pkcs12: .file("a")) != TLSIdentity(certificateChain: .file("a")))
    }
}
