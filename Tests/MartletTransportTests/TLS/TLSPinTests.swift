import MartletTestSupport
import Testing

@testable import MartletTransport

@Suite("TLS public key and certificate pins")
struct TLSPinTests {
    /// A certificate of a key whose digest was computed with the OpenSSL command line.
    private static let certificate = """
        -----BEGIN CERTIFICATE-----
        MIIBcjCCARmgAwIBAgIUTyWjhIbQS2YWNDFFuEdEOs3ekhkwCgYIKoZIzj0EAwIw
        DjEMMAoGA1UEAwwDcGluMCAXDTI2MTEyMTE2NTczNVoYDzIxMjYxMDI4MTY1NzM1
        WjAOMQwwCgYDVQQDDANwaW4wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARkEvKs
        nmzUTUN0yGhPzZSN8JyMidFdPqojEf8nKow/qame8dguOugBZssCi5d8DwpfrqA+
        S9/MwLFXQPGHfZqEo1MwUTAdBgNVHQ4EFgQUAwki9Vsr0drNIgUXYG7l7Sq8G3Yw
        HwYDVR0jBBgwFoAUAwki9Vsr0drNIgUXYG7l7Sq8G3YwDwYDVR0TAQH/BAUwAwEB
        /zAKBggqhkjOPQQDAgNHADBEAiBqENGKKfKB+XIsgTprNfeVR/Jk5oXrgTtbq9Pd
        FH+LmQIgQczR5jB7yXbuFe6Cj1AOoTMrClzAqKaJ2w31sGQkNwI=
        -----END CERTIFICATE-----
        """
    private static let publicKey = """
        -----BEGIN PUBLIC KEY-----
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEZBLyrJ5s1E1DdMhoT82UjfCcjInR
        XT6qIxH/JyqMP6mpnvHYLjroAWbLAouXfA8KX66gPkvfzMCxV0Dxh32ahA==
        -----END PUBLIC KEY-----
        """
    private static let digest = "iIYWKkEgT74KrsNjEx+oQb0lSkR3k+tF7tYXe3JDeiU="
    /// A pin that matches no key.
    private static let spare = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    private static let other = "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

    private func pin(_ pem: String) throws -> String {
        try PublicKeyPin(of: .text(pem)).description
    }

    private func fault(
        _ trust: TrustPolicy, _ server: TLSContext, version: TLSVersion = .tls13
    ) async throws -> TLSError.Kind? {
        let client = try Certificates.client {
            $0.trust = trust
            $0.maximumVersion = version
        }
        return await (try TLSPair()).handshake(client: client, server: server).clientError?.kind
    }

    private func server(_ issued: IssuedCertificate, extra: String = "") throws -> TLSContext {
        try TLSContext.server(
            certificateChainPEM: issued.certificateChainPEM + extra, privateKeyPEM: issued.privateKeyPEM)
    }

    @Test(
        "A pin from a certificate, from its public key and from the OpenSSL command line is the same"
    )
    func digests() throws {
        #expect(try PublicKeyPin(of: .text(TLSPinTests.certificate)).base64 == TLSPinTests.digest)
        #expect(try PublicKeyPin(of: .text(TLSPinTests.publicKey)).base64 == TLSPinTests.digest)
        let pin = try PublicKeyPin("sha256//" + TLSPinTests.digest)
        #expect(try PublicKeyPin(TLSPinTests.digest) == pin)
        #expect(try PublicKeyPin(sha256: pin.sha256) == pin)
        #expect("\(pin)" == "sha256//" + TLSPinTests.digest)
    }

    @Test(
        "Text that is not a pin is rejected, and the error shows it",
        arguments: [
            "", "sha256//", "AAAA", "sha1//AAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            "iIYWKkEgT74KrsNjEx+oQb0lSkR3k+tF7tYXe3JDeiV=", "iIYWKkEgT74KrsNjEx+oQb0lSkR3k+tF7tYXe3JDeiUA",
            "iIYWKkEgT74KrsNjEx+oQb0lSkR3k+tF7tYXe3JDei==", "iIYWKkEgT74KrsNjEx-oQb0lSkR3k_tF7tYXe3JDeiU=",
            "iIYWKkEgT74KrsNjEx+oQb0lSkR3k+tF7tYXe3JDeiU=\n", " iIYWKkEgT74KrsNjEx+oQb0lSkR3k+tF7tYXe3JDeiU",
        ])
    func malformed(text: String) {
        let error = #expect(throws: TLSError.self) { try PublicKeyPin(text) }
        #expect(error?.description.contains("“\(text)”") == true)
    }

