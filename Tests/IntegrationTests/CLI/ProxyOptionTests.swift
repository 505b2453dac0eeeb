import Martlet
import MartletTesting
import Testing

@Suite("Proxy options of get")
struct ProxyOptionTests {
    @Test("-x sends a plain request to the proxy, and -U sends it credentials")
    func forwarding() async throws {
        try await TestOrigin.withOrigin(.plain, handler: .fixed(.text("x"))) { proxy in
            let run = try await Program.run(
                "-sS", "-x", "127.0.0.1:\(proxy.port)", "-U", "me:hunter2", "http://a.test/p")
            #expect(run.status == 0 && run.text == "x", "\(run.errors)")
            #expect(proxy.requests.map(\.target) == ["http://a.test/p"])
            #expect(
                proxy.requests[0].headers.values(of: "Proxy-Authorization") == ["Basic bWU6aHVudGVyMg=="])
        }
    }

    @Test("Environment variables name proxies, except HTTP_PROXY in capitals; an empty -x disables them")
    func environment() async throws {
        try await TestOrigin.withOrigin(.plain, handler: .fixed(.text("x"))) { origin in
            let variable = "http_proxy=http://127.0.0.1:\(origin.port)"
            let named = try await Program.run(["-sS", "http://a.test/1"], environment: [variable])
            #expect(named.status == 0)
            let url = origin.url("/2")
            #expect(
                try await Program.run(["-sS", url], environment: ["HTTP_PROXY=http://127.0.0.1:1"]).status
                    == 0)
            let dead = "http_proxy=http://127.0.0.1:1"
            for arguments in [["-x", "", url], ["--noproxy", "127.0.0.1", url], ["--noproxy", "*", url]] {
                #expect(try await Program.run(["-sS"] + arguments, environment: [dead]).status == 0)
            }
            #expect(
                try await Program.run(["-sS", url], environment: [dead, "no_proxy=x.test, 127.0.0.0/8"])
                    .status
                    == 0)
            #expect(try await Program.run(["-sS", url], environment: [dead]).status == 7)
            // --noproxy overrides no_proxy.
            #expect(
                try await Program.run(
                    ["-sS", "--noproxy", "x.test", url], environment: [dead, "no_proxy=*"]
                ).status == 7)
            #expect(origin.requests.first?.target == "http://a.test/1")
        }
    }

    // Regression: both options used to apply only to a proxy from -x.
    @Test("--proxy-cacert and --proxy-insecure also apply to a proxy from the environment")
    func environmentOverTLS() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await TestOrigin.withOrigin(.tls(.trusted), handler: .fixed(.text("x"))) { proxy in
            try directory.write(proxy.authorityPEM ?? "", to: "ca.pem")
            let variable = "http_proxy=https://localhost:\(proxy.port)"
            for (options, isGood) in [
                ([], false), (["--proxy-insecure"], true), (["--proxy-cacert", "ca.pem"], true),
            ] as [([String], Bool)] {
                let run = try await Program.run(
                    ["-sS"] + options + ["http://a.test/p"], in: directory, environment: [variable])
                #expect((run.status == 0) == isGood, "\(options): \(run.errors)")
            }
        }
    }

    @Test("Tunnels and SOCKS lead to real servers", arguments: ["-p", "--socks5", "--socks5-hostname"])
    func tunnels(_ option: String) async throws {
        try await TestOrigin.withOrigin(.plain, handler: .fixed(.text("x"))) { origin in
            if option == "-p" {
                try await SquidProxy.withServer { squid in
                    let run = try await Program.run("-sSp", "-x", "127.0.0.1:\(squid.openPort)", origin.url())
                    #expect(run.status == 0 && run.text == "x", "\(run.errors)")
                }
            } else {
                try await MicroSocks.withServer { socks in
                    let run = try await Program.run("-sS", option, "127.0.0.1:\(socks.port)", origin.url())
                    #expect(run.status == 0 && run.text == "x", "\(run.errors)")
                    let rejected = try await Program.run(
                        "-sS", option, "127.0.0.1:\(socks.port)", "http://127.0.0.1:1/")
                    #expect(rejected.status == 97)
                }
            }
            #expect(origin.requests.map(\.target) == ["/"])
        }
    }

    @Test(
        "--proxy-digest never sends Squid the password, and --proxy-anyauth does so only if Basic is the only scheme"
    )
    func schemes() async throws {
        try await TestOrigin.withOrigin(.plain, handler: .fixed(.text("x"))) { origin in
            try await SquidProxy.withServer { squid in
                let places: [(option: String, port: UInt16, status: String)] = [
                    ("--proxy-digest", squid.digestPort, "200"), ("--proxy-anyauth", squid.digestPort, "200"),
                    ("--proxy-digest", squid.basicPort, "407"), ("--proxy-anyauth", squid.basicPort, "200"),
                ]
                for (option, port, status) in places {
                    for credentials in [
                        ["-U", "me:hunter2", "-x", "127.0.0.1:\(port)"],
                        ["-x", "me:hunter2@127.0.0.1:\(port)"],
                    ] {
                        let arguments =
                            ["-q", "-sS", option, "-o", "/dev/null", "-w", "%{http_code}"] + credentials
                            + [origin.url()]
                        let ours = try await Program.run(arguments)
                        #expect(ours.status == 0 && ours.text == status, "\(arguments): \(ours.errors)")
                        let theirs = try await Program.run(
                            "curl", ["-q", "--noproxy", ""] + arguments.dropFirst(), input: [], in: nil)
                        #expect(theirs.text == status)
                    }
                }
                let tunnel = [
                    "-sSp", "-U", "me:hunter2", "--proxy-digest", "-x", "127.0.0.1:\(squid.digestPort)",
                ]
                #expect(try await Program.run(tunnel + [origin.url()]).text == "x")
            }
        }
    }

    @Test("The first request of --proxy-digest and --proxy-anyauth has no credentials, however the proxy was set")
    func nothingUnasked() async throws {
        let rejection = OriginHandler { _ in
            .text("no", status: 407).with { $0.headers.append("Proxy-Authenticate", "Basic realm=\"p\"") }
        }
        try await TestOrigin.withOrigin(.plain, handler: rejection) { proxy in
            let variable = "http_proxy=http://me:hunter2@127.0.0.1:\(proxy.port)"
            for (options, expected) in [
                (["--proxy-digest"], [[]]), (["--proxy-digest", "--proxy-basic"], [[]]),
                (["--proxy-anyauth", "--proxy-digest"], [[], ["Basic bWU6aHVudGVyMg=="]]),
                (["--proxy-basic"], [["Basic bWU6aHVudGVyMg=="]]),
            ] as [([String], [[String]])] {
                let before = proxy.requests.count
                let run = try await Program.run(
                    ["-sS", "-w", "%{http_code}"] + options + ["http://a.test/"], environment: [variable])
                #expect(run.text == "no407", "\(run.errors)")
                let sent = proxy.requests.dropFirst(before).map {
                    $0.headers.values(of: "Proxy-Authorization")
                }
                #expect(sent == expected, "\(options)")
            }
        }
    }

    @Test("A rejected certificate of the origin exits with 60 and a pin with 90, also through a TLS proxy")
    func rejectionsAfterTLS() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await TestOrigin.withOrigin(.tls(), handler: .fixed(.text("x"))) { origin in
            try await SquidProxy.withServer { squid in
                let authority = try directory.write(origin.authorityPEM ?? "", to: "origin.pem")
                let proxy = [
                    "-x", "https://localhost:\(squid.tlsPort)", "--proxy-cacert",
                    squid.certificates.authority,
                ]
                let pin = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
                for way in [[], proxy] {
                    for (options, code) in [
                        (["--cacert", authority], 0), ([], 60),
                        (["--cacert", authority, "--pinnedpubkey", pin], 90),
                    ] as [([String], Int32)] {
                        let arguments = way + options + [origin.url()]
                        let run = try await Program.run(["-sS"] + arguments)
                        #expect(run.status == code, "\(arguments): \(run.errors)")
                        // curl 7.88 loses the reason after an HTTPS proxy, and exits with 35.
                        guard way.isEmpty else { continue }
                        let curl = try await Curl.run(["--noproxy", ""] + arguments)
                        #expect(curl.exitCode == code, "\(arguments)")
                    }
                }
            }
        }
    }

    @Test("Exit codes are those of curl: 5 for an unknown proxy, 7 for an unreachable one, 56 for a rejection")
    func exitCodes() async throws {
        for (proxy, url, code) in [
            ("http://no-such-host.invalid:1", "http://a.test/", 5), ("ftp://p", "http://a.test/", 5),
            ("p:99999", "http://a.test/", 5), ("127.0.0.1:1", "http://a.test/", 7),
            ("127.0.0.1:1", "https://a.test/", 7),
        ] as [(String, String, Int32)] {
            let run = try await Program.run("-sS", "-x", proxy, url)
            #expect(run.status == code, "\(proxy) \(url): \(run.errors)")
            let curl = try await Curl.run("--noproxy", "", "-x", proxy, url)
            // curl reports an unknown scheme as a failure to connect.
            if !proxy.hasPrefix("ftp") { #expect(curl.exitCode == code) }
        }
        try await SquidProxy.withServer { squid in
            let arguments = ["-x", "me:wrong@127.0.0.1:\(squid.basicPort)", "https://127.0.0.1:1/"]
            let run = try await Program.run(["-sS"] + arguments)
            #expect(run.status == 56, "\(run.errors)")
            #expect(!run.errors.contains("wrong"))
            #expect(try await Curl.run(["--noproxy", ""] + arguments).exitCode == 56)
        }
    }
}
