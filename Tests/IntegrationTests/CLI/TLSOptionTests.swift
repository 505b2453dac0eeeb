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
        "An untrusted certificate exits with 60 without --cacert, SSL_CERT_FILE or -k")
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
            try directory.write("nothing", to: "empty.pem")
            #expect(try await Program.run(["-sS", "--cacert", "empty.pem", url], in: directory).status == 77)
            #expect(try await Program.run(["-sS", "--capath", ".", url], in: directory).status == 77)
        }
    }

    @Test(
        "An invalid certificate exits with 60 even if its authority is trusted",
        arguments: [OriginTLS.wrongName, .expired, .notYetValid, .unknownAuthority, .selfSigned])
    func wrongCertificate(_ tls: OriginTLS) async throws {
        try await withOrigin(tls) { origin, directory in
            let run = try await Program.run(["-sS", "--cacert", "ca.pem", origin.url("/")], in: directory)
            #expect(run.status == 60, "\(run.errors)")
            #expect(origin.requests.isEmpty)
            #expect(try await Program.run(["-sSk", origin.url("/")], in: directory).status == 0)
        }
    }

    // Regression: the value used to be 0 whenever -k accepted the chain. With -k curl loads no authority, even from
    // --cacert.
    @Test(
        "%{ssl_verify_result} is the reason of the rejection, also if -k ignores it",
        arguments: [
            (OriginTLS.trusted, 20, 0), (.expired, 20, 10), (.notYetValid, 20, 9), (.wrongName, 20, 0),
            (.unknownAuthority, 20, 20), (.selfSigned, 18, 18),
        ])
    func verifyResult(_ tls: OriginTLS, unknown: Int, known: Int) async throws {
        try await withOrigin(tls) { origin, directory in
            let told = [
                "-q", "-s", "-o", "/dev/null", "-w", "%{exitcode} %{ssl_verify_result}", origin.url("/"),
            ]
            let accepted = try await Program.run(["-k"] + told, in: directory)
            #expect(accepted.text == "0 \(unknown)", "\(accepted.errors)")
            let compared = try await Program.run(["-k", "--cacert", "ca.pem"] + told, in: directory)
            #expect(compared.text == "0 \(known)", "\(compared.errors)")
            let rejected = try await Program.run(told, in: directory)
            #expect(rejected.text == "60 \(unknown)", "\(rejected.errors)")
        }
    }

    @Test("--cert and --key send a client certificate; unreadable files exit with 58")
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

    @Test("--tlsv1.3 and --tls-max set the version")
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

    // Regression: every request over TLS used to fail.
    @Test("An SSLKEYLOGFILE that cannot be written only prints a warning, and none with -s")
    func unwritableKeyLog() async throws {
        try await withOrigin(.trusted) { origin, directory in
            let variable = "SSLKEYLOGFILE=\(directory.appending("none/keys"))"
            let told = try await Program.run(["-k", origin.url("/")], in: directory, environment: [variable])
            #expect(told.status == 0 && told.errors.contains("warning: SSLKEYLOGFILE"), "\(told.errors)")
            let silent = try await Program.run(
                ["-sSk", origin.url("/")], in: directory, environment: [variable])
            #expect(silent.status == 0 && silent.errors.isEmpty, "\(silent.errors)")
            for command in ["get", "download"] {
                let json = try await Program.run(
                    [command, "--progress", "json", "-k", "-o", command, origin.url("/")], in: directory,
                    environment: [variable])
                let events = try DownloadScene.objects(json.errors)
                #expect(json.status == 0 && events.first?["event"] as? String == "warning", "\(json.errors)")
            }
        }
    }

    @Test("A PKCS#12 file provides the client certificate; without its pass phrase the exit code is 58")
    func pkcs12() async throws {
        try await withOrigin(.demandsClientCertificate) { origin, directory in
            _ = try await Command.succeed(
                "openssl",
                [
                    "pkcs12", "-export", "-in", directory.appending("client.pem"), "-inkey",
                    directory.appending("client.key"), "-out", directory.appending("client.p12"), "-passout",
                    "pass:correct",
                ])
            let common = ["-sS", "--cacert", "ca.pem", "--cert-type", "P12", origin.url("/")]
            for arguments in [
                ["--cert", "client.p12:correct"], ["-E", "client.p12", "--pass", "correct"],
            ] {
                let run = try await Program.run(common + arguments, in: directory)
                #expect(run.text.contains("martlet test client"), "\(run.errors)")
            }
            for arguments in [
                ["-E", "client.p12"], ["-E", "client.p12:battery"], ["-E", "client.pem"], ["-E", "none.p12"],
            ] {
                let run = try await Program.run(common + arguments, in: directory)
                #expect(run.status == 58, "\(run.errors)")
                #expect(!run.errors.contains("battery"))
            }
        }
    }

    @Test("--pass decrypts a private key, in PEM and in DER")
    func encryptedKey() async throws {
        try await withOrigin(.demandsClientCertificate) { origin, directory in
            for form in ["PEM", "DER"] {
                _ = try await Command.succeed(
                    "openssl",
                    [
                        "pkcs8", "-topk8", "-in", directory.appending("client.key"), "-out",
                        directory.appending("client.\(form)"), "-outform", form, "-v2", "aes-256-cbc",
                        "-passout", "pass:correct",
                    ])
                let common = [
                    "-sS", "--cacert", "ca.pem", "--cert", "client.pem", "--key", "client.\(form)",
                    "--key-type", form, origin.url("/"),
                ]
                let run = try await Program.run(common + ["--pass", "correct"], in: directory)
                #expect(run.text.contains("martlet test client"), "\(form): \(run.errors)")
                for wrong in [[], ["--pass", "battery"]] {
                    #expect(try await Program.run(common + wrong, in: directory).status == 58)
                }
            }
        }
    }

    @Test("--pinnedpubkey behaves as in curl: 0 for the server's key, 90 for any other, also with -k")
    func pins() async throws {
        try await NginxServer.withServer { server in
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let key = directory.appending("server.pub")
            let own = try await Command.succeed(
                "openssl", ["x509", "-in", server.certificates.server.certificate, "-noout", "-pubkey"])
            try directory.write(own, to: "server.pub")
            let pin = try PublicKeyPin(of: .text(own)).description
            let authority = try PublicKeyPin(of: .file(server.certificates.authority)).description
            let other = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
            let url = server.url(server.tlsPort, "/hello.txt", scheme: "https")
            for (value, status) in [
                (pin, Int32(0)), (other, 90), ("\(other);\(pin)", 0), (authority, 90), (key, 0),
                (directory.appending("none"), 90),
            ] {
                for trust in [["--cacert", server.certificates.authority], ["-k"]] {
                    let arguments = ["-sS", "--pinnedpubkey", value] + trust + [url]
                    let run = try await Program.run(arguments)
                    #expect(run.status == status, "\(value): \(run.errors)")
                    let second = try await Command.run("curl", arguments)
                    #expect(second.status == status, "curl: \(value): \(second.output)")
                }
            }
            #expect(try await Program.run(["-sSk", "--pinnedpubkey", "sha256//x", url]).status == 2)
        }
    }

    @Test("--crlfile rejects a revoked certificate with 60, and a file without lists with 82")
    func revocation() async throws {
        try await withOrigin(.trusted) { origin, directory in
            try directory.write("nothing", to: "empty.pem")
            let common = ["-sS", "--cacert", "ca.pem", origin.url("/"), "--crlfile"]
            #expect(try await Program.run(common + ["empty.pem"], in: directory).status == 82)
            #expect(try await Program.run(common + ["none.pem"], in: directory).status == 82)
            // The list of another authority does not cover this certificate.
            _ = try await Command.succeed(
                "openssl",
                [
                    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                    "/CN=other", "-keyout", directory.appending("o.key"), "-out",
                    directory.appending("o.pem"),
                ])
            try directory.write("", to: "index")
            let settings = """
                [ca]
                default_ca = d
                [d]
                database = \(directory.appending("index"))
                default_md = sha256
                default_crl_days = 1
                """
            try directory.write(settings, to: "ca.cnf")
            _ = try await Command.succeed(
                "openssl",
                [
                    "ca", "-config", directory.appending("ca.cnf"), "-gencrl", "-keyfile",
                    directory.appending("o.key"), "-cert", directory.appending("o.pem"), "-out",
                    directory.appending("o.crl"),
                ])
            let run = try await Program.run(common + ["o.crl"], in: directory)
            #expect(run.status == 60, "\(run.errors)")
            #expect(run.errors.contains("revocation"))
            #expect(origin.requests.isEmpty)
        }
    }
}
