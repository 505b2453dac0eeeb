import Glibc
import MartletTestSupport
import Testing

@testable import MartletTransport

@Suite("TLS files that are replaced while a session runs")
struct TLSFileReplacementTests {
    private let start = MonotonicTime.now()

    private func context(_ contexts: TLSContextSet, after seconds: Int) async throws -> TLSContext {
        try await contexts.context(for: "localhost", now: start.advanced(by: .seconds(seconds)))
    }

    /// The error with which a client rejects a server.
    private func fault(_ client: TLSContext, _ issued: IssuedCertificate) async throws -> TLSError.Kind? {
        let server = try TLSContext.server(
            certificateChainPEM: issued.certificateChainPEM, privateKeyPEM: issued.privateKeyPEM)
        return await (try TLSPair()).handshake(client: client, server: server).clientError?.kind
    }

    @Test("A new connection uses a replaced file of authorities, which is checked once a second")
    func authorities() async throws {
        let directory = PEMDirectory()
        defer { directory.remove() }
        let (old, new) = (try CertificateAuthority(), try CertificateAuthority(commonName: "The authority of tomorrow"))
        let file = directory.write("roots.pem", old.rootPEM)
        let contexts = TLSContextSet(settings: TLSSettings(trust: .only(.file(file))))
        let first = try await context(contexts, after: 0)
        #expect(try await fault(first, try old.issue(.loopback)) == nil)
        _ = directory.write("roots.pem", new.rootPEM)
        #expect(try await context(contexts, after: 0) === first)
        let second = try await context(contexts, after: 1)
        #expect(try await fault(second, try new.issue(.loopback)) == nil)
        #expect(try await fault(second, try old.issue(.loopback)) == .unknownAuthority)
        #expect(try await context(contexts, after: 2) === second)
    }

    @Test("Neither the session nor the verified chain of a server outlives the list that allowed it")
    func revocation() async throws {
        let directory = PEMDirectory()
        defer { directory.remove() }
        let authority = try CertificateAuthority()
        let issued = try authority.issue(.loopback)
        let file = directory.write("list.pem", try authority.revocationList())
        var settings = TLSSettings(trust: authority.trust)
        settings.revocation = .lists(.file(file))
        let contexts = TLSContextSet(settings: settings)
        let first = try await context(contexts, after: 0)
        #expect(try await fault(first, issued) == nil)
        _ = directory.write("list.pem", try authority.revocationList(revoking: [issued.certificateChainPEM]))
        let second = try await context(contexts, after: 1)
        #expect(second.sessions !== first.sessions)
        #expect(second.verifiedChains !== first.verifiedChains)
        #expect(try await fault(second, issued) == .revoked)
    }

    @Test("While a key does not belong to its certificate, the former files are used, for ten seconds")
    func halfReplaced() async throws {
        let directory = PEMDirectory()
        defer { directory.remove() }
        let authority = try Certificates.authority.get()
        let (old, new) = (try authority.issue(.client("caller")), try authority.issue(.client("the renewed caller")))
        let identity = TLSIdentity(
            certificateChain: .file(directory.write("client.pem", old.certificateChainPEM)),
            privateKey: .file(directory.write("client.key", old.privateKeyPEM)))
        let contexts = TLSContextSet(settings: TLSSettings(trust: authority.trust, identity: identity))
        let first = try await context(contexts, after: 0)
        _ = directory.write("client.pem", new.certificateChainPEM)
        for seconds in [1, 5, 10] { #expect(try await context(contexts, after: seconds) === first) }
        let error = await #expect(throws: TransportError.self) { try await context(contexts, after: 11) }
        guard case .tls(let cause)? = error, case .identity = cause.kind else {
            Issue.record("\(String(describing: error))")
            return
        }
        _ = directory.write("client.key", new.privateKeyPEM)
        #expect(try await context(contexts, after: 11) !== first)
    }

    @Test("A file that is removed remains in use until there is another one")
    func removed() async throws {
        let directory = PEMDirectory()
        defer { directory.remove() }
        let authority = try CertificateAuthority()
        let file = directory.write("roots.pem", "no certificate")
        let contexts = TLSContextSet(settings: TLSSettings(trust: .only(.file(file))))
        await #expect(throws: TransportError.self) { try await context(contexts, after: 0) }
        _ = directory.write("roots.pem", authority.rootPEM)
        let first = try await context(contexts, after: 0)
        unsafe unlink(file)
        for seconds in [1, 30] { #expect(try await context(contexts, after: seconds) === first) }
        _ = directory.write("roots.pem", try CertificateAuthority(commonName: "The authority of tomorrow").rootPEM)
        #expect(try await context(contexts, after: 31) !== first)
    }

    @Test("All files of the settings are checked")
    func files() {
        var settings = TLSSettings(trust: .only(.file("root"), .text("text")).pinningCertificates(.file("pin")))
        settings.revocation = .lists(.file("list"), .bytes([1]))
        settings.identity = TLSIdentity(certificateChain: .file("chain"), privateKey: .file("key"))
        #expect(settings.files == ["root", "pin", "list", "chain", "key"])
        settings.identity = TLSIdentity(pkcs12: .file("pkcs12"))
        #expect(settings.files == ["root", "pin", "list", "pkcs12"])
        #expect(TLSSettings().files == SystemRoots.files)
        #expect(TLSSettings(trust: .dangerouslyAcceptingAnyCertificate).files.isEmpty)
    }
}
