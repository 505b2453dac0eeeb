import Glibc

/// `openssl s_server`, the TLS server of OpenSSL, with one connection at a time.
final class OpenSSLServer: RealServer {
    /// The content that the server sends over TLS.
    enum Answers {
        /// A page about the connection, for every target: HTTP/1.0, closed after the page with a `close_notify`.
        case statusPage
        /// These bytes for the target `/NAME`, including the head, then a `close_notify`.
        case literal([String: String])
        /// Nothing by default: the test sends text by `say(_:)`, and ends the connection by `renegotiate()`, `stop()`
        /// (with a `close_notify` if a connection is open) or `child.kill()` (without).
        case spoken
    }

    let directory: TemporaryDirectory
    let child: ChildProcess
    /// The certificates of the server and its clients.
    let certificates: Certificates
    /// The port for HTTP over TLS.
    let port: UInt16
    /// This end of a socket pair whose other end is the server's standard input. Closed by `deinit`.
    private let input: Int32

    private init(
        directory: TemporaryDirectory, certificates: Certificates, child: ChildProcess, port: UInt16,
        input: Int32
    ) {
        self.directory = directory
        self.certificates = certificates
        self.child = child
        self.port = port
        self.input = input
    }

    deinit {
        close(input)
    }

    /// Starts the server and runs `body` with it.
    static func withServer<Value>(
        _ answers: Answers, expired: Bool = false, _ options: [String] = [],
        _ body: (OpenSSLServer) async throws -> Value
    ) async throws -> Value {
        try await start(answers, expired: expired, options).whileRunning(body)
    }

    /// Starts the server. It listens when this returns; the caller has to `stop()` it.
    ///
    /// - Parameters:
    ///   - expired: whether its certificate expired in 2020.
    ///   - options: more of `s_server`'s, such as `-tls1_2`, `-tls1_3` or `-Verify 1`.
    static func start(
        _ answers: Answers, expired: Bool = false, _ options: [String] = []
    ) async throws -> OpenSSLServer {
        let directory = try TemporaryDirectory()
        let certificates = try await Certificates.make(in: directory)
        let identity = expired ? certificates.expired : certificates.server
        let mode: [String]
        switch answers {
        case .statusPage: mode = ["-www"]
        case .literal(let files):
            mode = ["-HTTP"]
            for (name, text) in files { try directory.write(text, to: name) }
        case .spoken: mode = []
        }

        let (ours, theirs) = try socketPair()
        defer { close(theirs) }
        do {
            let (child, ports) = try await startListening(
                program: "openssl", portCount: 1, in: directory, input: theirs
            ) { ports in
                [
                    "s_server", "-accept", "127.0.0.1:\(ports[0])",
                    "-cert", identity.certificate, "-key", identity.key, "-CAfile", certificates.authority,
                ] + mode + options
            }
            return OpenSSLServer(
                directory: directory, certificates: certificates, child: child, port: ports[0], input: ours)
        } catch {
            close(ours)
            throw error
        }
    }

    /// Sends `text` to the client over TLS; only with `Answers.spoken`. It must not begin with one of `s_server`'s
    /// commands: `q Q r R P S k K B`.
    func say(_ text: String) {
        let bytes = [UInt8](text.utf8)
        let noSignal = Int32(MSG_NOSIGNAL)
        _ = unsafe bytes.withUnsafeBytes { unsafe send(input, $0.baseAddress, $0.count, noSignal) }
    }

    /// Requests a renegotiation from the client (only in TLS 1.2); only with `Answers.spoken`.
    func renegotiate() {
        say("r\n")
    }

    private static func socketPair() throws -> (ours: Int32, theirs: Int32) {
        var pair: [Int32] = [-1, -1]
        // Separate packets are needed: `s_server` looks for a command at the start of each read.
        let kind = Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue)
        guard unsafe socketpair(AF_UNIX, kind, 0, &pair) == 0 else {
            throw ServerFailure(program: "openssl s_server", reason: "no socket pair: errno \(errno)")
        }
        return (pair[0], pair[1])
    }
}
