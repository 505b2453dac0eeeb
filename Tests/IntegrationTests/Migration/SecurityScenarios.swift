import Foundation
import Martlet
import MartletTestSupport
import MartletTesting
import Synchronization
import Testing

/// The features of both kits that concern credentials, certificates and trust.
enum SecurityScenarios {
    static let all = [
        MigrationScenario("M11", "Challenges are answered, at most three times", challenges),
        MigrationScenario("K13", "A host has its own client certificate and its own trust", hostTLS),
        MigrationScenario(
            "A13", "Trust is by authority, by pinned certificate or key, or by a closure", trust),
    ]

    /// Whether a request has the Digest credentials of `user` and `pass` (RFC 7616 §3.4), computed apart from the client's code.
    private static func isDigest(
        _ request: OriginRequest, _ hash: MessageDigestAlgorithm, _ protection: String
    ) async throws -> Bool {
        func digest(_ bytes: some Sequence<UInt8>) throws -> String {
            String(
                decoding: MessageDigest.hexadecimal(try MessageDigest.digest(hash, of: bytes)), as: UTF8.self)
        }
        var fields: [Substring: Substring] = [:]
        for match in (request.headers["Authorization"] ?? "").matches(of: /(\w+)="?([^",]*)"?/) {
            fields[match.1] = match.2
        }
        func field(_ name: Substring) -> String { String(fields[name] ?? "") }
        let body = protection == "auth-int" ? ":" + (try digest(try await request.collectBody())) : ""
        let secret = try digest("user:realm:pass".utf8)
        let message = try digest("\(request.method):\(request.target)\(body)".utf8)
        let parts = [secret, field("nonce"), field("nc"), field("cnonce"), protection, message]
        return field("response") == (try digest(parts.joined(separator: ":").utf8))
    }

    static func challenges() async throws {
        let hashes: [(String, MessageDigestAlgorithm)] = [
            ("MD5", .md5), ("SHA-256", .sha256), ("SHA-512-256", .sha512_256),
        ]
        for (name, hash) in hashes {
            for protection in ["auth", "auth-int"] {
                let challenge =
                    "Digest realm=\"realm\", nonce=\"n\", algorithm=\(name), qop=\"\(protection)\""
                try await TestOrigin.withOrigin { request in
                    try await isDigest(request, hash, protection)
                        ? .text("in") : OriginResponse(401, headers: ["WWW-Authenticate": "\(challenge)"])
                } run: { origin async throws in
                    let session = HTTPSession.plain {
                        $0.authentication.credentials = .digest(user: "user", password: "pass")
                    }
                    #expect(try await session.post(origin.url("/a"), body: .text("body")).text == "in")
                }
            }
        }
        try await TestOrigin.withOrigin { request in
            if ["Basic dXNlcjpwYXNz", "Bearer t"].contains(request.headers["Authorization"]) {
                return .text("in")
            }
            return OriginResponse(401, headers: ["WWW-Authenticate": "Basic realm=\"realm\""])
        } run: { origin async throws in
            let count = Mutex(0)
            for (credentials, status, asked) in [
                (Credentials.basic(user: "user", password: "pass"), 200, 1),
                (.basic(user: "user", password: ""), 401, 3),
            ] {
                count.withLock { $0 = 0 }
                let session = HTTPSession.plain {
                    $0.authentication.handler = { challenge in
                        count.withLock { $0 += 1 }
                        return challenge.offers("Basic") ? credentials : nil
                    }
                }
                #expect(try await session.get(origin.url()).statusCode == status)
                #expect(count.withLock { $0 } == asked)
            }
            let bearer = HTTPSession.plain { $0.authentication.credentials = .bearer("t") }
            #expect(try await bearer.get(origin.url()).text == "in")
        }
        try await clientCertificates()
    }

    private static func clientCertificates() async throws {
        try await TestOrigin.withOrigin(.tls(.demandsClientCertificate)) { request in
            .text(request.connection.clientCommonName ?? "")
        } run: { origin async throws in
            let client = try #require(origin.credentials?.clientIdentity)
            let issued = IssuedCertificate(
                certificateChainPEM: client.certificatePEM, privateKeyPEM: client.privateKeyPEM)
            let identities = [
                TLSIdentity(
                    certificateChain: .text(client.certificatePEM), privateKey: .text(client.privateKeyPEM)),
                try .pkcs12(bytes: issued.pkcs12(passphrase: "secret"), passphrase: "secret"),
            ]
            for identity in identities {
                let session = HTTPSession.trusting(origin) { configuration in
                    configuration.tls.identity = identity
                    configuration.tls.trust = .custom { chain, host in
                        chain.certificates.isEmpty ? .deny(reason: host) : .accept
                    }
                }
                #expect(try await !session.get(origin.url()).text.isEmpty)
            }
            await #expect(throws: HTTPError.self) { try await HTTPSession.trusting(origin).get(origin.url()) }
        }
    }

    static func hostTLS() async throws {
        try await TestOrigin.withOrigin(.tls(.demandsClientCertificate)) { request in
            .text(request.connection.clientCommonName ?? "")
        } run: { origin async throws in
            let client = try #require(origin.credentials?.clientIdentity)
            let strict = try HTTPSession.plain().host(origin.base)
            let identity = TLSIdentity(
                certificateChain: .text(client.certificatePEM), privateKey: .text(client.privateKeyPEM))
            let known = strict.with {
                $0.tls = TLSHostSettings(trust: .only(.text(origin.authorityPEM ?? "")), identity: identity)
            }
            #expect(try await !known.get().text.isEmpty)
            let careless = strict.with {
                $0.tls = TLSHostSettings(trust: .dangerouslyAcceptingAnyCertificate, identity: identity)
            }
            #expect(try await !careless.get().text.isEmpty)
            let error = try #require(await #expect(throws: HTTPError.self) { try await strict.get() })
            #expect(error.code == .tlsFailed)
            #expect(origin.requests.count == 2)
        }
    }

    static func trust() async throws {
        let spare = try PublicKeyPin(sha256: Array(repeating: 1, count: 32)).description
        let other = try PublicKeyPin(sha256: Array(repeating: 2, count: 32)).description
        try await TestOrigin.withOrigin(.tls(), handler: .status(200)) { origin async throws in
            let authority = PEMSource.text(origin.authorityPEM ?? "")
            let (known, pin) = (TrustPolicy.only(authority), try PublicKeyPin(of: authority).description)
            let stranger = PEMSource.text(try CertificateAuthority().rootPEM)
            let policies: [(TrustPolicy, Bool)] = [
                (.system, false), (.system.adding(authority), true), (known, true), (.only(stranger), false),
                (known.pinningCertificates(authority), true), (known.pinningCertificates(stranger), false),
                (try known.pinningPublicKeys(pin, backup: spare), true),
                (try known.pinningPublicKeys(other, backup: spare), false),
                (.custom { _, _ in .accept }, true), (.custom { _, host in .deny(reason: host) }, false),
                (.dangerouslyAcceptingAnyCertificate, true),
            ]
            for (policy, isTrusted) in policies {
                let session = HTTPSession.plain { $0.tls.trust = policy }
                do {
                    #expect(try await session.get(origin.url()).statusCode == 200)
                    #expect(isTrusted)
                } catch let error as HTTPError {
                    #expect(error.code == .tlsFailed && !error.wasSent)
                    #expect(!isTrusted)
                }
            }
            #expect(origin.requests.count == policies.count { $0.1 })
            #expect(throws: TLSError.self) { try known.pinningPublicKeys(pin) }
        }
        try await TestOrigin.withOrigin(.tls(.wrongName), handler: .status(200)) { origin async throws in
            await #expect(throws: HTTPError.self) { try await HTTPSession.trusting(origin).get(origin.url()) }
            let careless = HTTPSession.trusting(origin) { $0.tls.verifiesHostName = false }
            #expect(try await careless.get(origin.url()).statusCode == 200)
        }
    }
}
