import Foundation
import Martlet
import Testing

@Suite("TLS with nginx")
struct NginxTLSTests {
    @Test("A private authority is sufficient, and the host name is sent by SNI")
    func ownAuthority() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.trusting(server.certificates)
            let answer = try await session.get(server.url(server.tlsPort, "/tls", scheme: "https"))
            #expect(answer.text == "TLSv1.3 . localhost")
            let tls = try #require(answer.metrics.connection?.tls)
            #expect(tls.version == "TLSv1.3")
            #expect(!tls.isResumed)
            #expect(!tls.peerCertificate.isEmpty)
            #expect(answer.metrics.tls != nil)
            let again = try await session.get(server.url(server.tlsPort, "/connection", scheme: "https"))
            #expect(again.text == "2")
        }
    }

    @Test("An IP address is verified as an address and not sent as a name")
    func address() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.trusting(server.certificates)
            let answer = try await session.get("https://127.0.0.1:\(server.tlsPort)/tls")
            #expect(answer.text == "TLSv1.3 . ")
        }
    }

    @Test("Each TLS version works with a server that has no other")
    func oneVersion() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.trusting(server.certificates)
            let old = try await session.get(server.url(server.tls12Port, "/tls", scheme: "https"))
            #expect(old.text == "TLSv1.2 . localhost")
            #expect(old.metrics.connection?.tls?.version == "TLSv1.2")
            let new = try await session.get(server.url(server.tls13Port, "/tls", scheme: "https"))
            #expect(new.text == "TLSv1.3 . localhost")
        }
    }

    @Test("Without a common version the error says so")
    func noCommonVersion() async throws {
        try await NginxServer.withServer { server in
            let new = HTTPSession.trusting(server.certificates) { $0.tls.minimumVersion = .tls13 }
            let old = HTTPSession.trusting(server.certificates) { $0.tls.maximumVersion = .tls12 }
            for (session, port) in [(new, server.tls12Port), (old, server.tls13Port)] {
                let error = await #expect(throws: HTTPError.self) {
                    try await session.get(server.url(port, "/tls", scheme: "https"))
                }
                #expect(error?.code == .tlsFailed)
                #expect(error?.phase == .tlsHandshake)
                #expect(error?.tlsKind == .protocolVersion)
                #expect(error?.wasSent == false)
            }
        }
    }

    @Test("A client certificate is sent to a server that requests one")
    func clientCertificate() async throws {
        try await NginxServer.withServer { server in
            let client = server.certificates.client
            let session = HTTPSession.trusting(server.certificates) {
                $0.tls.identity = TLSIdentity(
                    certificateChain: .file(client.certificate), privateKey: .file(client.key))
            }
            let url = server.url(server.clientCertificatePort, "/client", scheme: "https")
            let known = try await session.get(url)
            #expect(known.text == "CN=Martlet")
            let anonymous = HTTPSession.trusting(server.certificates)
            let rejected = try await anonymous.get(url)
            #expect(rejected.response.status == .badRequest)
            #expect(rejected.text.contains("No required SSL certificate was sent"))
        }
    }

    @Test("A view with a client certificate never shares the connections of the session without one")
    func identitiesApart() async throws {
        try await NginxServer.withServer { server in
            let client = server.certificates.client
            let anonymous = HTTPSession.trusting(server.certificates)
            let martlet = anonymous.with {
                $0.tls.identity = TLSIdentity(
                    certificateChain: .file(client.certificate), privateKey: .file(client.key))
            }
            let url = server.url(server.clientCertificatePort, "/client", scheme: "https")
            for _ in 1...2 {
                let rejected = try await anonymous.get(url)
                #expect(rejected.response.status == .badRequest)
                let known = try await martlet.get(url)
                #expect(known.text == "CN=Martlet")
            }
        }
    }

    @Test("An expired certificate is rejected as expired, before a byte of the request is sent")
    func expired() async throws {
        try await NginxServer.withServer { server in
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.trusting(server.certificates).get(
                    server.url(server.expiredPort, "/hello.txt", scheme: "https"))
            }
            #expect(error?.code == .tlsFailed)
            #expect(error?.tlsKind == .expired)
            #expect(error?.wasSent == false)
        }
    }

    @Test("A certificate for another name is rejected, with its names in the error")
    func otherName() async throws {
        try await NginxServer.withServer { server in
            let address = try #require(SocketAddress(literal: "127.0.0.1", port: Int(server.tlsPort)))
            let session = HTTPSession.trusting(server.certificates) {
                $0.resolveOverrides = [
                    Endpoint(host: "other.test", port: Int(server.tlsPort)): [address]
                ]
            }
            let error = await #expect(throws: HTTPError.self) {
                try await session.get("https://other.test:\(server.tlsPort)/hello.txt")
            }
            guard case .nameMismatch(let names) = error?.tlsKind else {
                Issue.record("not a name mismatch: \(String(describing: error))")
                return
            }
            #expect(names.contains("localhost"))
        }
    }

    @Test("An unknown authority is rejected as untrusted")
    func unknownAuthority() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.plain()
            let error = await #expect(throws: HTTPError.self) {
                try await session.get(server.url(server.tlsPort, "/hello.txt", scheme: "https"))
            }
            #expect(error?.tlsKind == .unknownAuthority)
            let careless = session.with { $0.tls.trust = .dangerouslyAcceptingAnyCertificate }
            let url = server.url(server.expiredPort, "/hello.txt", scheme: "https")
            let answer = try await careless.get(url)
            #expect(answer.text == Site.hello)
        }
    }

    @Test("The second connection resumes the TLS session of the first, with each version")
    func resumption() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.trusting(server.certificates)
            for (port, version) in [(server.tls12Port, "TLSv1.2"), (server.tls13Port, "TLSv1.3")] {
                let url = server.url(port, "/tls", scheme: "https")
                let first = try await session.get(url, headers: [.connection: "close"])
                #expect(first.text == "\(version) . localhost")
                let second = try await session.get(url, headers: [.connection: "close"])
                #expect(second.text == "\(version) r localhost")
                #expect(second.metrics.connection?.tls?.isResumed == true)
                #expect(!second.metrics.isConnectionReused)
            }
        }
    }

    @Test("An ephemeral session resumes no TLS session")
    func noResumption() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.trusting(server.certificates) { $0.tls.usesSessionTickets = false }
            let url = server.url(server.tlsPort, "/tls", scheme: "https")
            for _ in 1...2 {
                let answer = try await session.get(url, headers: [.connection: "close"])
                #expect(answer.text == "TLSv1.3 . localhost")
            }
        }
    }

    @Test("64 MiB over TLS are the same bytes")
    func largeFile() async throws {
        try await NginxServer.withServer { server in
            let source = server.directory.appending("site/large.bin")
            try await LargeFile.write(64 << 20, to: source)
            let copy = server.directory.appending("tls-copy.bin")
            let session = HTTPSession.trusting(server.certificates)
            let answer = try await session.save(
                HTTPRequest(method: .get, url: server.url(server.tlsPort, "/large.bin", scheme: "https")),
                to: FilePath(copy), overwrites: false)
            #expect(answer.metrics.receivedBodyByteCount == 64 << 20)
            try await LargeFile.compare(source, copy)
        }
    }

    @Test("An upload over TLS arrives unchanged, in chunks")
    func upload() async throws {
        try await NginxServer.withServer { server in
            let source = server.directory.appending("tls-source.bin")
            try await LargeFile.write(8_000_000, to: source)
            let pieces = LargeFile.Pieces(byteCount: 8_000_000)
            let stored = try await HTTPSession.trusting(server.certificates).put(
                server.url(server.tlsPort, "/upload/tls.bin", scheme: "https"), body: .stream { pieces })
            #expect(stored.response.status == .created)
            try await LargeFile.compare(source, server.directory.appending("uploads/tls.bin"))
        }
    }

    @Test("413 is delivered during an upload over TLS")
    func tooLarge() async throws {
        try await NginxServer.withServer { server in
            let pieces = LargeFile.Pieces(byteCount: 200_000_000)
            let session = HTTPSession.trusting(server.certificates)
            let rejected = try await session.put(
                server.url(server.tlsPort, "/small/big.bin", scheme: "https"),
                body: .stream(length: 200_000_000) { pieces })
            #expect(rejected.response.status == .contentTooLarge)
            #expect(session.poolStatus.leased == 0)
        }
    }

    @Test("Fifty concurrent requests over TLS all get the right response")
    func manyAtOnce() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.trusting(server.certificates)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 1...50 {
                    group.addTask {
                        let answer = try await session.get(
                            server.url(server.tlsPort, "/echo?\(number)", scheme: "https"))
                        #expect(answer.text.hasPrefix("GET\n/echo?\(number)\n"))
                    }
                }
                try await group.waitForAll()
            }
            #expect(session.poolStatus.opened <= 16)
        }
    }

    @Test("After Strict-Transport-Security over TLS, http URLs of the host are requested over TLS")
    func strictTransportSecurity() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.trusting(server.certificates) { $0.hsts = HSTSStore() }
            let plain = "http://localhost:\(server.tlsPort)/strict"
            let rejected = try await session.get(plain)
            #expect(rejected.response.status == .badRequest)
            let strict = try await session.get(server.url(server.tlsPort, "/strict", scheme: "https"))
            #expect(strict.text == "https")
            let upgraded = try await session.get(plain)
            #expect(upgraded.text == "https")
        }
    }

    @Test("TLS to a plaintext port is an error, and plaintext to a TLS port gets a response")
    func mixedUp() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.trusting(server.certificates)
            let error = await #expect(throws: HTTPError.self) {
                try await session.get(server.url(server.plainPort, "/hello.txt", scheme: "https"))
            }
            #expect(error?.code == .tlsFailed)
            #expect(error?.wasSent == false)
            let answer = try await session.get(server.url(server.tlsPort, "/hello.txt"))
            #expect(answer.response.status == .badRequest)
            #expect(answer.text.contains("plain HTTP request was sent to HTTPS port"))
        }
    }
}
