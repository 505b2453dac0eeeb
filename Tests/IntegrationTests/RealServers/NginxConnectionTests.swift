import Foundation
import Martlet
import Testing

@Suite("Connections to nginx")
struct NginxConnectionTests {
    @Test("Sequential requests share one connection")
    func keepAlive() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.plain()
            for number in 1...10 {
                let answer = try await session.get(server.url(server.plainPort, "/connection"))
                #expect(answer.text == "\(number)")
                #expect(answer.metrics.isConnectionReused == (number > 1))
            }
            #expect(session.poolStatus.opened == 1)
        }
    }

    @Test("A server that closes its connections after three requests gets a new one for the fourth")
    func limitedKeepAlive() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.plain()
            var numbers: [String] = []
            for _ in 1...8 {
                let answer = try await session.get(server.url(server.limitedPort, "/connection"))
                numbers.append(answer.text)
                #expect(answer.metrics.attempts == 1)
            }
            #expect(numbers == ["1", "2", "3", "1", "2", "3", "1", "2"])
            #expect(session.poolStatus.opened == 3)
        }
    }

    @Test("A hundred concurrent responses are correct, over at most sixteen connections")
    func manyAtOnce() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.plain()
            let name = try #require(HTTPField.Name("X-Echo"))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 1...100 {
                    group.addTask {
                        let answer = try await session.get(
                            server.url(server.plainPort, "/echo?\(number)"),
                            headers: [.init(name): "\(number)"])
                        let lines = answer.text.split(separator: "\n")
                        #expect(lines.count == 5 && lines[1] == "/echo?\(number)" && lines[3] == "\(number)")
                    }
                }
                try await group.waitForAll()
            }
            let status = session.poolStatus
            #expect(status.opened <= 16)
            #expect(status.opened + status.reused == 100)
            #expect(status.leased == 0)
            #expect(status.waiting == 0)
        }
    }

    @Test("Large concurrent bodies do not mix, however their connections end")
    func manyLargeAtOnce() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.plain()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<24 {
                    let port = number % 2 == 0 ? server.plainPort : server.limitedPort
                    let path = number % 3 == 0 ? "/chunked/bytes.bin" : "/bytes.bin"
                    group.addTask {
                        let answer = try await session.get(server.url(port, path))
                        #expect(answer.body == Site.bytes)
                    }
                }
                try await group.waitForAll()
            }
            #expect(session.poolStatus.leased == 0)
        }
    }

    @Test("A unix domain socket leads to the same files")
    func unixSocket() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.plain { $0.unixSocketPath = server.socketPath }
            let answer = try await session.get("http://nest/bytes.bin")
            #expect(answer.body == Site.bytes)
            let echo = try await session.get("http://nest/echo")
            #expect(echo.text.hasPrefix("GET\n/echo\nnest\n"))
            #expect(echo.metrics.isConnectionReused)
        }
    }

    @Test("A connection that is closed without a response is an error that says so")
    func drop() async throws {
        try await NginxServer.withServer { server in
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.plain().get(server.url(server.plainPort, "/drop"))
            }
            #expect(error?.code == .emptyResponse)
            #expect(error?.phase == .awaitingHead)
            #expect(error?.wasSent == true)
            #expect(error?.attempts == 1)
        }
    }

    @Test("A reused connection that is closed without a response is retried once on a new one")
    func dropOnKeptConnection() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.plain()
            _ = try await session.get(server.url(server.plainPort, "/hello.txt"))
            let error = await #expect(throws: HTTPError.self) {
                try await session.get(server.url(server.plainPort, "/drop"))
            }
            #expect(error?.code == .emptyResponse)
            #expect(error?.attempts == 2)
            #expect(session.poolStatus.opened == 2)
        }
    }

    @Test("A POST on a reused connection that is closed without a response is not retried")
    func postOnKeptConnection() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.plain()
            _ = try await session.get(server.url(server.plainPort, "/hello.txt"))
            let error = await #expect(throws: HTTPError.self) {
                try await session.post(server.url(server.plainPort, "/drop"), body: .text("once"))
            }
            #expect(error?.code == .emptyResponse)
            #expect(error?.attempts == 1)
            #expect(session.poolStatus.opened == 1)
        }
    }

    @Test("A slow body arrives in pieces, and complete")
    func slowBody() async throws {
        try await NginxServer.withServer { server in
            try await LargeFile.write(24_576, to: server.directory.appending("site/slow.bin"))
            let request = try HTTPRequest(method: .get, url: server.url(server.plainPort, "/slow/slow.bin"))
            // A machine that stalls in between receives all of it together: then it is requested again.
            for tries in 1... {
                let (pieces, byteCount) = try await HTTPSession.plain().stream(request) { _, body in
                    var pieces = 0
                    var byteCount = 0
                    for try await piece in body {
                        pieces += 1
                        byteCount += piece.count
                    }
                    return (pieces, byteCount)
                }
                #expect(byteCount == 24_576)
                if pieces > 1 { break }
                try #require(tries < 10, "it never came in pieces")
            }
        }
    }

    @Test("The total timeout ends a slow body")
    func slowBodyTimesOut() async throws {
        try await NginxServer.withServer { server in
            // The whole body takes more than eight minutes.
            try LargeFile.makeHole(8 << 20, at: server.directory.appending("site/slowest.bin"))
            // A slow machine may reach the timeout before the body: then a longer one is used.
            var clock = Duration.seconds(3)
            while true {
                let session = HTTPSession.plain { $0.timeouts.total = clock }
                let error = await #expect(throws: HTTPError.self) {
                    try await session.get(server.url(server.plainPort, "/slow/slowest.bin"))
                }
                #expect(error?.code == .timedOut)
                #expect(error?.timeout == .total)
                #expect(session.poolStatus.leased == 0)
                if error?.phase == .receivingBody { break }
                clock *= 3
                try #require(clock < .seconds(300), "no body came before the clock ran out")
            }
        }
    }

    @Test("A large body that is abandoned after its first piece only closes its connection")
    func abandonedBody() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.plain()
            let request = try HTTPRequest(method: .get, url: server.url(server.plainPort, "/slow/bytes.bin"))
            let first = try await session.stream(request) { _, body in
                var pieces = body.makeAsyncIterator()
                return try await pieces.next() ?? []
            }
            #expect(!first.isEmpty)
            #expect(first == Array(Site.bytes.prefix(first.count)))
            let next = try await session.get(server.url(server.plainPort, "/connection"))
            #expect(next.text == "1")
            #expect(session.poolStatus.leased == 0)
        }
    }

    @Test("A target or a field that is too large for the server gets a response, not a broken connection")
    func tooLargeHead() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.plain()
            let long = String(repeating: "a", count: 20_000)
            let target = try await session.get(server.url(server.plainPort, "/echo?\(long)"))
            #expect(target.response.status == .uriTooLong)
            let field = try await session.get(
                server.url(server.plainPort, "/echo"), headers: [.referer: long])
            #expect(field.response.status == .badRequest)
            #expect(field.text.contains("Request Header Or Cookie Too Large"))
            #expect(session.poolStatus.leased == 0)
        }
    }

    @Test("A stopped server is a connect failure with its address; a reused connection to it is detected")
    func serverGone() async throws {
        let session = HTTPSession.plain()
        let url = try await NginxServer.start().whileRunning { server in
            let url = server.url(server.plainPort, "/hello.txt")
            _ = try await session.get(url)
            #expect(session.poolStatus.idle == 1)
            return url
        }
        let error = await #expect(throws: HTTPError.self) { try await session.get(url) }
        #expect(error?.code == .connectFailed)
        #expect(error?.wasSent == false)
        #expect(error?.connectErrors.count == 1)
        #expect(session.poolStatus.idle == 0)
    }
}
