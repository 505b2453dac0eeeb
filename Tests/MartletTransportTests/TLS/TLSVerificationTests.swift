import MartletTestSupport
import Testing

@testable import MartletTransport

@Suite("TLS certificate verification")
struct TLSVerificationTests {
    private typealias Template = CertificateTemplate

    /// Returns the error of a client that trusts the authority for a server with the certificate.
    private func verdict(
        on template: CertificateTemplate, name: String = "localhost", client: TLSContext? = nil
    ) async throws -> TLSError? {
        let client = try client ?? Certificates.client()
        let outcome = await (try TLSPair()).handshake(
            client: client, server: try Certificates.server(template), name: name)
        return outcome.clientError
    }

    @Test("The error for a name mismatch lists the names of the certificate")
    func wrongName() async throws {
        let error = try await verdict(
            on: Template(hostNames: ["one.example", "two.example"], addresses: ["192.0.2.1"]),
            name: "three.example")
        #expect(error?.kind == .nameMismatch(["one.example", "two.example", "192.0.2.1"]))
        #expect(error?.host == "three.example")
        #expect(error?.description.contains("one.example") == true)
    }

    @Test("The server receives an alert when its certificate is rejected")
    func serverHears() async throws {
        let outcome = await (try TLSPair()).handshake(
            client: try Certificates.client(),
            server: try Certificates.server(Template(hostNames: ["a.example"])),
            name: "b.example")
        guard case .alert(let number, _) = outcome.serverError?.kind else {
            Issue.record("no alert: \(String(describing: outcome.serverError))")
            return
        }
        #expect(number == 42)
    }

    @Test("An expired certificate is reported as expired")
    func expired() async throws {
        let error = try await verdict(
            on: Template(hostNames: ["localhost"], notBefore: .seconds(-7200), notAfter: .seconds(-3600)))
        #expect(error?.kind == .expired)
    }

    @Test("A certificate of the future is reported as not yet valid")
    func notYetValid() async throws {
        let error = try await verdict(on: Template(hostNames: ["localhost"], notBefore: .seconds(3600)))
        #expect(error?.kind == .notYetValid)
    }

    @Test("A certificate of an untrusted authority has an unknown authority")
    func unknownAuthority() async throws {
        let stranger = try CertificateAuthority(commonName: "Stranger")
        let client = try Certificates.client { $0.trust = stranger.trust }
        #expect(try await verdict(on: .loopback, client: client)?.kind == .unknownAuthority)
    }

    @Test("A certificate that signs itself is reported as self-signed")
    func selfSigned() async throws {
        let issued = try CertificateAuthority.selfSigned(.loopback)
        let server = try TLSContext.server(
            certificateChainPEM: issued.certificateChainPEM, privateKeyPEM: issued.privateKeyPEM)
        let outcome = await (try TLSPair()).handshake(client: try Certificates.client(), server: server)
        #expect(outcome.clientError?.kind == .selfSigned)
    }

    @Test("A trusted self-signed certificate is accepted")
    func trustedSelfSigned() async throws {
        let issued = try CertificateAuthority.selfSigned(.loopback)
        let server = try TLSContext.server(
            certificateChainPEM: issued.certificateChainPEM, privateKeyPEM: issued.privateKeyPEM)
        let client = try TLSContext(client: TLSSettings(trust: .only(.text(issued.certificateChainPEM))))
        let outcome = await (try TLSPair()).handshake(client: client, server: server)
        #expect(throws: Never.self) { try outcome.client.get() }
    }

    @Test("A chain with an intermediate authority is accepted")
    func intermediate() async throws {
        let issued = try Certificates.authority.get().intermediate().issue(.loopback)
        let server = try TLSContext.server(
            certificateChainPEM: issued.certificateChainPEM, privateKeyPEM: issued.privateKeyPEM)
        let outcome = await (try TLSPair()).handshake(client: try Certificates.client(), server: server)
        #expect(throws: Never.self) { try outcome.client.get() }
    }

