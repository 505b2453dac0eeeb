import Martlet
import MartletTesting
import MartletTestSupport
import Synchronization
import Testing

extension OneAtATime {
    @Suite("Bodies that are not read to their end")
    struct AbandonedBodyTests {
        private struct Rejection: Error {}

        @Test("A small rest of a body is drained, and the connection is reused")
        func smallRest() async throws {
            // The rest is awaited for at most one second, which a stalled machine may exceed.
            var tries = 1
            while try await !isRestTakenUp() {
                tries += 1
                try #require(tries < 20)
            }
        }

        /// - Returns: Whether the rest arrived within its second. Otherwise, the test is invalid.
        private func isRestTakenUp() async throws -> Bool {
            let script = ServerScript(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234"),
                .await("returned"), .send("56789"), .expectRequestHead, .sendOK, .awaitClose)
            return try await TestOrigin.withOrigin(scripts: script) { origin in
                let session = HTTPSession.own()
                let start = ContinuousClock.now
                try await session.stream(HTTPRequest(.get, origin)) { _, _ in }
                origin.signals.raise("returned")
                #expect(await eventually { session.poolStatus.leased == 0 })
                guard session.poolStatus.idle == 1 else {
                    #expect(ContinuousClock.now - start >= .seconds(1))
                    return false
                }
                let exchange = try await session.get(origin.url())
                #expect(exchange.text == "ok")
                #expect(exchange.metrics.isConnectionReused)
                #expect(origin.connectionCount == 1)
                return true
            }
        }

        @Test("A small body that has already arrived frees its connection immediately", arguments: [0, 5])
        func smallBodyArrived(byteCount: Int) async throws {
            try await TestOrigin.withOrigin(
                handler: .fixed(.bytes([UInt8](repeating: 0x78, count: byteCount)))
            ) { origin in
                let session = HTTPSession.own()
                for _ in 1...5 {
                    try await session.stream(HTTPRequest(.get, origin)) { response, _ in
                        #expect(response.status == .ok)
                    }
                    #expect(session.poolStatus.idle == 1)
                }
                #expect(origin.connectionCount == 1)
            }
        }

        @Test("A large rest closes the connection", arguments: ["length", "chunked", "close"])
        func largeRest(framing: String) async throws {
            try await TestOrigin.withOrigin { request in
                if request.path == "/next" { return .text("next") }
                return OriginResponse.pattern(1 << 40).with { response in
                    response.framing =
                        switch framing {
                        case "length": .automatic
                        case "chunked": .chunked()
                        default: .untilClose
                        }
                }
            } run: { origin in
                let session = HTTPSession.own()
                let first = try await session.stream(HTTPRequest(.get, origin)) { _, body in
                    for try await piece in body { return piece.count }
                    return 0
                }
                #expect(first > 0)
                #expect(try await session.get(origin.url("/next")).text == "next")
                #expect(origin.connectionCount == 2)
                try await origin.recorder.waitForOpenConnections(atMost: 1)
                #expect(await eventually { OpenSockets.count(toPort: origin.port) == 1 })
            }
        }

        @Test("A rest that never arrives does not hold the connection for long")
        func silentRest() async throws {
            let script = ServerScript(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234"), .awaitClose)
            try await TestOrigin.withOrigin(scripts: script) { origin in
                let session = HTTPSession.own()
                let start = ContinuousClock.now
                try await session.stream(HTTPRequest(.get, origin)) { _, _ in }
                #expect(ContinuousClock.now - start < TestTimeouts.ending)
                try await origin.recorder.waitForOpenConnections(atMost: 0)
                #expect(await eventually { session.poolStatus.leased == 0 })
            }
        }

        @Test("A closure's error is thrown unchanged, and the connection stays usable")
        func throwingClosure() async throws {
            try await TestOrigin.withOrigin(handler: .fixed(.text("hello"))) { origin in
                let session = HTTPSession.own()
                await #expect(throws: Rejection.self) {
                    try await session.stream(HTTPRequest(.get, origin)) { _, _ in throw Rejection() }
                }
                #expect(await eventually { session.poolStatus.leased == 0 })
                #expect(session.runningCallCount == 0)
                let exchange = try await session.get(origin.url())
                #expect(exchange.text == "hello")
            }
        }

        @Test("A body used after its closure throws, and reads nothing of the next exchange")
        func leakedBody() async throws {
            let script = ServerScript(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789"),
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc"), .await("tried"),
                .send("def"), .awaitClose)
            try await TestOrigin.withOrigin(scripts: script) { origin in
                let session = HTTPSession.own()
                let leaked = try await session.stream(HTTPRequest(.get, origin)) { _, body in body }
                #expect(await eventually { session.poolStatus.idle == 1 })
                try await session.stream(HTTPRequest(.get, origin)) { _, body in
                    await #expect(throws: HTTPError.self) { try await leaked.collect() }
                    origin.signals.raise("tried")
                    let bytes = try await body.collect()
                    #expect(bytes == Array("abcdef".utf8))
                }
                #expect(origin.connectionCount == 1)
            }
        }

        @Test("A task that still waits for a body when its closure returns receives an error")
        func overstayingReader() async throws {
            let script = ServerScript(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123"), .awaitClose)
            try await TestOrigin.withOrigin(scripts: script) { origin in
                let session = HTTPSession.own()
                let reader = try await session.stream(HTTPRequest(.get, origin)) { _, body in
                    let started = Mutex(false)
                    let reader = Task {
                        var iterator = body.makeAsyncIterator()
                        _ = try await iterator.next()
                        started.withLock { $0 = true }
                        return try await iterator.next()
                    }
                    #expect(await eventually { started.withLock { $0 } })
                    return reader
                }
                await #expect(throws: HTTPError.self) { try await reader.value }
            }
        }

        @Test("A consumer that stops reading stops the sender")
        func backPressure() async throws {
            let buffered = try KernelBuffers.most()
            try await TestOrigin.withOrigin(handler: .fixed(.pattern(1 << 40))) { origin in
                let session = HTTPSession.own()
                try await session.stream(HTTPRequest(.get, origin)) { _, body in
                    var iterator = body.makeAsyncIterator()
                    _ = try await iterator.next()
                    let sent = await settled { origin.recorder.counts.bytesSent }
                    #expect(Int(sent) < buffered + 4 << 20)
                }
            }
        }
    }
}
