import FoundationEssentials
import Glibc
import Martlet
import MartletTesting
import Testing

/// The process inspects its own writable directories and descriptors instead of being observed from outside.
@Suite("Sessions that store nothing")
struct EphemeralTests {
    @Test(
        "An ephemeral session writes nothing to disk: over TLS, with cookies, credentials, uploads and streams"
    )
    func nothingOnDisk() async {
        await #expect(processExitsWith: .success) {
            let directory = try TemporaryDirectory()
            for name in [
                "HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
            ] {
                unsafe setenv(name, directory.path, 1)
            }
            unsafe chdir(directory.path)
            try await EphemeralTests.use(.ephemeral)
            guard try directory.contents().isEmpty else { exit(3) }
            guard try EphemeralTests.filesOpenForWriting().isEmpty else { exit(4) }
        }
    }

    /// Uses the session like a typical program.
    static func use(_ given: SessionConfiguration) async throws {
        try await TestOrigin.withOrigin(.tls()) { request in
            for try await _ in request.body {}
            guard request.path != "/secret" || request.headers["Authorization"] != nil else {
                return OriginResponse(401, headers: ["WWW-Authenticate": "Basic realm=\"x\""])
            }
            return OriginResponse(
                200, headers: ["Set-Cookie": "a=b; Max-Age=1000", "Cache-Control": "max-age=1000"],
                body: .pattern(2_000_000))
        } run: { origin async throws in
            var configuration = given
            configuration.timeouts = .patient()
            configuration.tls.trust = .only(.text(origin.authorityPEM ?? ""))
            configuration.cookies = CookieJar()
            configuration.authentication.credentials = .basic(user: "user", password: "pass")
            let session = HTTPSession(configuration: configuration)
            for path in ["/", "/", "/secret"] {
                guard try await session.get(origin.url(path)).statusCode == 200 else { exit(5) }
            }
            _ = try await session.upload(
                .pattern(1_000_000), to: HTTPRequest(method: .put, url: origin.url()))
            _ = try await session.stream(HTTPRequest(method: .get, url: origin.url())) { _, body in
                try await body.tee(to: [DigestSink(.sha256)])
            }
            await session.finishAndInvalidate()
        }
    }

    /// Returns the regular files that this process has open for writing, except its standard streams.
    static func filesOpenForWriting() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter { name in
            guard let number = Int32(name), number > 2 else { return false }
            var status = stat()
            guard unsafe fstat(number, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
            return fcntl(number, F_GETFL) & O_ACCMODE != O_RDONLY
        }
    }

    @Test("A default session resumes TLS, an ephemeral one does not, and each can be changed")
    func configurations() {
        #expect(SessionConfiguration.default.tls.usesSessionTickets)
        #expect(!SessionConfiguration.ephemeral.tls.usesSessionTickets)
        #expect(SessionConfiguration.ephemeral.cookies == nil)
        #expect(SessionConfiguration.ephemeral.tls.keyLogFile == nil)
        let session = HTTPSession(configuration: .default)
        let adjusted = session.with { $0.timeouts.total = .seconds(2) }
        #expect(adjusted.configuration.timeouts.total == .seconds(2))
        #expect(session.configuration.timeouts.total == nil)
    }

    @Test("A default or ephemeral session stores no response to a request with credentials")
    func noAnswerKept() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse(200, headers: ["Cache-Control": "max-age=1000"], body: .text("x"))
        } run: { origin async throws in
            for given in [SessionConfiguration.default, .ephemeral] {
                var configuration = given
                configuration.timeouts = .patient()
                let session = HTTPSession(configuration: configuration)
                var request = try HTTPRequest(.get, origin)
                request.headerFields[.authorization] = "Basic eDp5"
                for _ in 1...2 { #expect(try await session.send(request).source == .network) }
            }
            #expect(origin.requests.count == 4)
        }
    }
}