    /// Returns the client's error for a server with the chain.
    private func verdict(
        of issued: IssuedCertificate, root: CertificateAuthority
    ) async throws -> TLSError.Kind? {
        var settings = TLSServerSettings(identity: issued.identity)
        settings.allowsWeakKeys = true
        let client = try Certificates.client { $0.trust = root.trust }
        let outcome = await (try TLSPair()).handshake(
            client: client, server: try TLSContext(server: settings))
        return outcome.clientError?.kind
    }

    @Test(
        "A given root can omit its key usage, as `openssl req -x509` does, and other authorities cannot"
    )
    func rootWithoutKeyUsage() async throws {
        let root = try CertificateAuthority { $0.keyUsage = "" }
        #expect(try await verdict(of: root.issue(.loopback), root: root) == nil)
        let below = try root.intermediate()
        #expect(try await verdict(of: below.issue(.loopback), root: root) == nil)
        let silent = try root.intermediate { $0.keyUsage = "" }
        guard case .badCertificate(_, let code) = try await verdict(of: silent.issue(.loopback), root: root)
        else {
            Issue.record("not refused")
            return
        }
        #expect(code == 92)
    }

    // Only the missing key usage was once accepted.
    @Test("Other omissions of old roots are accepted in given roots only")
    func oldRoots() async throws {
        let changes: [(inout CertificateTemplate) -> Void] = [
            { $0.hasCriticalConstraints = false },
            {
                $0.keyUsage = ""
                $0.pathLength = 1
            },
        ]
        for (change, expected) in zip(changes, [[89], [81, 92]]) {
            let old = try CertificateAuthority(change: change)
            #expect(try await verdict(of: old.intermediate().issue(.loopback), root: old) == nil)
            let root = try CertificateAuthority()
            let below = try root.intermediate(change: change)
            let kind = try await verdict(of: below.issue(.loopback), root: root)
            guard case .badCertificate(_, let code) = kind else {
                Issue.record("not refused: \(expected)")
                continue
            }
            #expect(expected.contains(code))
        }
    }

    // OpenSSL's wildcards match only letters, digits and hyphens.
    @Test(
        "A wildcard matches one label, with or without an underscore",
        arguments: [
            ("my_host.example.com", "*.example.com", true), ("my_host.example.com", "*.Example.COM", true),
            ("a.my_zone.example", "*.my_zone.example", true),
            ("my_host.example.com", "my_host.example.com", true),
            ("my_host.a.example.com", "*.example.com", false), ("my_host.com", "*.com", false),
            ("my_host.example.com", "*.example.org", false),
            ("my_host.example.com", "my_*.example.com", false),
        ])
    func underscore(host: String, name: String, isGood: Bool) async throws {
        let error = try await verdict(on: Template(hostNames: [name]), name: host)
        #expect(error?.kind == (isGood ? nil : .nameMismatch([name])))
    }

    @Test("A wildcard that matches a host with an underscore skips no other check")
    func underscoreAlone() async throws {
        var template = Template(hostNames: ["*.example.com"])
        template.notAfter = .seconds(-60)
        #expect(try await verdict(on: template, name: "my_host.example.com")?.kind == .expired)
        let elsewhere = try CertificateAuthority(commonName: "Another authority")
        let stranger = try Certificates.client { $0.trust = elsewhere.trust }
        let unknown = try await verdict(
            on: Template(hostNames: ["*.example.com"]), name: "my_host.example.com", client: stranger)
        #expect(unknown?.kind == .unknownAuthority)
        let rule = PublicSuffixRule { $0 == "example.com" }
        let suffixes = try Certificates.client { $0.publicSuffixes = rule }
        let wide = try await verdict(
            on: Template(hostNames: ["*.example.com"]), name: "my_host.example.com", client: suffixes)
        #expect(wide?.kind == .nameMismatch(["*.example.com"]))
    }

    @Test("A certificate outside the domains of its authority is rejected")
    func nameConstraints() async throws {
        let root = try CertificateAuthority()
        let elsewhere = try root.intermediate { $0.permittedDomains = ["example.com"] }
        let kind = try await verdict(of: elsewhere.issue(Template(hostNames: ["localhost"])), root: root)
        #expect(kind == .badCertificate(reason: "permitted subtree violation", code: 47))
        let here = try root.intermediate { $0.permittedDomains = ["example.com", "localhost"] }
        #expect(try await verdict(of: here.issue(Template(hostNames: ["localhost"])), root: root) == nil)
    }

