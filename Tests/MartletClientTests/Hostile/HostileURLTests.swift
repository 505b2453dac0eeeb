import MartletCore
import MartletHosts
import MartletTransport
import Synchronization
import Testing

/// URLs that parsers read in different ways. The session connects to the intended host, or nowhere.
@Suite("Hostile URLs", .timeLimit(.minutes(20)))
struct HostileURLTests {
    /// Records the destinations of a session without connecting.
    private final class Recorder: StreamConnector {
        private let places = Mutex<[String]>([])

        func connect(to destination: Destination) async throws(TransportError) -> any ByteStream {
            places.withLock { $0.append("\(destination.host):\(destination.port)") }
            throw .closed
        }

        var all: [String] { places.withLock { $0 } }
    }

    /// Returns the destinations of a call.
    private func places(_ call: (HTTPSession) async throws -> Void) async -> (
        places: [String], code: HTTPError.Code?
    ) {
        let recorder = Recorder()
        var configuration = SessionConfiguration.patient
        configuration.connector = recorder
        do {
            try await call(HTTPSession(configuration: configuration))
            return (recorder.all, nil)
        } catch {
            return (recorder.all, (error as? HTTPError)?.code)
        }
    }

    @Test(
        "A URL has exactly one destination",
        arguments: [
            ("http://a.example#@b.example/", "a.example:80"),
            ("http://a.example?@b.example/", "a.example:80"),
            ("http://a.example/@b.example/", "a.example:80"),
            ("http://a.example:8080#:80/", "a.example:8080"),
            ("http://A.EXAMPLE/", "a.example:80"),
            ("http://a%2eexample/", "a.example:80"),
            ("http://a。example/", "a.example:80"),
            ("http://0x7f.1/", "127.0.0.1:80"),
            ("http://2130706433/", "127.0.0.1:80"),
            ("http://017700000001/", "127.0.0.1:80"),
            ("http://127.1:0080/", "127.0.0.1:80"),
            ("http://[::FFFF:127.0.0.1]/", "::ffff:7f00:1:80"),
            ("http://a.example:/", "a.example:80"),
            ("https://a.example:65535/", "a.example:65535"),
            ("http://bücher.example/", "xn--bcher-kva.example:80"),
            ("http://user:password@a.example/", "a.example:80"),
            ("http://a.example:80@b.example/", "b.example:80"),
            ("http://a@b@c.example/", "c.example:80"),
        ])
    func onePlace(_ url: String, _ place: String) async {
        let outcome = await places { _ = try await $0.get(url) }
        #expect(outcome.places == [place])
    }

    @Test(
        "An ambiguous URL is rejected without a connection",
        arguments: [
            "http://a.example\\@b.example/", "http:\\\\a.example/", "http://a\t.example/",
            "http://a\n.example/", "\thttp://a.example/",
            "http://a.example/ ", "http://a%2fb.example/", "http://a%00.example/", "http://a%0d%0ab.example/",
            "http://a%40b.example/",
            "http://a b.example/", "http://a.example:80:80/", "http://a.example:0/",
            "http://a.example:65536/",
            "http://a.example:+80/", "http://a.example:8 0/", "http:///a.example/", "http:a.example",
            "http:/a.example",
            "//a.example/", "a.example",
            "http://", "http://[::1", "http://[::1%25eth0]/", "http://[::1]x/", "http://1.2.3.256/",
            "http://1.2.3.4.5/",
            "ftp://a.example/", "file:///etc/passwd", "javascript:alert(1)", "http://<a>/", "http://a|b/",
            "http://a^b/", "http://a%zz/", "",
        ])
    func nowhere(_ url: String) async {
        let outcome = await places { _ = try await $0.get(url) }
        #expect(outcome.places.isEmpty)
        #expect(outcome.code == .invalidURL)
    }

    @Test(
        "A request's path cannot change its host, port or authority",
        arguments: [
            ".evil.example/", ":8080/", "@evil.example/", "evil", "\\@evil.example/", "//", "",
        ])
    func pathIsNoHost(_ path: String) async {
        let outcome = await places { session in
            var request = try HTTPRequest(method: .get, url: "http://a.example/")
            request.path = path
            _ = try await session.send(request)
        }
        #expect(outcome.places.allSatisfy { $0 == "a.example:80" })
        #expect(outcome.places.count == (path == "//" || path.isEmpty ? 1 : 0))
        #expect(outcome.code == (outcome.places.isEmpty ? .invalidURL : .connectionLost))
    }

    @Test(
        "A request's authority cannot contain a path, a query, a fragment or user information",
        arguments: [
            "a.example/b", "a.example?", "a.example#", "a.example/@b.example", "user@a.example",
            "a.example\\b", "",
        ])
    func authorityIsNoPath(_ authority: String) async {
        let outcome = await places { session in
            var request = try HTTPRequest(method: .get, url: "http://a.example/")
            request.authority = authority
            _ = try await session.send(request)
        }
        #expect(outcome.places.isEmpty)
        #expect(outcome.code == .invalidURL)
    }
}
