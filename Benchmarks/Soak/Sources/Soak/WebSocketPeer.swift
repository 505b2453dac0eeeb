import Martlet
import MartletTesting
import MartletWebSocket
import Synchronization

/// A WebSocket server that returns each message, in random fragments, until a random fault. The path has the seed:
/// `/socket/SEED` always behaves in the same way, and each connection to `/sockets/SEED` differently.
final class WebSocketPeer: Sendable {
    /// The faults of the proxy before the server. Without TLS, random bytes could be a valid message.
    static let faults = (
        plain: FaultRates(reset: 0.4, stall: 0.2, truncated: 0.4, slow: 1),
        secure: FaultRates(reset: 0.4, stall: 0.2, truncated: 0.4, slow: 1, garbage: 0.4)
    )

    /// A way to end a connection.
    private enum Fault {
        case badFrame, close, noReplies, noReads, end
    }

    /// The number of opening handshakes.
    private let count = Mutex<UInt64>(0)

    /// Responds to an opening handshake: rejects it, sends a wrong `Sec-WebSocket-Accept`, or opens the connection.
    func respond(to request: OriginRequest) async throws -> OriginResponse {
        let parts = request.path.split(separator: "/")
        let number = count.withLock { count in
            count += 1
            return parts[0] == "sockets" ? count : 0
        }
        var generator = SeededGenerator(seed: parts.last.flatMap { UInt64($0) } ?? 0, stream: number)
        let draw = generator.next() % 40
        if draw < 4 { return .text("rejected", status: [403, 429, 500, 503][Int(draw)]) }
        var headers: OriginFields = [:]
        if draw == 4 { headers["Sec-WebSocket-Accept"] = "dGhlIHNhbXBsZSBub25jZQ==" }
        let offer = request.headers["Sec-WebSocket-Extensions"]
        let faults: [Fault] = [.badFrame, .badFrame, .close, .close, .noReplies, .noReads, .end]
        let fault = generator.next() % 5 < 3 ? nil : faults.randomElement(using: &generator)
        let connection = Connection(
            isCompressed: offer != nil, isSlow: generator.next() % 6 == 0, fault: fault,
            remaining: fault == nil ? .max : Int(generator.next() % 12), generator: generator)
        return try await OriginHandler.webSocket(
            extensions: offer.map { Self.reply(to: $0, &generator) }, headers: headers
        ) { socket in
            var connection = connection
            try await connection.serve(socket)
        }.respond(to: request)
    }

    /// Accepts permessage-deflate with random parameters.
    private static func reply(to offer: String, _ generator: inout SeededGenerator) -> String {
        var reply = "permessage-deflate"
        if offer.contains("server_no_context_takeover") || generator.next() % 4 == 0 {
            reply += "; server_no_context_takeover"
        }
        if generator.next() % 4 == 0 { reply += "; client_no_context_takeover" }
        if generator.next() % 4 == 0 { reply += "; client_max_window_bits=\(9 + generator.next() % 7)" }
        if generator.next() % 4 == 0 { reply += "; server_max_window_bits=\(9 + generator.next() % 7)" }
        return reply
    }

    /// The behavior of one connection.
    private struct Connection: Sendable {
        let isCompressed: Bool
        let isSlow: Bool
        let fault: Fault?
        /// The number of messages before the fault.
        var remaining: Int
        var generator: SeededGenerator

        mutating func serve(_ socket: OriginWebSocket) async throws {
            while remaining > 0, let message = try await socket.receive() {
                remaining -= 1
                if isSlow { try await Task.sleep(for: .milliseconds(Int64(generator.next() % 20))) }
                if generator.next() % 4 == 0 { try await socket.send(9, Array("ping".utf8)) }
                try await answer(message, socket)
            }
            guard remaining == 0 else { return }
            switch fault {
            case .badFrame: try await sendBadFrame(socket)
            case .close:
                let codes: [WebSocketCloseCode] = [
                    .normalClosure, .goingAway, .protocolError, .unsupportedData, .noStatus, .policyViolation,
                    .internalError, .serviceRestart, .tryAgainLater, .init(rawValue: 4321),
                ]
                let code = codes[Int(generator.next() % UInt64(codes.count))]
                try await socket.close(code, reason: code == .noStatus ? "" : "the end")
            case .noReplies: break
            // Longer than the client waits.
            case .noReads: return try await Task.sleep(for: .seconds(2))
            case .end, nil: return
            }
            // The connection may end with unread bytes, which resets it.
            guard generator.next() % 4 > 0 else { return }
            while try await socket.stream.read() != nil {}
        }

        /// Returns a message, in one frame or in fragments, between which there may be pings.
        private mutating func answer(_ message: WebSocketMessage, _ socket: OriginWebSocket) async throws {
            let bytes = message.bytes
            let size = bytes.count / Int(generator.next() % 12 + 1) + 1
            if isCompressed, generator.next() % 2 == 0 {
                return try await socket.send(message, fragmentSize: size, isCompressed: true)
            }
            for start in stride(from: 0, to: max(bytes.count, 1), by: size) {
                if start > 0, generator.next() % 4 == 0 { try await socket.send(9) }
                let end = min(start + size, bytes.count)
                try await socket.send(
                    start > 0 ? 0 : message.kind == .text ? 1 : 2, Array(bytes[start..<end]),
                    isFinal: end == bytes.count)
            }
        }

        private mutating func sendBadFrame(_ socket: OriginWebSocket) async throws {
            switch generator.next() % 12 {
            case 0: try await socket.send(3)
            case 1: try await socket.send(2, [1], reservedBits: 2)
            case 2: try await socket.send(9, [UInt8](repeating: 0, count: 126))
            case 3: try await socket.send(9, isFinal: false)
            case 4: try await socket.send(0, [1])
            case 5: try await socket.send(1, [0xC3, 0x28])
            case 6: try await socket.send(8, [3])
            case 7: try await socket.send(8, [0x03, 0xED])
            case 8: try await socket.send(2, announcedByteCount: 1 << 40)
            case 9: try await socket.send(raw: [0x82, 0x81, 1, 2, 3, 4, 5])
            case 10: try await socket.send(raw: [0x82, 126, 0, 1, 0])
            // Marked as compressed, with a block type that does not exist.
            default: try await socket.send(2, [0x07, 0xFF], reservedBits: 4)
            }
        }
    }
}
