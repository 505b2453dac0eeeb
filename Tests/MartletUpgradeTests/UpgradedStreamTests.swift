import Foundation
import Martlet
import MartletTestSupport
import MartletTesting
import MartletTransport
import Synchronization
import Testing

@Suite("Upgrade: the stream of bytes", .timeLimit(.minutes(10)))
struct UpgradedStreamTests {
    static let kinds: [OriginOptions] = [.plain, .tls()]

    // MARK: Back pressure

    /// The maximum number of bytes that both sides of a loopback connection hold together (tcp(7)).
    private func kernelLimit() throws -> UInt64 {
        var sum: UInt64 = 0
        for name in ["tcp_rmem", "tcp_wmem"] {
            let text = try String(contentsOfFile: "/proc/sys/net/ipv4/\(name)", encoding: .utf8)
            sum += try #require(text.split(whereSeparator: \.isWhitespace).last.flatMap { UInt64($0) })
        }
        return sum
    }

    /// The bytes that a stream in user space may hold: a read, a write, records of TLS.
    private static let slack: UInt64 = 1 << 20
    private static let large: UInt64 = 64 << 20

    @Test("64 MB pass in both directions at the same time", arguments: kinds.indices)
    func fullDuplex(_ kind: Int) async throws {
        let total = Self.large
        try await TestOrigin.withOrigin(Self.kinds[kind], handler: .echoing()) { origin in
            let session = HTTPSession.own(origin)
            let connection = try await session.upgraded(origin.url())
            async let sent: Void = {
                for offset in offsets(total) {
                    try await connection.write(TestPattern.bytes(from: offset, count: pieceSize))
                }
                try await connection.closeWriting()
            }()
            var received: UInt64 = 0
            while let piece = try await connection.read(upTo: 65_536) {
                #expect(piece == TestPattern.bytes(from: received, count: piece.count))
                received += UInt64(piece.count)
            }
            try await sent
            #expect(received == total)
            #expect(await eventually { session.isEmpty })
        }
    }

    @Test(
        "A reader that is slow stops the server: no more is sent than was read and the kernel holds",
        arguments: kinds.indices)
    func slowReader(_ kind: Int) async throws {
        let (total, limit) = (Self.large, try kernelLimit() + Self.slack)
        let sent = Atomic<UInt64>(0)
        try await TestOrigin.withOrigin(Self.kinds[kind]) { _ in
            .upgrade(to: "flood") { stream in
                for offset in offsets(total) {
                    try await stream.write(TestPattern.bytes(from: offset, count: pieceSize))
                    sent.wrappingAdd(UInt64(pieceSize), ordering: .relaxed)
                }
            }
        } run: { origin in
            let connection = try await HTTPSession.own(origin).upgraded(origin.url(), to: "flood")
            var received: UInt64 = 0
            while let piece = try await connection.read(upTo: 65_536) {
                received += UInt64(piece.count)
                let ahead = sent.load(ordering: .relaxed)
                #expect(ahead <= received + limit)
            }
            #expect(received == total)
        }
    }

    @Test("A server that does not read stops the writer", arguments: kinds.indices)
    func slowServer(_ kind: Int) async throws {
        let (total, limit) = (Self.large, try kernelLimit() + Self.slack)
        let received = Atomic<UInt64>(0)
        try await TestOrigin.withOrigin(Self.kinds[kind]) { _ in
            .upgrade(to: "sink") { stream in
                while let piece = try await stream.read() {
                    received.wrappingAdd(UInt64(piece.count), ordering: .relaxed)
                }
                try await stream.write("\(received.load(ordering: .relaxed))")
            }
        } run: { origin in
            let connection = try await HTTPSession.own(origin).upgraded(origin.url(), to: "sink")
            var written: UInt64 = 0
            for offset in offsets(total) {
                try await connection.write(TestPattern.bytes(from: offset, count: pieceSize))
                written += UInt64(pieceSize)
                #expect(written <= received.load(ordering: .relaxed) + limit)
            }
            try await connection.closeWriting()
            #expect(try await connection.readAll() == bytes("\(total)"))
        }
    }

    // MARK: Routes

    @Test(
        "An upgrade of an http URL goes through a tunnel of an HTTP proxy, as one of an https URL",
        arguments: kinds.indices)
    func proxied(_ kind: Int) async throws {
        try await TestOrigin.withOrigin(Self.kinds[kind], handler: .echoing()) { origin in
            try await TestOrigin.withOrigin(handler: .tunneling(to: origin.port)) { proxy in
                let address = try ProxySettings.http(proxy.base)
                let session = HTTPSession.own(origin) { $0.proxy = address }
                let connection = try await session.upgraded(origin.url())
                try await connection.write("through")
                try await connection.closeWriting()
                #expect(try await connection.readAll() == bytes("through"))
                #expect(proxy.recorder.requests.map(\.method) == [.connect])
                #expect(proxy.recorder.requests.first?.headers["Upgrade"] == nil)
                #expect(await eventually { session.isEmpty })
            }
        }
    }

