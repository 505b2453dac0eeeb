import MartletTestSupport
import Testing

@testable import MartletTransport

@Suite("Certificate revocation lists")
struct TLSRevocationTests {
    private let root: CertificateAuthority
    private let below: CertificateAuthority
    private let issued: IssuedCertificate

    init() throws {
        root = try CertificateAuthority()
        below = try root.intermediate()
        issued = try below.issue(.loopback)
    }

    private func fault(_ revocation: RevocationPolicy, roots: [String] = []) async throws -> TLSError.Kind? {
        let server = try TLSContext.server(
            certificateChainPEM: issued.certificateChainPEM, privateKeyPEM: issued.privateKeyPEM)
        let client = try Certificates.client {
            $0.trust = root.trust
            $0.revocation = revocation
        }
        return await (try TLSPair()).handshake(client: client, server: server).clientError?.kind
    }

    @Test("A revoked certificate is reported as revoked, and an unlisted one is accepted")
    func revokedLeaf() async throws {
        let upper = PEMSource.text(try root.revocationList())
        let clean = PEMSource.text(try below.revocationList())
        let dirty = PEMSource.text(try below.revocationList(revoking: [issued.certificateChainPEM]))
        #expect(try await fault(.lists(upper, clean)) == nil)
        #expect(try await fault(.lists(upper, dirty)) == .revoked)
        #expect(try await fault(.lists(dirty, scope: .leaf)) == .revoked)
        #expect(try await fault(.none) == nil)
    }

    @Test("A revoked intermediate is found if the whole chain is checked")
    func revokedIntermediate() async throws {
        let text = try root.revocationList(revoking: [below.certificatePEM]) + below.revocationList()
        #expect(try await fault(.lists(.text(text))) == .revoked)
        #expect(try await fault(.lists(.text(text), scope: .leaf)) == nil)
    }

    @Test("Without a list for an authority the revocation status is unknown, unless that is allowed")
    func missing() async throws {
        let clean = PEMSource.text(try below.revocationList())
        guard case .revocationUnknown = try await fault(.lists(clean)) else {
            Issue.record("not refused")
            return
        }
        #expect(try await fault(.lists(clean, scope: .leaf)) == nil)
        #expect(try await fault(.lists(clean, acceptsMissingLists: true)) == nil)
        let dirty = PEMSource.text(try below.revocationList(revoking: [issued.certificateChainPEM]))
        #expect(try await fault(.lists(dirty, acceptsMissingLists: true)) == .revoked)
    }

    @Test("With an expired list the revocation status is unknown, unless that is allowed")
    func expired() async throws {
        let old = Duration.seconds(-7200)
        let list = PEMSource.text(try below.revocationList(issued: old, until: .seconds(-3600)))
        guard case .revocationUnknown = try await fault(.lists(list, scope: .leaf)) else {
            Issue.record("not refused")
            return
        }
        #expect(try await fault(.lists(list, scope: .leaf, acceptsExpiredLists: true)) == nil)
        let dirty = PEMSource.text(
            try below.revocationList(
                revoking: [issued.certificateChainPEM], issued: old, until: .seconds(-3600)))
        #expect(try await fault(.lists(dirty, scope: .leaf, acceptsExpiredLists: true)) == .revoked)
    }

    @Test("With a future list or one signed by another key the revocation status is unknown")
    func forged() async throws {
        let impostor = try CertificateAuthority(commonName: "Martlet test intermediate")
        for text in [
            try below.revocationList(issued: .seconds(3600)), try impostor.revocationList(),
        ] {
            guard
                case .revocationUnknown = try await fault(
                    .lists(.text(text), scope: .leaf, acceptsExpiredLists: true))
            else {
                Issue.record("not refused")
                return
            }
        }
    }

    @Test("The error for an unreadable file, or one without a list, names the file and the damaged list")
    func badFiles() throws {
        let list = try below.revocationList()
        let damaged = list + list.replacing("X509 CRL-----\nM", with: "X509 CRL-----\n!")
        for (source, words) in [
            (PEMSource.file("/nowhere/list.pem"), "/nowhere/list.pem"),
            (.text("hello"), "no revocation list"),
            (.text(damaged), "revocation list 2 (line "),
            (.bytes([0x30, 0x03, 1, 1, 0]), "revocation list 1"),
        ] {
            let error = #expect(throws: TLSError.self) {
                try TLSContext(client: TLSSettings(trust: root.trust).with(.lists(source)))
            }
            guard case .revocationList = error?.kind else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(error?.description.contains(words) == true, "\(error?.description ?? "")")
        }
    }
}

extension TLSSettings {
    fileprivate func with(_ revocation: RevocationPolicy) -> TLSSettings {
        var copy = self
        copy.revocation = revocation
        return copy
    }
}
