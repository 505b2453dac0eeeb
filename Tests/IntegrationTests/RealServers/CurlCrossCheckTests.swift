import Martlet
import Testing

@Suite("Responses as Martlet and curl see them")
struct CurlCrossCheckTests {
    private typealias Question = CurlCrossCheck.Question

    /// The requests for every server.
    private let common: [(method: String, path: String, headers: [(name: String, value: String)])] = [
        ("GET", "/hello.txt", []),
        ("GET", "/data.json", []),
        ("GET", "/empty.txt", []),
        ("GET", "/bytes.bin", []),
        ("GET", "/lines.txt", []),
        ("GET", "/nothing", []),
        ("GET", "/hello.txt?query=1&b=%2F", []),
        ("GET", "/%68ello.txt", []),
        ("HEAD", "/bytes.bin", []),
        ("HEAD", "/nothing", []),
        ("GET", "/bytes.bin", [("Range", "bytes=1000-1999")]),
        ("GET", "/bytes.bin", [("Range", "bytes=-1")]),
        ("GET", "/bytes.bin", [("Range", "bytes=9999999-")]),
        ("GET", "/hello.txt", [("If-Modified-Since", "Tue, 14 Nov 2023 22:13:20 GMT")]),
        ("GET", "/hello.txt", [("If-Modified-Since", "Tue, 14 Nov 2000 22:13:20 GMT")]),
        ("DELETE", "/hello.txt", []),
        ("OPTIONS", "/hello.txt", []),
    ]

    private func compare(
        _ base: String, _ more: [(method: String, path: String, headers: [(name: String, value: String)])],
        _ session: HTTPSession = .plain(), _ options: [String] = []
    ) async throws {
        for (method, path, headers) in common + more {
            let question = Question(method: method, url: base + path, headers: headers)
            let curl = try await CurlCrossCheck.curl(question, options)
            let martlet = try await CurlCrossCheck.martlet(question, session)
            #expect(martlet.status == curl.status, "\(question.testDescription)")
            #expect(martlet.fields == curl.fields, "\(question.testDescription)")
            #expect(martlet.body == curl.body, "\(question.testDescription)")
        }
    }

    private let nginxPaths: [(method: String, path: String, headers: [(name: String, value: String)])] = [
        ("GET", "/gzip/lines.txt", [("Accept-Encoding", "gzip")]),
        ("GET", "/gzip/bytes.bin", [("Accept-Encoding", "gzip")]),
        ("GET", "/chunked/lines.txt", []),
        ("GET", "/trailers/hello.txt", []),
        ("HEAD", "/chunked/lines.txt", []),
        ("GET", "/moved", []), ("GET", "/none", []), ("GET", "/gone", []), ("GET", "/busy", []),
        ("GET", "/private/hello.txt", []),
        ("GET", "/private/hello.txt", [("Authorization", "Basic dXNlcjpzZWNyZXQ=")]),
    ]

    @Test("nginx responses are the same for both")
    func nginx() async throws {
        try await NginxServer.withServer { server in
            try await compare(server.url(server.plainPort, ""), nginxPaths)
        }
    }

    @Test("nginx responses over TLS are the same for both")
    func nginxTLS() async throws {
        try await NginxServer.withServer { server in
            try await compare(
                server.url(server.tlsPort, "", scheme: "https"), nginxPaths,
                .trusting(server.certificates), ["--cacert", server.certificates.authority])
        }
    }

    @Test("Apache responses are the same for both")
    func apache() async throws {
        try await ApacheServer.withServer { server in
            try await compare(
                server.url(server.plainPort, ""),
                [
                    ("GET", "/deflate/lines.txt", [("Accept-Encoding", "gzip")]),
                    ("GET", "/deflate/bytes.bin", [("Accept-Encoding", "gzip, deflate")]),
                    ("HEAD", "/deflate/lines.txt", [("Accept-Encoding", "gzip")]),
                    ("GET", "/moved", []),
                    ("GET", "/hello.txt", [("If-Match", "\"other\"")]),
                ])
        }
    }

    @Test("CPython responses are the same for both", arguments: [PythonServer.Version.http10, .http11])
    func python(_ version: PythonServer.Version) async throws {
        try await PythonServer.withServer(version) { server in
            try await compare(server.url(server.port, ""), [("GET", "/", [])])
        }
    }

    @Test("Literal responses of OpenSSL's server are the same for both")
    func openssl() async throws {
        let answers = [
            "chunked": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A:  b \r\n\r\n"
                + "3\r\nabc\r\n0\r\nX-End: yes\r\n\r\n",
            "closed": "HTTP/1.0 203 Half\r\nX-A: b\r\nX-A: c\r\n\r\nuntil the end",
            "odd": "HTTP/1.1 299\r\nx-lower: \u{e9}\r\nContent-Length: 2\r\n\r\nok",
            "hints": "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
                + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            "cookies": "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n",
        ]
        try await OpenSSLServer.withServer(.literal(answers)) { server in
            let session = HTTPSession.trusting(server.certificates)
            for name in answers.keys.sorted() {
                // The server accepts the next connection when the client has closed the last one.
                let question = Question(
                    url: server.url(server.port, "/\(name)", scheme: "https"),
                    headers: [("Connection", "close")])
                let curl = try await CurlCrossCheck.curl(
                    question, ["--cacert", server.certificates.authority])
                let martlet = try await CurlCrossCheck.martlet(question, session)
                #expect(martlet == curl, "\(name)")
            }
        }
    }
}
