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

    private func fault(
        _ revocation: RevocationPolicy, trust: TrustPolicy? = nil, server certificate: IssuedCertificate? = nil
    ) async throws -> TLSError.Kind? {
        let certificate = certificate ?? issued
        let server = try TLSContext.server(
            certificateChainPEM: certificate.certificateChainPEM, privateKeyPEM: certificate.privateKeyPEM)
        let client = try Certificates.client {
            $0.trust = trust ?? root.trust
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

    @Test("A trusted intermediate needs no list of the root, but certificates below it do", arguments: [false, true])
    func trustedIntermediate(withRoot: Bool) async throws {
        let trust = TrustPolicy.only(.text((withRoot ? root.rootPEM : "") + below.certificatePEM))
        let upper = PEMSource.text(try root.revocationList())
        let clean = PEMSource.text(try below.revocationList())
        #expect(try await fault(.lists(upper, clean), trust: trust) == nil)
        #expect(try await fault(.lists(clean), trust: trust) == nil)
        guard case .revocationUnknown = try await fault(.lists(upper), trust: trust) else {
            Issue.record("not refused")
            return
        }
        let dirty = PEMSource.text(try below.revocationList(revoking: [issued.certificateChainPEM]))
        #expect(try await fault(.lists(upper, dirty), trust: trust) == .revoked)
        let above = PEMSource.text(try root.revocationList(revoking: [below.certificatePEM]))
        #expect(try await fault(.lists(above, clean), trust: trust) == .revoked)
        #expect(try await fault(.lists(above, clean, scope: .leaf), trust: trust) == nil)
        // Another intermediate is checked, although a given one is not.
        let other = try root.intermediate(commonName: "Other intermediate")
        let lists = PEMSource.text(
            try root.revocationList(revoking: [other.certificatePEM]) + other.revocationList())
        let kind = try await fault(.lists(lists), trust: trust, server: try other.issue(.loopback))
        let expected: TLSError.Kind = withRoot ? .revoked : .unknownAuthority
        #expect(kind == expected)
    }

    @Test(
        "A trusted server certificate needs no list, and is rejected if one revokes it",
        arguments: [RevocationPolicy.Scope.leaf, .wholeChain])
    func trustedServer(scope: RevocationPolicy.Scope) async throws {
        let list = PEMSource.text(try root.revocationList())
        let own = try CertificateAuthority.selfSigned(.loopback)
        let trust = TrustPolicy.only(.text(own.certificateChainPEM))
        #expect(try await fault(.lists(list, scope: scope), trust: trust, server: own) == nil)
        // The server also sends the certificate of its authority, which is not trusted.
        let end = try #require(issued.certificateChainPEM.firstRange(of: "-----END CERTIFICATE-----"))
        let leaf = TrustPolicy.only(.text(String(issued.certificateChainPEM[..<end.upperBound]) + "\n"))
        #expect(try await fault(.lists(list, scope: scope), trust: leaf) == nil)
        let dirty = PEMSource.text(try below.revocationList(revoking: [issued.certificateChainPEM]))
        #expect(try await fault(.lists(dirty, scope: scope), trust: leaf) == .revoked)
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
