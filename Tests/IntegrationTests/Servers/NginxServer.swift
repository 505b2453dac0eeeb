import Foundation

/// nginx, with a listener for every kind of connection and a location for every kind of response.
///
/// All listeners of all kinds serve the same locations:
///
/// | location | response |
/// |---|---|
/// | `/hello.txt` and the rest of `Site` | a file, with ranges and a strong ETag |
/// | `/gzip/…` | the same, compressed for clients that accept it |
/// | `/chunked/…` | the same, through a proxy: no length, chunked |
/// | `/trailers/…` | the same, chunked, with the trailer `X-Checksum: abc123` |
/// | `/slow/…` | the same, at 16 KiB per second |
/// | `/upload/…` | PUT stores, GET returns, DELETE deletes |
/// | `/small/…` | the same, but a body above 1 KiB gets 413 before it is read |
/// | `/private/…` | the files, for `user` with the password `secret`; else 401 Basic |
/// | `/echo` | method, target, Host, `X-Echo` and User-Agent, one per line |
/// | `/connection` | the number of requests on the connection |
/// | `/tls` | protocol, `r` if the session was resumed, the server name from SNI |
/// | `/strict` | the scheme, and `Strict-Transport-Security` |
/// | `/client` | the subject of the client's certificate |
/// | `/moved` `/none` `/gone` `/busy` | 302 to `/hello.txt`, 204, 410, 503 with `Retry-After: 1` |
/// | `/drop` | none: the connection is closed |
/// | `/upgrade?port=…` | that of a server on a port of 127.0.0.1, with a switch of protocols |
final class NginxServer: CommonServer {
    let directory: TemporaryDirectory
    let child: ChildProcess
    /// The certificates of the server and its clients.
    let certificates: Certificates
    /// The port for HTTP without TLS.
    let plainPort: UInt16
    /// The port for HTTP without TLS, three requests per connection, `Keep-Alive: timeout=600`.
    let limitedPort: UInt16
    /// The port for TLS 1.2 and 1.3.
    let tlsPort: UInt16
    /// The port for TLS 1.2 only.
    let tls12Port: UInt16
    /// The port for TLS 1.3 only.
    let tls13Port: UInt16
    /// The port for TLS 1.2 and 1.3 with a client certificate; clients without one get 400.
    let clientCertificatePort: UInt16
    /// The port for TLS with a certificate that expired in 2020.
    let expiredPort: UInt16
    /// The path of the unix domain socket for HTTP without TLS.
    let socketPath: String

    private init(
        directory: TemporaryDirectory, certificates: Certificates, child: ChildProcess, ports: [UInt16]
    ) {
        self.directory = directory
        self.child = child
        self.certificates = certificates
        plainPort = ports[0]
        limitedPort = ports[1]
        tlsPort = ports[2]
        tls12Port = ports[3]
        tls13Port = ports[4]
        clientCertificatePort = ports[5]
        expiredPort = ports[6]
        socketPath = directory.appending("socket")
    }

    static let shared = SharedServer { try await start() }

    /// Starts nginx. It listens on all its ports when this returns; the caller has to `stop()` it.
    static func start() async throws -> NginxServer {
        let directory = try TemporaryDirectory()
        let certificates = try await Certificates.make(in: directory)
        _ = try Site.write(in: directory)
        _ = try directory.makeDirectory("uploads")
        try directory.write("user:{PLAIN}secret\n", to: "passwords")
        let (child, ports) = try await startListening(program: "nginx", portCount: 7, in: directory) {
            ports in
            // A socket of an earlier attempt would prevent the start.
            try? FileManager.default.removeItem(atPath: directory.appending("socket"))
            try directory.write(locations(directory, plainPort: ports[0]), to: "locations.conf")
            let configuration = try directory.write(
                NginxConfiguration.text(directory, http: listeners(directory, certificates, ports)),
                to: "nginx.conf")
            return NginxConfiguration.arguments(directory, configuration)
        }
        return NginxServer(directory: directory, certificates: certificates, child: child, ports: ports)
    }

    /// The program's output, then its error log.
    var log: String { NginxConfiguration.log(self) }

    private static func listeners(
        _ directory: TemporaryDirectory, _ certificates: Certificates, _ ports: [UInt16]
    ) -> String {
        func tls(
            _ port: UInt16, _ protocols: String, _ identity: Certificates.Identity, _ more: String = ""
        ) -> String {
            """
                server {
                    listen 127.0.0.1:\(port) ssl;
                    ssl_protocols \(protocols);
                    ssl_certificate \(identity.certificate);
                    ssl_certificate_key \(identity.key);
                    \(more)
                    include \(directory.path)/locations.conf;
                }
            """
        }
        let both = "TLSv1.2 TLSv1.3"
        let asking = "ssl_verify_client on; ssl_client_certificate \(certificates.authority);"
        return """
                types { text/plain txt; application/json json; }
                default_type application/octet-stream;
                keepalive_requests 1000000;
                ssl_session_cache shared:sessions:1m;
                server {
                    listen 127.0.0.1:\(ports[0]) reuseport backlog=4096;
                    listen unix:\(directory.path)/socket;
                    include \(directory.path)/locations.conf;
                }
                server {
                    listen 127.0.0.1:\(ports[1]);
                    keepalive_requests 3;
                    keepalive_timeout 600 600;
                    include \(directory.path)/locations.conf;
                }
            \(tls(ports[2], both, certificates.server))
            \(tls(ports[3], "TLSv1.2", certificates.server))
            \(tls(ports[4], "TLSv1.3", certificates.server))
            \(tls(ports[5], both, certificates.server, asking))
            \(tls(ports[6], both, certificates.expired))
            """
    }

    private static func locations(_ directory: TemporaryDirectory, plainPort: UInt16) -> String {
        let site = "\(directory.path)/site/"
        return """
            root \(site);
            location /gzip/ { alias \(site); gzip on; gzip_types *; gzip_min_length 1; }
            location /unsized/ { alias \(site); ssi on; ssi_types *; }
            location /chunked/ { proxy_pass http://127.0.0.1:\(plainPort)/unsized/; }
            location /trailers/ { alias \(site); add_trailer X-Checksum abc123; }
            location /slow/ { alias \(site); limit_rate 16k; }
            location /upload/ {
                alias \(directory.path)/uploads/;
                dav_methods PUT DELETE; create_full_put_path on; client_max_body_size 0;
            }
            location /small/ { alias \(directory.path)/uploads/; dav_methods PUT; client_max_body_size 1k; }
            location /private/ { alias \(site); auth_basic "nest"; auth_basic_user_file \(directory.path)/passwords; }
            location = /echo {
                default_type text/plain;
                return 200 "$request_method\\n$request_uri\\n$http_host\\n$http_x_echo\\n$http_user_agent\\n";
            }
            location = /connection { default_type text/plain; return 200 "$connection_requests"; }
            location = /tls { default_type text/plain; return 200 "$ssl_protocol $ssl_session_reused $ssl_server_name"; }
            location = /strict { add_header Strict-Transport-Security max-age=600; return 200 $scheme; }
            location = /client { default_type text/plain; return 200 "$ssl_client_s_dn"; }
            location = /moved { return 302 /hello.txt; }
            location = /none { return 204; }
            location = /gone { return 410; }
            location = /busy { add_header Retry-After 1 always; return 503; }
            location = /drop { return 444; }
            location = /upgrade {
                proxy_pass http://127.0.0.1:$arg_port; proxy_http_version 1.1;
                proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
            }

            """
    }
}
