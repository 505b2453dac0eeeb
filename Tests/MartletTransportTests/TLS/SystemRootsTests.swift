import MartletTestSupport
import Testing

@testable import MartletTransport

@Suite("The machine's trusted roots")
struct SystemRootsTests {
    private func load(
        file: String, directories: [String] = [], byEnvironment: Bool = false, knownFiles: [String] = [],
        knownDirectories: [String] = []
    ) -> SystemRoots {
        SystemRoots.load(
            file: file, directories: directories, isNamedByEnvironment: byEnvironment, knownFiles: knownFiles,
            knownDirectories: knownDirectories)
    }

    @Test("OpenSSL's own file is used if it exists")
    func openSSLsFile() throws {
        let directory = PEMDirectory()
        defer { directory.remove() }
        let file = directory.write("cert.pem", try Certificates.authority.get().rootPEM)
        let roots = load(file: file, knownFiles: ["/never/looked/at"])
        #expect(roots.store?.count == 1)
        #expect(!roots.searched.contains("/never/looked/at"))
    }

    @Test(
        "Without OpenSSL's paths, as in static builds, the distributions' paths are checked in order"
    )
    func knownFiles() throws {
        let directory = PEMDirectory()
        defer { directory.remove() }
        let broken = directory.write("broken.pem", "no certificate in here")
        let file = directory.write("ca-bundle.crt", try Certificates.authority.get().rootPEM)
        let roots = load(
            file: "/usr/local/ssl/cert.pem", directories: ["/usr/local/ssl/certs"],
            knownFiles: ["/nowhere/a.pem", broken, file])
        #expect(roots.store?.count == 1)
        #expect(
            roots.searched == [
                "/usr/local/ssl/cert.pem", "/usr/local/ssl/certs", "/nowhere/a.pem", broken, file,
            ])
    }

    @Test("If no roots exist, the error lists every searched path")
    func nothing() {
        let roots = load(
            file: "/nowhere/cert.pem", directories: ["/nowhere/certs"], knownFiles: ["/nowhere/a.pem"],
            knownDirectories: ["/nowhere/b"])
        #expect(roots.isEmpty)
        #expect(roots.searched == ["/nowhere/cert.pem", "/nowhere/certs", "/nowhere/a.pem", "/nowhere/b"])
    }

    @Test("If the environment sets the paths, no other paths are trusted")
    func environment() throws {
        let directory = PEMDirectory()
        defer { directory.remove() }
        let file = directory.write("cert.pem", try Certificates.authority.get().rootPEM)
        #expect(load(file: "/nowhere/cert.pem", byEnvironment: true, knownFiles: [file]).isEmpty)
    }

    @Test("A directory is used only if it has files named after hashes")
    func hashedPEMDirectory() throws {
        let directory = PEMDirectory()
        defer { directory.remove() }
        let pem = try Certificates.authority.get().rootPEM
        _ = directory.write("root.pem", pem)
        _ = directory.write("0123abcg.0", pem)
        #expect(!SystemRoots.isHashed(directory.path))
        _ = directory.write("0123abcd.0", pem)
        #expect(SystemRoots.isHashed(directory.path))
    }

    @Test("System roots and additional roots are trusted together")
    func together() async throws {
        let directory = PEMDirectory()
        defer { directory.remove() }
        let stranger = try CertificateAuthority(commonName: "Stranger")
        let file = directory.write("cert.pem", stranger.rootPEM)
        let settings = TLSSettings(trust: .system.adding(.text(try Certificates.authority.get().rootPEM)))
        let client = try TLSContext(client: settings) { load(file: file) }
        for issued in [try stranger.issue(.loopback), try Certificates.authority.get().issue(.loopback)] {
            let server = try TLSContext(server: TLSServerSettings(identity: issued.identity))
            let outcome = await (try TLSPair()).handshake(client: client, server: server)
            #expect(throws: Never.self) { try outcome.client.get() }
        }
    }

    @Test("A changed file of roots is read again")
    func changed() throws {
        let directory = PEMDirectory()
        defer { directory.remove() }
        let pem = try Certificates.authority.get().rootPEM
        let file = directory.write("cert.pem", pem)
        #expect(load(file: file).store?.count == 1)
        _ = directory.write("cert.pem", pem + (try CertificateAuthority(commonName: "Another").rootPEM))
        #expect(load(file: file).store?.count == 2)
    }
}
