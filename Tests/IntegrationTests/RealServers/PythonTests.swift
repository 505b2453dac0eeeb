import Martlet
import Testing

@Suite("CPython's http.server")
struct PythonTests {
    @Test("Files arrive complete", arguments: [PythonServer.Version.http10, .http11])
    func files(_ version: PythonServer.Version) async throws {
        try await PythonServer.withServer(version) { server in
            let session = HTTPSession.plain()
            let whole = try await session.get(server.url(server.port, "/bytes.bin"))
            #expect(whole.response.status == .ok)
            #expect(whole.body == Site.bytes)
            let empty = try await session.get(server.url(server.port, "/empty.txt"))
            #expect(empty.response.status == .ok)
            #expect(empty.body.isEmpty)
            let head = try await session.head(server.url(server.port, "/bytes.bin"))
            #expect(head.response.headerFields[.contentLength] == "1048576")
            #expect(head.body.isEmpty)
        }
    }

    @Test("The listing of a directory names its files", arguments: [PythonServer.Version.http10, .http11])
    func listing(_ version: PythonServer.Version) async throws {
        try await PythonServer.withServer(version) { server in
            let listing = try await HTTPSession.plain().get(server.url(server.port, "/"))
            #expect(listing.response.status == .ok)
            #expect(listing.response.headerFields[.contentType]?.hasPrefix("text/html") == true)
            for name in ["hello.txt", "bytes.bin", "data.json"] { #expect(listing.text.contains(name)) }
        }
    }

    @Test("404 comes with its page", arguments: [PythonServer.Version.http10, .http11])
    func notFound(_ version: PythonServer.Version) async throws {
        try await PythonServer.withServer(version) { server in
            let missing = try await HTTPSession.plain().get(server.url(server.port, "/nothing"))
            #expect(missing.response.status == .notFound)
            #expect(missing.text.contains("File not found"))
        }
    }

    @Test("A range is ignored: 200 and the whole file", arguments: [PythonServer.Version.http10, .http11])
    func noRanges(_ version: PythonServer.Version) async throws {
        try await PythonServer.withServer(version) { server in
            let answer = try await HTTPSession.plain().get(
                server.url(server.port, "/hello.txt"), headers: [.range: "bytes=0-3"])
            #expect(answer.response.status == .ok)
            #expect(answer.text == Site.hello)
        }
    }

    @Test("A condition gets 304 without a body", arguments: [PythonServer.Version.http10, .http11])
    func notModified(_ version: PythonServer.Version) async throws {
        try await PythonServer.withServer(version) { server in
            let same = try await HTTPSession.plain().get(
                server.url(server.port, "/hello.txt"),
                headers: [.ifModifiedSince: "Tue, 14 Nov 2023 22:13:20 GMT"])
            #expect(same.response.status == .notModified)
            #expect(same.body.isEmpty)
        }
    }

    @Test("HTTP/1.0 closes the connection after each response, and each request gets a new one")
    func http10Closes() async throws {
        try await PythonServer.withServer(.http10) { server in
            let session = HTTPSession.plain()
            for _ in 1...5 {
                let answer = try await session.get(server.url(server.port, "/hello.txt"))
                #expect(answer.text == Site.hello)
                #expect(!answer.metrics.isConnectionReused)
                #expect(answer.metrics.attempts == 1)
            }
            #expect(session.poolStatus.opened == 5)
            #expect(session.poolStatus.idle == 0)
        }
    }

    @Test("HTTP/1.1 reuses the connection, and an error page closes it as announced")
    func http11KeepsConnection() async throws {
        try await PythonServer.withServer(.http11) { server in
            let session = HTTPSession.plain()
            for number in 1...5 {
                let answer = try await session.get(server.url(server.port, "/hello.txt"))
                #expect(answer.metrics.isConnectionReused == (number > 1))
            }
            let missing = try await session.get(server.url(server.port, "/nothing"))
            #expect(missing.response.headerFields[.connection] == "close")
            let next = try await session.get(server.url(server.port, "/hello.txt"))
            #expect(!next.metrics.isConnectionReused)
            #expect(session.poolStatus.opened == 2)
        }
    }

    @Test(
        "A method that it does not know gets a response, though its body is never read",
        arguments: [PythonServer.Version.http10, .http11])
    func unknownMethod(_ version: PythonServer.Version) async throws {
        try await PythonServer.withServer(version) { server in
            let rejected = try await HTTPSession.plain().post(
                server.url(server.port, "/hello.txt"), body: .text("nobody reads this"))
            #expect(rejected.response.status == .notImplemented)
            #expect(rejected.text.contains("Unsupported method"))
        }
    }

    @Test("Concurrent requests all get a response", arguments: [PythonServer.Version.http10, .http11])
    func manyAtOnce(_ version: PythonServer.Version) async throws {
        try await PythonServer.withServer(version) { server in
            // Its accept queue holds five connections.
            let session = HTTPSession.plain { $0.pool.connectionsPerHost = 4 }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 1...40 {
                    group.addTask {
                        let answer = try await session.get(server.url(server.port, "/lines.txt"))
                        #expect(answer.text == Site.lines)
                    }
                }
                try await group.waitForAll()
            }
            #expect(session.poolStatus.leased == 0)
        }
    }
}