    @Test("Pins without a backup, or with the pin itself as backup, are rejected")
    func backup() throws {
        for backup in [[], [TLSPinTests.digest]] {
            let error = #expect(throws: TLSError.self) {
                switch backup.first {
                case let same?: try TrustPolicy.pinnedPublicKeys(TLSPinTests.digest, backup: same)
                case nil: try TrustPolicy.pinnedPublicKeys(TLSPinTests.digest)
                }
            }
            #expect(error?.description.contains("backup") == true)
        }
        #expect(throws: TLSError.self) { try TrustPolicy.pinnedPublicKeys(backup: TLSPinTests.spare) }
        let good = try TrustPolicy.pinnedPublicKeys(TLSPinTests.digest, backup: TLSPinTests.spare)
        #expect(good.usesSystemRoots)
    }

    @Test(
        "A chain with a pinned server key, authority key or backup key is accepted",
        arguments: TLSVersion.allCases)
    func matches(version: TLSVersion) async throws {
        let authority = try Certificates.authority.get()
        let below = try authority.intermediate()
        let issued = try below.issue(.loopback)
        let server = try server(issued)
        for pem in [issued.certificateChainPEM, below.certificatePEM, authority.rootPEM] {
            let first = try authority.trust.pinningPublicKeys(try pin(pem), backup: TLSPinTests.spare)
            #expect(try await fault(first, server, version: version) == nil)
            let second = try authority.trust.pinningPublicKeys(TLSPinTests.spare, backup: try pin(pem))
            #expect(try await fault(second, server, version: version) == nil)
        }
    }

    @Test(
        "A valid chain without a pinned key is a pin mismatch that lists the keys of the chain",
        arguments: TLSVersion.allCases)
    func mismatch(version: TLSVersion) async throws {
        let authority = try Certificates.authority.get()
        let issued = try authority.issue(.loopback)
        let trust = try authority.trust.pinningPublicKeys(TLSPinTests.other, backup: TLSPinTests.spare)
        let kind = try await fault(trust, try server(issued), version: version)
        let keys = [
            try PublicKeyPin(of: .text(issued.certificateChainPEM)),
            try PublicKeyPin(of: .text(authority.rootPEM)),
        ]
        #expect(kind == .pinMismatch(found: keys))
        #expect(TLSError(.pinMismatch(found: keys)).description.contains(keys[0].base64))
    }

    @Test("A pinned certificate that the server sends outside the verified path does not match")
    func decoy() async throws {
        let authority = try Certificates.authority.get()
        let decoy = try CertificateAuthority(commonName: "Pinned")
        let trust = try authority.trust.pinningPublicKeys(
            try pin(decoy.rootPEM), backup: TLSPinTests.spare)
        let server = try server(try authority.issue(.loopback), extra: decoy.rootPEM)
        guard case .pinMismatch = try await fault(trust, server) else {
            Issue.record("the decoy counted")
            return
        }
        let certificates = authority.trust.pinningCertificates(.text(decoy.rootPEM))
        guard case .pinMismatch = try await fault(certificates, server) else {
            Issue.record("the decoy counted")
            return
        }
    }

    @Test("A pinned key does not make a chain valid: unknown authority and name mismatch are reported first")
    func validityFirst() async throws {
        let stranger = try CertificateAuthority(commonName: "Stranger")
        let issued = try stranger.issue(.loopback)
        let trust = try Certificates.authority.get().trust.pinningPublicKeys(
            try pin(issued.certificateChainPEM), backup: TLSPinTests.spare)
        #expect(try await fault(trust, try server(issued)) == .unknownAuthority)
        let other = try Certificates.authority.get().issue(CertificateTemplate(hostNames: ["other.example"]))
        let named = try Certificates.authority.get().trust.pinningPublicKeys(
            try pin(other.certificateChainPEM), backup: TLSPinTests.spare)
        #expect(try await fault(named, try server(other)) == .nameMismatch(["other.example"]))
    }

    @Test("A single pin matches only the server's own key, even if any certificate is accepted")
    func single() async throws {
        let authority = try Certificates.authority.get()
        let issued = try authority.issue(.loopback)
        let server = try server(issued)
        let own = try PublicKeyPin(of: .text(issued.certificateChainPEM))
        let root = try PublicKeyPin(of: .text(authority.rootPEM))
        for policy in [authority.trust, .dangerouslyAcceptingAnyCertificate] {
            #expect(try await fault(policy.dangerouslyPinningWithoutBackup(own), server) == nil)
            guard
                case .pinMismatch = try await fault(policy.dangerouslyPinningWithoutBackup(root), server)
            else {
                Issue.record("the authority's key counted")
                return
            }
        }
    }

    @Test(
        "Only the pinned certificates are trusted: a server's own, an intermediate or a root"
    )
    func certificates() async throws {
        let authority = try CertificateAuthority()
        let below = try authority.intermediate()
        let issued = try below.issue(.loopback)
        let server = try server(issued)
        for pem in [issued.certificateChainPEM, below.certificatePEM, authority.rootPEM] {
            let leaf = try #require(pem.firstRange(of: "-----END CERTIFICATE-----"))
            let first = String(pem[..<leaf.upperBound]) + "\n"
            #expect(try await fault(.pinnedCertificates(.text(first)), server) == nil)
            #expect(try await fault(authority.trust.pinningCertificates(.text(first)), server) == nil)
        }
        let stranger = try CertificateAuthority(commonName: "Stranger")
        #expect(try await fault(.pinnedCertificates(.text(stranger.rootPEM)), server) == .unknownAuthority)
        guard
            case .pinMismatch = try await fault(
                authority.trust.pinningCertificates(.text(stranger.rootPEM)), server)
        else {
            Issue.record("not refused")
            return
        }
    }

    @Test(
        "A self-signed certificate that claims to be an authority is accepted only as a pin or a root"
    )
    func selfMade() async throws {
        var template = CertificateTemplate.loopback
        // `openssl req -x509` creates such certificates.
        template.isAuthority = true
        template.keyUsage = ""
        template.usages = []
        let issued = try CertificateAuthority.selfSigned(template)
        let server = try server(issued)
        let pem = PEMSource.text(issued.certificateChainPEM)
        #expect(try await fault(.pinnedCertificates(pem), server) == nil)
        #expect(try await fault(.only(pem), server) == nil)
        #expect(try await fault(.system.adding(pem), server) == nil)
        let other = PEMSource.text(try CertificateAuthority.selfSigned(template).certificateChainPEM)
        #expect(try await fault(.only(other), server) == .selfSigned)
        let expired = try CertificateAuthority.selfSigned(
            CertificateTemplate(hostNames: ["localhost"], notBefore: .seconds(-7200), notAfter: .seconds(-60))
        )
        let past = try self.server(expired)
        #expect(
            try await fault(.pinnedCertificates(.text(expired.certificateChainPEM)), past) == .expired)
    }

    @Test("Pins are enforced on a resumed connection", arguments: TLSVersion.allCases)
    func resumed(version: TLSVersion) async throws {
        let authority = try Certificates.authority.get()
        let server = try Certificates.server()
        let open = try Certificates.client { $0.maximumVersion = version }
        let pins = try authority.trust.pinningPublicKeys(
            try pin(authority.rootPEM), backup: TLSPinTests.spare)
        let pinned = try Certificates.client {
            $0.maximumVersion = version
            $0.trust = pins
        }
        for expectation in [false, true] {
            #expect(try await exchange(pinned, server) == expectation)
        }
        // This simulates a session in the store from a connection without these pins.
        #expect(try await exchange(open, server) == false)
        let key = TLSSessionCache.Key(host: "localhost", port: 443)
        let foreign = try #require(open.sessions?.take(for: key))
        while pinned.sessions?.take(for: key) != nil, pinned.sessions?.destinationCount != 0 {
            if pinned.sessions?.take(for: key, now: Int.max) == nil { break }
        }
        pinned.sessions?.insert(foreign, for: key)
        let outcome = await (try TLSPair()).handshake(client: pinned, server: server)
        #expect(outcome.clientError?.kind == .pinMismatch(found: []))
    }

    /// Connects, receives session tickets and closes; returns whether the session was resumed.
    private func exchange(_ client: TLSContext, _ server: TLSContext) async throws -> Bool {
        let outcome = await (try TLSPair()).handshake(client: client, server: server)
        let (near, far) = (try outcome.client.get(), try outcome.server.get())
        try await far.send([1])
        #expect(try await near.receive().1 == [1])
        far.close()
        near.close()
        return near.information.tls?.isResumed ?? false
    }

    @Test("Policies with different pins are not equal and share nothing")
    func equality() throws {
        let one = try TrustPolicy.pinnedPublicKeys(TLSPinTests.digest, backup: TLSPinTests.spare)
        let two = try TrustPolicy.pinnedPublicKeys(TLSPinTests.digest, backup: TLSPinTests.other)
        #expect(one != two)
        #expect(one != .system)
        #expect(
            try one == TrustPolicy.system.pinningPublicKeys(TLSPinTests.digest, backup: TLSPinTests.spare))
        #expect(TrustPolicy.custom { _, _ in .accept } != TrustPolicy.custom { _, _ in .accept })
    }

    @Test("The error for an unreadable file of pinned certificates names the file")
    func missingFile() {
        let error = #expect(throws: TLSError.self) {
            try TLSContext(client: TLSSettings(trust: .system.pinningCertificates(.file("/nowhere/pin.pem"))))
        }
        #expect(error?.description.contains("/nowhere/pin.pem") == true)
    }
}