    @Test("A chain that exceeds the path length of an authority is rejected")
    func pathLength() async throws {
        let root = try CertificateAuthority { $0.pathLength = 0 }
        #expect(try await verdict(of: root.issue(.loopback), root: root) == nil)
        let kind = try await verdict(of: root.intermediate().issue(.loopback), root: root)
        #expect(kind == .badCertificate(reason: "path length constraint exceeded", code: 25))
    }

    @Test("A chain through a certificate that is not an authority's is rejected")
    func leafAsAuthority() async throws {
        let root = try CertificateAuthority()
        let leaf = try root.intermediate { $0.isAuthority = false }
        guard case .badCertificate = try await verdict(of: leaf.issue(.loopback), root: root) else {
            Issue.record("not refused")
            return
        }
    }

    @Test("A server or authority key that is too short is rejected")
    func weakKeys() async throws {
        let root = try CertificateAuthority()
        var weak = Template.loopback
        weak.key = .rsa(1024)
        let leaf = try await verdict(of: root.issue(weak), root: root)
        #expect(leaf == .weakKey(reason: "EE certificate key too weak"))
        let authority = try root.intermediate { $0.key = .rsa(1024) }
        let chain = try await verdict(of: authority.issue(.loopback), root: root)
        #expect(chain == .weakKey(reason: "CA certificate key too weak"))
        var strong = Template.loopback
        strong.key = .rsa(2048)
        #expect(try await verdict(of: root.issue(strong), root: root) == nil)
    }

    @Test("A signature with a broken digest is rejected", arguments: [Template.Digest.sha1, .md5])
    func weakDigests(_ digest: CertificateTemplate.Digest) async throws {
        let root = try CertificateAuthority { $0.key = .rsa(2048) }
        var weak = Template.loopback
        weak.digest = digest
        let kind = try await verdict(of: root.issue(weak), root: root)
        #expect(kind == .weakSignature(reason: "CA signature digest algorithm too weak"))
    }

    @Test("A chain without its intermediate has an unknown authority")
    func missingIntermediate() async throws {
        let issued = try Certificates.authority.get().intermediate().issue(.loopback)
        let leaf = try #require(issued.certificateChainPEM.firstRange(of: "-----END CERTIFICATE-----\n"))
        let server = try TLSContext.server(
            certificateChainPEM: String(issued.certificateChainPEM[..<leaf.upperBound]),
            privateKeyPEM: issued.privateKeyPEM)
        let outcome = await (try TLSPair()).handshake(client: try Certificates.client(), server: server)
        #expect(outcome.clientError?.kind == .unknownAuthority)
    }

    @Test("An address is compared with the address names", arguments: ["127.0.0.1", "::1", "[::1]"])
    func addressNames(name: String) async throws {
        #expect(try await verdict(on: .loopback, name: name) == nil)
    }

    @Test("An address among the host names does not match the address")
    func addressAsHostName() async throws {
        let error = try await verdict(on: Template(hostNames: ["192.0.2.7"]), name: "192.0.2.7")
        #expect(error?.kind == .nameMismatch(["192.0.2.7"]))
    }

    @Test("A wildcard never matches an address")
    func wildcardForAddress() async throws {
        let error = try await verdict(on: Template(hostNames: ["*.0.2.7"]), name: "192.0.2.7")
        #expect(error?.kind == .nameMismatch(["*.0.2.7"]))
    }

    @Test(
        "A wildcard must be the whole leftmost label and matches one label",
        arguments: [
            ("*.example.com", "a.example.com", true), ("*.example.com", "A.Example.COM", true),
            ("*.example.com", "a.example.com.", true), ("*.example.com", "a.b.example.com", false),
            ("*.example.com", "example.com", false), ("f*.example.com", "foo.example.com", false),
            ("*o.example.com", "foo.example.com", false), ("a.*.com", "a.example.com", false),
            ("*.*.com", "a.example.com", false), ("*.com", "example.com", false), ("*", "localhost", false),
            ("*.example.com", "xn--bcher-kva.example.com", true), ("EXAMPLE.com", "example.COM", true),
        ])
    func wildcards(pattern: String, name: String, fits: Bool) async throws {
        let error = try await verdict(on: Template(hostNames: [pattern]), name: name)
        #expect(error?.kind == (fits ? nil : .nameMismatch([pattern])))
    }