    @Test("An upgrade works on a Unix domain socket")
    func unixSocket() async throws {
        let path = "/tmp/martlet-upgrade-\(UInt64.random(in: 0 ... .max)).sock"
        try await TestOrigin.withOrigin(.unix(path: path), handler: .echoing()) { origin in
            let session = HTTPSession.own(origin) { $0.unixSocketPath = path }
            let connection = try await session.upgraded("http://localhost/containers/1/attach")
            try await connection.write("attach")
            try await connection.closeWriting()
            #expect(try await connection.readAll() == bytes("attach"))
            #expect(await eventually { session.isEmpty })
        }
    }

    // MARK: Ends

    @Test("The client ends its direction, and still reads", arguments: kinds.indices)
    func clientHalf(_ kind: Int) async throws {
        try await TestOrigin.withOrigin(Self.kinds[kind]) { _ in
            .upgrade(to: "count") { stream in
                var count = 0
                while let piece = try await stream.read() { count += piece.count }
                try await stream.write("\(count)")
            }
        } run: { origin in
            let session = HTTPSession.own(origin)
            let connection = try await session.upgraded(origin.url(), to: "count")
            try await connection.write([UInt8](repeating: 1, count: 100_000))
            try await connection.closeWriting()
            try await connection.closeWriting()
            let error = await #expect(throws: HTTPError.self) { try await connection.write("late") }
            #expect(error?.code == .invalidRequest && error?.phase == .upgraded)
            #expect(try await connection.readAll() == bytes("100000"))
            #expect(await eventually { session.isEmpty })
        }
    }

    @Test("The server ends its direction, and still reads", arguments: kinds.indices)
    func serverHalf(_ kind: Int) async throws {
        let received = Mutex<[UInt8]>([])
        try await TestOrigin.withOrigin(Self.kinds[kind]) { _ in
            .upgrade(to: "half") { stream in
                try await stream.write("bye")
                stream.closeWriting()
                while let piece = try await stream.read() { received.withLock { $0 += piece } }
            }
        } run: { origin in
            let session = HTTPSession.own(origin)
            let connection = try await session.upgraded(origin.url(), to: "half")
            #expect(try await connection.readAll() == bytes("bye"))
            #expect(session.diagnostics.pool.leased == 1)
            try await connection.write("still here")
            try await connection.closeWriting()
            #expect(await eventually { session.isEmpty })
            #expect(await eventually { received.withLock { $0 } == bytes("still here") })
        }
    }

    @Test("The end of a TLS stream without a close_notify is an error, after the bytes before it")
    func truncated() async throws {
        try await TestOrigin.withOrigin(.tls()) { _ in
            .upgrade(to: "cut") { stream in
                try await stream.write("part")
                throw OriginFault(.cut)
            }
        } run: { origin in
            let session = HTTPSession.own(origin)
            let connection = try await session.upgraded(origin.url(), to: "cut")
            #expect(try await connection.read(exactly: 4) == bytes("part"))
            let error = await #expect(throws: HTTPError.self) { _ = try await connection.read() }
            #expect(error?.code == .truncated && error?.phase == .upgraded)
            connection.close()
            #expect(await eventually { session.isEmpty })
        }
    }

