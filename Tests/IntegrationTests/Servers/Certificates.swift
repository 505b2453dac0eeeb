import Foundation

/// Temporary certificates, made by the `openssl` command: an authority, and the certificates that it has signed.
///
/// All keys are on P-256. All files are PEM files in the given directory.
struct Certificates {
    /// A certificate and its private key.
    struct Identity {
        /// The path of the certificate.
        let certificate: String
        /// The path of the private key, without a pass phrase.
        let key: String
    }

    /// The certificate of the authority, which the client has to trust.
    let authority: String
    /// A valid certificate for `localhost`, `127.0.0.1` and `::1`.
    let server: Identity
    /// A certificate for the same names, expired in 2020.
    let expired: Identity
    /// A valid certificate for a client named "Martlet".
    let client: Identity

    /// The files by their names, made once for all servers.
    private static let made = Task {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let certificates = try await issue(in: directory)
        return Dictionary(
            uniqueKeysWithValues: certificates.paths.map { path in
                (URL(fileURLWithPath: path).lastPathComponent, OutputFile.contents(of: path))
            })
    }

    /// Writes all of them to a directory. All directories get the same files.
    ///
    /// - Throws: `ServerFailure` with the output of `openssl`.
    static func make(in directory: TemporaryDirectory) async throws -> Certificates {
        for (name, text) in try await made.value { try directory.write(text, to: name) }
        func identity(_ name: String) -> Identity {
            Identity(
                certificate: directory.appending("\(name).pem"), key: directory.appending("\(name).key"))
        }
        return Certificates(
            authority: directory.appending("ca.pem"), server: identity("server"),
            expired: identity("expired"), client: identity("client"))
    }

    private var paths: [String] {
        [authority] + [server, expired, client].flatMap { [$0.certificate, $0.key] }
    }

    private static func issue(in directory: TemporaryDirectory) async throws -> Certificates {
        let configuration = try directory.write(settings(directory.path), to: "openssl.cnf")
        try directory.write("", to: "issued")
        try directory.write("1000\n", to: "serial")

        func key(_ name: String) -> Identity {
            Identity(
                certificate: directory.appending("\(name).pem"), key: directory.appending("\(name).key"))
        }
        func request(_ identity: Identity, name: String, _ more: [String]) async throws {
            let common = [
                "req", "-config", configuration, "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                "-noenc",
                "-keyout", identity.key, "-out", identity.certificate, "-subj", "/CN=\(name)",
            ]
            try await Command.succeed("openssl", common + more)
        }

        let authority = key("ca")
        try await request(
            authority, name: "Martlet test authority", ["-x509", "-days", "2", "-extensions", "authority"])
        let signed = [
            "-x509", "-days", "2", "-CA", authority.certificate, "-CAkey", authority.key, "-extensions",
        ]
        let server = key("server")
        try await request(server, name: "localhost", signed + ["server"])
        let client = key("client")
        try await request(client, name: "Martlet", signed + ["client"])

        // Only `openssl ca` of OpenSSL 3.0 can backdate a certificate.
        let expired = key("expired")
        try await request(expired, name: "localhost", [])
        try await Command.succeed(
            "openssl",
            [
                "ca", "-config", configuration, "-batch", "-notext", "-extensions", "server",
                "-startdate", "20200101000000Z", "-enddate", "20200201000000Z",
                "-in", expired.certificate, "-out", expired.certificate,
            ])
        return Certificates(
            authority: authority.certificate, server: server, expired: expired, client: client)
    }

    private static func settings(_ directory: String) -> String {
        """
        [req]
        distinguished_name = name
        [name]
        [authority]
        basicConstraints = critical, CA:TRUE
        keyUsage = critical, keyCertSign, cRLSign
        subjectKeyIdentifier = hash
        [server]
        basicConstraints = critical, CA:FALSE
        keyUsage = critical, digitalSignature
        extendedKeyUsage = serverAuth
        subjectKeyIdentifier = hash
        authorityKeyIdentifier = keyid
        subjectAltName = DNS:localhost, IP:127.0.0.1, IP:::1
        [client]
        basicConstraints = critical, CA:FALSE
        keyUsage = critical, digitalSignature
        extendedKeyUsage = clientAuth
        subjectKeyIdentifier = hash
        authorityKeyIdentifier = keyid
        [ca]
        default_ca = issuing
        [issuing]
        database = \(directory)/issued
        serial = \(directory)/serial
        new_certs_dir = \(directory)
        certificate = \(directory)/ca.pem
        private_key = \(directory)/ca.key
        default_md = sha256
        policy = any
        [any]
        commonName = supplied

        """
    }
}
