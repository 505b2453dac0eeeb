import Martlet
import MartletTesting
import MartletWebSocket

/// One use of WebSocket connections: messages with random contents are sent, and their copies are verified.
struct WebSocketVisit: Sendable {
    /// The result of a visit without an error.
    enum Outcome: Hashable, Sendable {
        /// Every message was returned.
        case complete
        /// The server closed the connection before, in the regular way.
        case short
        /// A message was returned wrongly, or in the wrong order.
        case wrong
    }

    private enum Way: CaseIterable {
        /// One task sends while another one reads.
        case concurrent
        /// Messages are sent and read in pieces.
        case streamed
        /// Each message waits for the previous one; some reads are cancelled and repeated, and pings are sent.
        case alternating
        /// Another connection follows a lost one, and continues with the first message that was not returned.
        case reconnecting
        /// The connection is released or cancelled without being closed.
        case released
    }

    private let seed: UInt64
    private let way: Way
    private let isSecure: Bool
    private let count: Int
    private let options: WebSocketOptions

    /// Draws a visit.
    init(_ generator: inout SeededGenerator) {
        seed = generator.next()
        way = Way.allCases.randomElement(using: &generator) ?? .concurrent
        isSecure = generator.next() % 2 == 0
        count = Int(generator.next() % 16) + 1
        options = WebSocketOptions { options in
            options.pingInterval = .milliseconds(300)
            options.pongTimeout = .milliseconds(700)
            options.closeTimeout = .milliseconds(700)
            options.messageLimit = .mebibytes(1)
            options.receiveBufferSize = ByteCount(1 << (generator.next() % 17))
            options.fragmentSize = ByteCount(1 << (generator.next() % 7 + 10))
            switch generator.next() % 3 {
            case 0: options.compression = nil
            case 1:
                options.compression?.clientNoContextTakeover = generator.next() % 2 == 0
                options.compression?.serverNoContextTakeover = generator.next() % 2 == 0
                options.compression?.threshold = Int(generator.next() % 1000)
            default: break
            }
        }
    }

    /// The kind of the visit, for the report.
    var description: String { "\(way), seed \(seed), \(count) messages\(isSecure ? " over TLS" : "")" }

    /// Returns a message, always the same for a number: most are small, some large, some empty.
    private func message(_ number: Int) -> WebSocketMessage {
        var generator = SeededGenerator(seed: seed, stream: UInt64(number))
        let limits: [UInt64] = [1, 200, 2000, 2000, 20_000, 150_000]
        let size = Int(generator.next() % limits[Int(generator.next() % UInt64(limits.count))])
        let start = generator.next()
        if start % 2 == 0 { return .binary(TestPattern.bytes(from: start >> 8, count: size)) }
        let part = "\(start), Ωμέγα, 海燕, 🐦 "
        return .text(String(repeating: part, count: size / part.utf8.count))
    }

    /// Runs the visit.
    /// - Throws: The error of a connection, an `HTTPError` of a handshake, or `CancellationError`.
    func run(_ session: HTTPSession, _ peer: Peer) async throws -> Outcome {
        let url = try peer.url("/socket\(way == .reconnecting ? "s" : "")/\(seed)", isSecure: isSecure)
        switch way {
        case .concurrent:
            return try await session.webSocket(url, options: options) { socket in
                async let sending: Void = { for number in 0..<count { try await socket.send(message(number)) } }()
                var received = 0
                while received < count, let reply = try await socket.receive() {
                    guard reply == message(received) else { return .wrong }
                    received += 1
                }
                if received < count { return .short }
                try await sending
                return .complete
            }
        case .streamed:
            return try await session.webSocket(url, options: options) { socket in
                async let sending: Void = { for number in 0..<count { try await sendPieces(number, socket) } }()
                var received = 0
                for try await reply in socket.streamedMessages {
                    let expected = message(received)
                    var bytes: [UInt8] = []
                    for try await piece in reply { bytes += piece }
                    guard reply.kind == expected.kind, bytes == expected.bytes else { return .wrong }
                    received += 1
                    if received == count {
                        try await sending
                        return .complete
                    }
                }
                return .short
            }
        case .alternating:
            let socket = try await session.openWebSocket(url, options: options)
            for number in 0..<count {
                let outcome = try await exchange(number, socket)
                if outcome != .complete { return outcome }
                if number % 4 == 3 { try await socket.ping() }
            }
            try await socket.close(code: .init(rawValue: 3000), reason: "done")
            return .complete
        case .reconnecting:
            let policy = WebSocketReconnectionPolicy {
                $0.initialDelay = .milliseconds(5)
                $0.maximumDelay = .milliseconds(40)
                $0.failureLimit = 6
            }
            var received = 0
            for try await socket in session.webSocketConnections(to: url, options: options, policy: policy) {
                do {
                    while received < count {
                        let outcome = try await exchange(received, socket)
                        if outcome == .wrong { return .wrong }
                        if outcome == .short { break }
                        received += 1
                    }
                } catch is WebSocketError { continue }
                if received == count { return .complete }
            }
            return .short
        case .released:
            let socket = try await session.openWebSocket(url, options: options)
            let outcome = try await exchange(0, socket)
            if seed % 2 == 0 { socket.cancel() }
            return outcome
        }
    }

    /// Sends a message and reads its copy. Some reads are cancelled, which must not lose a message.
    private func exchange(_ number: Int, _ socket: WebSocket) async throws -> Outcome {
        let message = self.message(number)
        try await socket.send(message)
        if number % 3 == 2 {
            let reading = Task { try await socket.receive() }
            await Task.yield()
            reading.cancel()
            do {
                guard let reply = try await reading.value else { return .short }
                return reply == message ? .complete : .wrong
            } catch is CancellationError { try Task.checkCancellation() }
        }
        guard let reply = try await socket.receive() else { return .short }
        return reply == message ? .complete : .wrong
    }

    /// Sends a message in pieces, each of at most a third of it.
    private func sendPieces(_ number: Int, _ socket: WebSocket) async throws {
        let message = self.message(number)
        let bytes = message.bytes
        let pieces = AsyncStream<ArraySlice<UInt8>> { continuation in
            let size = bytes.count / 3 + 1
            for start in stride(from: 0, to: bytes.count, by: size) {
                continuation.yield(bytes[start..<min(start + size, bytes.count)])
            }
            continuation.finish()
        }
        try await socket.send(message.kind, contentsOf: pieces)
    }
}