    @Test("A reset by the server is an error of the waiting read, and of a later write")
    func reset() async throws {
        try await TestOrigin.withOrigin { _ in
            .upgrade(to: "reset") { stream in
                _ = try await stream.read()
                throw OriginFault(.reset)
            }
        } run: { origin in
            let session = HTTPSession.own(origin)
            let connection = try await session.upgraded(origin.url(), to: "reset")
            try await connection.write("!")
            let error = await #expect(throws: HTTPError.self) { _ = try await connection.read() }
            #expect(
                error?.code == .connectionLost && error?.wasSent == true && error?.callNumber == connection.callNumber)
            let later = await #expect(throws: HTTPError.self) { try await connection.write("?") }
            #expect(later?.code == .connectionLost)
            connection.close()
            #expect(await eventually { session.isEmpty })
        }
    }

    @Test("A reset that a write encounters is not a normal end for the reader")
    func resetOfWrite() async throws {
        try await TestOrigin.withOrigin { _ in
            .upgrade(to: "reset") { stream in
                _ = try await stream.read()
                throw OriginFault(.reset)
            }
        } run: { origin in
            let connection = try await HTTPSession.own(origin).upgraded(origin.url(), to: "reset")
            let error = await #expect(throws: HTTPError.self) {
                while true { try await connection.write([UInt8](repeating: 0, count: 1 << 16)) }
            }
            #expect(error?.code == .connectionLost)
            let end = await #expect(throws: HTTPError.self) { _ = try await connection.read() }
            #expect(end?.code == .connectionLost)
        }
    }

    // MARK: Misuse and timeouts

    @Test("A second reader and a second writer are errors, and do not disturb the first ones")
    func secondReader() async throws {
        try await TestOrigin.withOrigin { _ in
            .upgrade(to: "wait") { stream in
                #expect(try await stream.read(exactly: 32 << 20).count == 32 << 20)
                try await stream.write("x")
                while try await stream.read() != nil {}
            }
        } run: { origin in
            let connection = try await HTTPSession.own(origin).upgraded(origin.url(), to: "wait")
            // Either read may start first, and is tried again after the error.
            let first = Task {
                while true {
                    do { return try await connection.read() } catch let error as HTTPError
                        where error.code == .invalidRequest
                    { await Task.yield() }
                }
            }
            var failure: HTTPError?
            while failure?.code != .invalidRequest {
                failure = await #expect(throws: HTTPError.self) { _ = try await connection.read(timeout: .zero) }
                await Task.yield()
            }
            #expect(failure?.message.contains("two tasks read") == true)
            async let whole: Void = connection.write([UInt8](repeating: 0, count: 32 << 20))
            try await whole
            #expect(try await first.value == bytes("x"))
        }
    }

    @Test("A read that times out loses nothing, and the connection can be used further", arguments: kinds.indices)
    func readTimeout(_ kind: Int) async throws {
        try await TestOrigin.withOrigin(Self.kinds[kind], handler: .echoing()) { origin in
            // The timeouts of the session do not apply.
            let session = HTTPSession.own(origin) {
                ($0.timeouts.idle, $0.timeouts.unread) = (.milliseconds(1), .milliseconds(1))
            }
            let connection = try await session.upgraded(origin.url())
            for _ in 1...3 {
                let error = await #expect(throws: HTTPError.self) {
                    _ = try await connection.read(timeout: .milliseconds(20))
                }
                #expect(error?.code == .timedOut && error?.timeout == .idle && error?.phase == .upgraded)
            }
            try await connection.write("late")
            #expect(try await connection.read(exactly: 4) == bytes("late"))
        }
    }

    @Test("A write that times out closes the connection", arguments: kinds.indices)
    func writeTimeout(_ kind: Int) async throws {
        try await TestOrigin.withOrigin(Self.kinds[kind]) { _ in
            .upgrade(to: "deaf") { _ in try await Task.sleep(for: .seconds(600)) }
        } run: { origin in
            let session = HTTPSession.own(origin)
            let connection = try await session.upgraded(origin.url(), to: "deaf")
            let reading = Task { try await connection.read() }
            let error = await #expect(throws: HTTPError.self) {
                while true {
                    try await connection.write([UInt8](repeating: 0, count: 1 << 20), timeout: .milliseconds(50))
                }
            }
            #expect(error?.code == .timedOut)
            await #expect(throws: CancellationError.self) { _ = try await reading.value }
            #expect(await eventually { session.isEmpty })
        }
    }
}

/// The size of the pieces of a large transfer.
private let pieceSize = 1 << 16

/// Returns the offsets of the pieces of a large transfer.
private func offsets(_ total: UInt64) -> StrideTo<UInt64> { stride(from: 0, to: total, by: pieceSize) }

extension OriginHandler {
    /// A proxy that opens tunnels to one port of 127.0.0.1.
    static func tunneling(to port: Int) -> OriginHandler {
        OriginHandler { request in
            guard request.method == .connect else { return .status(405) }
            return OriginResponse(200).with { $0.takeover = { client in try await tunnel(client, to: port) } }
        }
    }

    private static func tunnel(_ client: OriginStream, to port: Int) async throws {
        let dialer = Dialer(settings: DialSettings(), loop: EventLoop.sharedOrStalled)
        let destination = Destination(isSecure: false, host: "127.0.0.1", port: port)
        let server = try await dialer.dial(destination, until: .distantFuture).stream
        defer { server.close() }
        async let up: Void = {
            while let piece = try await client.read() { try await server.send(piece, until: .distantFuture) }
            server.shutdownWriting()
        }()
        while let piece = try await server.receive(atMost: 65_536, until: .distantFuture) {
            try await client.write(piece)
        }
        client.closeWriting()
        try await up
    }
}
