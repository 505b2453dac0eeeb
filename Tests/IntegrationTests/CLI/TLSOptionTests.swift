import Martlet
import MartletTesting
import Testing

@Suite("TLS options of get")
struct TLSOptionTests {
    private func withOrigin(
        _ tls: OriginTLS, _ body: (TestOrigin, TemporaryDirectory) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await TestOrigin.withOrigin(.tls(tls), handler: .echo) { origin in
            try directory.write(origin.authorityPEM ?? "", to: "ca.pem")
            if let identity = origin.credentials?.clientIdentity {
                try directory.write(identity.certificatePEM, to: "client.pem")
                try directory.write(identity.privateKeyPEM, to: "client.key")
            }
            try await body(origin, directory)
        }
    }

    @Test(
        "A certificate is refused with 60 unless --cacert or SSL_CERT_FILE trusts it or -k asks for no check")
    func trust() async throws {
        try await withOrigin(.trusted) { origin, directory in
            let url = origin.url("/")
            #expect(try await Program.run(["-sS", url], in: directory).status == 60)
            #expect(try await Program.run(["-sS", "--cacert", "ca.pem", url], in: directory).status == 0)
            #expect(try await Program.run(["-sSk", url], in: directory).status == 0)
            let named = try await Program.run(
                ["-sS", url], in: directory, environment: ["SSL_CERT_FILE=\(directory.appending("ca.pem"))"])
            #expect(named.status == 0, "\(named.errors)")
            #expect(try await Program.run(["-sS", "--cacert", "none.pem", url], in: directory).status == 77)
            #expect(try await Program.run(["-sS", "--capath", ".", url], in: directory).status == 77)
        }
    }

    @Test(
        "A certificate that is wrong is exit code 60 though its authority is trusted",
        arguments: [OriginTLS.wrongName, .expired, .notYetValid, .unknownAuthority, .selfSigned])
    func wrongCertificate(_ tls: OriginTLS) async throws {
        try await withOrigin(tls) { origin, directory in
            let run = try await Program.run(["-sS", "--cacert", "ca.pem", origin.url("/")], in: directory)
            #expect(run.status == 60, "\(run.errors)")
            #expect(origin.requests.isEmpty)
            #expect(try await Program.run(["-sSk", origin.url("/")], in: directory).status == 0)
        }
    }

    @Test("--cert and --key show who is calling; unreadable ones are exit code 58")
    func clientCertificate() async throws {
        try await withOrigin(.demandsClientCertificate) { origin, directory in
            let common = ["-sS", "--cacert", "ca.pem", origin.url("/")]
            let shown = try await Program.run(
                common + ["--cert", "client.pem", "--key", "client.key"], in: directory)
            #expect(shown.text.contains("martlet test client"), "\(shown.errors)")
            #expect(try await Program.run(common + ["-E", "none.pem"], in: directory).status == 58)
            #expect(
                try await Program.run(common + ["-E", "ca.pem", "--key", "client.key"], in: directory).status
                    == 58)
            #expect(try await Program.run(common, in: directory).status != 0)
        }
    }

    @Test("--tlsv1.3 and --tls-max choose the version")
    func versions() async throws {
        try await withOrigin(.trusted) { origin, directory in
            let common = ["-sS", "--cacert", "ca.pem", origin.url("/")]
            #expect(
                try await Program.run(common + ["--tls-max", "1.2"], in: directory).text.contains("TLSv1.2"))
            #expect(try await Program.run(common + ["--tlsv1.3"], in: directory).text.contains("TLSv1.3"))
            let cipher = [
                "--tls-max", "1.2", "--ciphers", "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256",
            ]
            let verbose = try await Program.run(common + ["-v"] + cipher, in: directory)
            #expect(verbose.errors.contains("AES128-GCM-SHA256"), "\(verbose.errors)")
            #expect(try await Program.run(common + ["--ciphers", "NONE"], in: directory).status == 59)
        }
        try await withOrigin(OriginTLS.trusted.versions(.tls12 ... .tls12)) { origin, directory in
            let run = try await Program.run(["-sS", "-k", "--tlsv1.3", origin.url("/")], in: directory)
            #expect(run.status == 35, "\(run.errors)")
        }
    }

    @Test("SSLKEYLOGFILE gets the secrets of connections")
    func keyLog() async throws {
        try await withOrigin(.trusted) { origin, directory in
            let file = directory.appending("keys")
            _ = try await Program.run(
                ["-sSk", origin.url("/")], in: directory, environment: ["SSLKEYLOGFILE=\(file)"])
            #expect(OutputFile.contents(of: file).contains("CLIENT_TRAFFIC_SECRET_0"))
        }
    }
}
