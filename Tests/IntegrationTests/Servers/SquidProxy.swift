import Foundation

/// Squid, the caching proxy, with its cache off: open, with Basic, with Digest, and over TLS.
///
/// The credentials are `me` with the password `hunter2`.
final class SquidProxy: CommonServer {
    let directory: TemporaryDirectory
    let child: ChildProcess
    /// The authority and certificate of the listener over TLS.
    let certificates: Certificates
    /// The port without authentication.
    let openPort: UInt16
    /// The port that requires Basic.
    let basicPort: UInt16
    /// The port that requires Digest.
    let digestPort: UInt16
    /// The port for TLS as `localhost`, without authentication.
    let tlsPort: UInt16

    private init(
        directory: TemporaryDirectory, certificates: Certificates, child: ChildProcess, ports: [UInt16]
    ) {
        self.directory = directory
        self.child = child
        self.certificates = certificates
        openPort = ports[0]
        basicPort = ports[1]
        digestPort = ports[2]
        tlsPort = ports[3]
    }

    static let shared = SharedServer { try await start() }

    /// Starts Squid. It listens on all its ports when this returns; the caller has to `stop()` it.
    static func start() async throws -> SquidProxy {
        let directory = try TemporaryDirectory()
        let certificates = try await Certificates.make(in: directory)
        // When started by root it runs as its own user, which writes the logs.
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: directory.path)
        // me:hunter2 in Apache's MD5 format, and as the HA1 of the realm (RFC 7616 §3.4.2).
        try directory.write("me:$apr1$abc$bzgR0SUDJmwHi4ZbcgeM61\n", to: "basic.txt")
        try directory.write("me:nest:\(digestHash)\n", to: "digest.txt")
        let (child, ports) = try await startListening(program: "squid", portCount: 4, in: directory) {
            ports in
            let configuration = try directory.write(
                configuration(directory, certificates, ports), to: "squid.conf")
            // Its shared memory is named after the service: two instances must not share it.
            return ["-N", "-n", "nest\(ports[0])", "-f", configuration]
        }
        return SquidProxy(directory: directory, certificates: certificates, child: child, ports: ports)
    }

    /// The MD5 hash of `me:nest:hunter2`.
    private static let digestHash = "a18c45f7a9d326c613cb9eb6bc43542d"

    /// The program's output, then its logs.
    var log: String {
        child.output + OutputFile.contents(of: directory.appending("cache.log")) + accessLog
    }

    /// The access log, with a line for each request.
    var accessLog: String {
        OutputFile.contents(of: directory.appending("access.log"))
    }

    private static func configuration(
        _ directory: TemporaryDirectory, _ certificates: Certificates, _ ports: [UInt16]
    ) -> String {
        let path = directory.path
        return """
            http_port 127.0.0.1:\(ports[0])
            http_port 127.0.0.1:\(ports[1])
            http_port 127.0.0.1:\(ports[2])
            https_port 127.0.0.1:\(ports[3]) tls-cert=\(certificates.server.certificate) tls-key=\(certificates.server.key)
            pid_filename none
            cache_log \(path)/cache.log
            access_log stdio:\(path)/access.log
            coredump_dir \(path)
            netdb_filename none
            pinger_enable off
            cache deny all
            cache_mem 1 MB
            shutdown_lifetime 0 seconds
            connect_timeout 600 seconds
            client_lifetime 1 day
            client_idle_pconn_timeout 600 seconds
            server_idle_pconn_timeout 600 seconds
            visible_hostname nest
            auth_param basic program /usr/lib/squid/basic_ncsa_auth \(path)/basic.txt
            auth_param basic realm nest
            auth_param basic children 1
            auth_param digest program /usr/lib/squid/digest_file_auth -c \(path)/digest.txt
            auth_param digest realm nest
            auth_param digest children 1
            acl basic_port localport \(ports[1])
            acl digest_port localport \(ports[2])
            acl known proxy_auth REQUIRED
            auth_schemes basic basic_port
            auth_schemes digest digest_port
            http_access deny basic_port !known
            http_access deny digest_port !known
            http_access allow all

            """
    }
}
