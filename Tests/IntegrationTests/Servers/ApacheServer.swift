import Foundation
import Glibc

/// Apache httpd, with the event module and few others.
///
/// All listeners serve the files of `Site` with ranges and strong ETags, the same under `/deflate/` compressed with
/// gzip for clients that accept it (chunked when large), and `/moved`, a 302 to `/hello.txt`. The same files below
/// `/basic/`, `/digest/` and `/once/` are for `me` with the password `hunter2`: by Basic, by Digest, and by Digest with
/// a new nonce for each request. `/digest/echo` and `/basic/echo` echo the request body.
final class ApacheServer: CommonServer {
    let directory: TemporaryDirectory
    let child: ChildProcess
    /// The certificates of the server and its clients.
    let certificates: Certificates
    /// The port for HTTP without TLS.
    let plainPort: UInt16
    /// The port for HTTP without TLS, three requests per connection.
    let limitedPort: UInt16
    /// The port for TLS 1.2 and 1.3.
    let tlsPort: UInt16

    private init(
        directory: TemporaryDirectory, certificates: Certificates, child: ChildProcess, ports: [UInt16]
    ) {
        self.directory = directory
        self.child = child
        self.certificates = certificates
        plainPort = ports[0]
        limitedPort = ports[1]
        tlsPort = ports[2]
    }

    static let shared = SharedServer { try await start() }

    /// Starts Apache. It listens on all its ports when this returns; the caller has to `stop()` it.
    static func start() async throws -> ApacheServer {
        let directory = try TemporaryDirectory()
        let certificates = try await Certificates.make(in: directory)
        let site = try Site.write(in: directory)
        try directory.write("text/plain txt\napplication/json json\n", to: "mime.types")
        // me:hunter2 in Apache's MD5 format, and as the HA1 of the realm (RFC 7616 §3.4.2).
        try directory.write("me:$apr1$abc$bzgR0SUDJmwHi4ZbcgeM61\n", to: "basic.txt")
        try directory.write("me:nest:a18c45f7a9d326c613cb9eb6bc43542d\n", to: "digest.txt")
        let (child, ports) = try await startListening(program: "apache2", portCount: 3, in: directory) {
            ports in
            let configuration = try directory.write(
                configuration(directory, site: site, certificates, ports), to: "apache.conf")
            return ["-X", "-d", directory.path, "-f", configuration]
        }
        return ApacheServer(directory: directory, certificates: certificates, child: child, ports: ports)
    }

    /// The program's output, then its error log.
    var log: String {
        child.output + OutputFile.contents(of: directory.appending("error.log"))
    }

    private static func configuration(
        _ directory: TemporaryDirectory, site: String, _ certificates: Certificates, _ ports: [UInt16]
    ) -> String {
        let modules = [
            "authz_core", "mime", "alias", "filter", "deflate", "ssl", "authn_core", "authn_file", "authz_user",
            "auth_basic", "auth_digest", "reflector",
        ]
        return preamble(directory, modules: modules) + """

            Listen 127.0.0.1:\(ports[0])
            Listen 127.0.0.1:\(ports[1])
            Listen 127.0.0.1:\(ports[2])
            # With fewer, it closes kept connections as soon as many tests use it.
            ThreadsPerChild 64
            MaxRequestWorkers 64
            AsyncRequestWorkerFactor 16
            KeepAlive On
            # No test waits for its clocks, and a machine that stands still must not make them end.
            KeepAliveTimeout 600
            Timeout 600
            MaxKeepAliveRequests 0
            TypesConfig \(directory.path)/mime.types
            DocumentRoot \(site)
            FileETag MTime Size
            Alias /deflate/ \(site)/
            Redirect 302 /moved /hello.txt
            <Location /deflate/>
                SetOutputFilter DEFLATE
            </Location>
            \(doors(directory, site: site))
            <VirtualHost 127.0.0.1:\(ports[1])>
                MaxKeepAliveRequests 3
            </VirtualHost>
            <VirtualHost 127.0.0.1:\(ports[2])>
                SSLEngine on
                SSLProtocol TLSv1.2 TLSv1.3
                SSLCertificateFile \(certificates.server.certificate)
                SSLCertificateKeyFile \(certificates.server.key)
            </VirtualHost>

            """
    }

    /// The first part of a configuration: the modules, and the files of the process.
    static func preamble(_ directory: TemporaryDirectory, modules: [String]) -> String {
        let lines = (["mpm_event"] + modules).map {
            "LoadModule \($0)_module /usr/lib/apache2/modules/mod_\($0).so"
        }
        // Apache refuses to serve as root.
        let user = getuid() == 0 ? "User nobody\nGroup nogroup" : ""
        return """
            \(lines.joined(separator: "\n"))
            \(user)
            ServerName localhost
            DefaultRuntimeDir \(directory.path)
            PidFile \(directory.path)/apache.pid
            ErrorLog \(directory.path)/error.log
            LogLevel info
            """
    }

    /// The configuration of the locations that require authentication.
    private static func doors(_ directory: TemporaryDirectory, site: String) -> String {
        """
        Alias /basic/ \(site)/
        Alias /digest/ \(site)/
        Alias /once/ \(site)/
        <Location /basic/>
            AuthType Basic
            AuthName nest
            AuthUserFile \(directory.path)/basic.txt
            Require valid-user
        </Location>
        <LocationMatch "^/(digest|once)/">
            AuthType Digest
            AuthName nest
            AuthUserFile \(directory.path)/digest.txt
            Require valid-user
        </LocationMatch>
        <Location /once/>
            AuthDigestNonceLifetime 0
        </Location>
        <LocationMatch "/echo$">
            SetHandler reflector
        </LocationMatch>
        """
    }
}