    @Test("The subject's common name is not used as a host name")
    func commonName() async throws {
        #expect(try await verdict(on: Template(commonName: "localhost"))?.kind == .nameMismatch([]))
        let error = try await verdict(on: Template(commonName: "localhost", hostNames: ["other.example"]))
        #expect(error?.kind == .nameMismatch(["other.example"]))
    }

    @Test("A name with a NUL matches no host")
    func embeddedNUL() async throws {
        let error = try await verdict(
            on: Template(hostNames: ["good.example\0.evil.example"]), name: "good.example")
        #expect(error?.kind == .nameMismatch(["good.example?.evil.example"]))
    }

    @Test(
        "A certificate whose extended key usage excludes servers is rejected",
        arguments: [[Template.Usage.client], [.codeSigning], [.any]])
    func wrongUsage(usages: [CertificateTemplate.Usage]) async throws {
        let error = try await verdict(on: Template(hostNames: ["localhost"], usages: usages))
        guard case .wrongPurpose = error?.kind else {
            Issue.record("not refused for its usage: \(String(describing: error))")
            return
        }
    }

    @Test(
        "A certificate with no or several extended key usages is accepted",
        arguments: [
            [], [Template.Usage.client, .server],
        ])
    func goodUsage(usages: [CertificateTemplate.Usage]) async throws {
        #expect(try await verdict(on: Template(hostNames: ["localhost"], usages: usages)) == nil)
    }

    @Test("An authority's certificate is not accepted as a server certificate")
    func authorityAsLeaf() async throws {
        var template = Template(hostNames: ["localhost"], isAuthority: true)
        guard case .wrongPurpose = try await verdict(on: template)?.kind else {
            Issue.record("its key is for signing certificates alone")
            return
        }
        template.keyUsage = "critical,keyCertSign,digitalSignature"
        let error = try await verdict(on: template)
        guard case .badCertificate(let reason, _) = error?.kind else {
            Issue.record("not refused: \(String(describing: error))")
            return
        }
        #expect(!reason.isEmpty)
    }

    @Test("Without any roots the error lists the searched paths")
    func noRoots() async throws {
        let client = try TLSContext(client: TLSSettings()) {
            SystemRoots(store: nil, directories: [], searched: ["/nowhere/cert.pem", "/nowhere/certs"])
        }
        let error = try await verdict(on: .loopback, client: client)
        #expect(error?.kind == .noTrustRoots(searched: ["/nowhere/cert.pem", "/nowhere/certs"]))
        #expect(error?.description.contains("/nowhere/cert.pem") == true)
    }

    @Test("A policy that accepts any certificate accepts an unknown authority and a wrong name")
    func acceptsAny() async throws {
        let client = try Certificates.client { $0.trust = .dangerouslyAcceptingAnyCertificate }
        #expect(try await verdict(on: Template(hostNames: ["other.example"]), client: client) == nil)
    }

    @Test("Without the name check a wrong name is accepted and an unknown authority is not")
    func namesUnchecked() async throws {
        let client = try Certificates.client { $0.verifiesHostName = false }
        #expect(try await verdict(on: Template(hostNames: ["other.example"]), client: client) == nil)
        let stranger = try CertificateAuthority(commonName: "Stranger")
        let strict = try Certificates.client {
            $0.verifiesHostName = false
            $0.trust = stranger.trust
        }
        #expect(try await verdict(on: .loopback, client: strict)?.kind == .unknownAuthority)
    }

    @Test(
        "A host that no certificate can match is rejected before a byte is sent",
        arguments: ["", ".", ".a.com", "a b"])
    func unverifiableHost(name: String) async throws {
        let pair = try TLSPair()
        let result = await TLSPair.connect(pair.client, try Certificates.client(), name, 443)
        guard case .failure(.tls(let error)) = result, case .configuration = error.kind else {
            Issue.record("not refused: \(result)")
            return
        }
        #expect(pair.client.isClosed)
    }
}
