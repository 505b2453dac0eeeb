import MartletContent
import MartletCore
public import MartletWebSocket
import Synchronization

extension OriginHandler {
    /// Opens a WebSocket connection (RFC 6455), and passes it to a closure, which plays the server. The connection is
    /// closed, without a Close frame, when the closure returns; see ``OriginWebSocket``.
    ///
    /// ```swift
    /// OriginHandler.webSocket { socket in
    ///     while let message = try await socket.receive() { try await socket.send(message) }
    /// }
    /// ```
    /// - Parameters:
    ///   - subprotocol: The value of `Sec-WebSocket-Protocol`; `nil` for none.
    ///   - extensions: The value of `Sec-WebSocket-Extensions`; `nil` for none. With one that starts with
    ///     `permessage-deflate`, the connection can read and send compressed messages.
    ///   - headers: Further fields; they replace those of the handshake.
    ///   - body: The closure. Its error closes the connection, too.
    public static func webSocket(
        subprotocol: String? = nil, extensions: String? = nil, headers: OriginFields = [:],
        _ body: @escaping @Sendable (OriginWebSocket) async throws -> Void
    ) -> OriginHandler {
        OriginHandler { request in
            guard let key = request.headers["Sec-WebSocket-Key"], request.headers["Sec-WebSocket-Version"] == "13"
            else {
                return .text("Not a WebSocket handshake\n", status: 426)
            }
            var fields: OriginFields = [
                "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": OpeningHandshake.accept(key),
            ]
            fields["Sec-WebSocket-Protocol"] = subprotocol
            fields["Sec-WebSocket-Extensions"] = extensions
            for (name, value) in headers { fields[name] = value }
            return OriginResponse(101, headers: fields).with {
                $0.takeover = { stream in
                    let negotiation =
                        extensions?.hasPrefix("permessage-deflate") == true
                        ? try DeflateNegotiation.parse([extensions ?? ""], offer: WebSocketCompression()) : nil
                    try await body(OriginWebSocket(stream, request, negotiation))
                }
            }
        }
    }

    /// Opens a WebSocket connection that returns each message, answers pings, and completes the closing handshake.
    public static func webSocketEcho(extensions: String? = nil) -> OriginHandler {
        webSocket(extensions: extensions) { socket in
            while let message = try await socket.receive() {
                try await socket.send(message, isCompressed: extensions != nil)
            }
        }
    }
}

/// The server's side of a WebSocket connection of a test origin. It checks the frames of the client, and can send
/// anything, valid or not. One task uses it at a time, except that one may read while another one writes.
public final class OriginWebSocket: Sendable {
    /// The request of the opening handshake.
    public let request: OriginRequest
    /// The bytes of the connection, to send frames that are not valid, and to read without a parser.
    public let stream: OriginStream
    private let codec: OriginWebSocketCodec
    private let received = Mutex<WebSocketCloseCode?>(nil)

    init(_ stream: OriginStream, _ request: OriginRequest, _ negotiation: DeflateNegotiation?) {
        (self.stream, self.request) = (stream, request)
        codec = OriginWebSocketCodec(negotiation)
    }

    /// The code of the client's Close frame; `nil` before it was read.
    public var closeCode: WebSocketCloseCode? { received.withLock { $0 } }

    /// Returns the next message of the client; `nil` after its Close frame, which is answered. Pings are answered.
    /// - Throws: A `WebSocketError` for a frame that violates the protocol, or is not masked; ``OriginError``.
    public func receive() async throws -> WebSocketMessage? {
        var (kind, bytes) = (WebSocketMessage.Kind.text, [UInt8]())
        while let event = try await nextEvent() {
            switch event {
            case .start(let started): (kind, bytes) = (started, [])
            case .data(let data): bytes += data
            case .end: return WebSocketMessage(kind, bytes)
            case .ping(let payload): try await stream.write(FrameHead.frame(.pong, payload, isMasked: false))
            case .pong: break
            case .close(let code, _):
                received.withLock { $0 = code }
                try await close(code)
                return nil
            }
        }
        return nil
    }

    /// Returns the next event of the client, and answers nothing; `nil` at the end of the connection.
    package func nextEvent() async throws -> MessageParser.Event? {
        while true {
            if let event = try await codec.next() { return event }
            guard let bytes = try await stream.read() else { return nil }
            await codec.feed(bytes)
        }
    }

    /// Sends a message.
    /// - Parameters:
    ///   - message: The message.
    ///   - fragmentSize: The maximum size of a fragment in bytes; `nil` (the default) for one frame.
    ///   - isCompressed: Whether the message is compressed, which must have been negotiated.
    public func send(_ message: WebSocketMessage, fragmentSize: Int? = nil, isCompressed: Bool = false) async throws {
        let bytes = message.bytes
        let payload = isCompressed && !bytes.isEmpty ? try await codec.compress(bytes) : bytes
        let size = max(1, fragmentSize ?? payload.count)
        for start in stride(from: 0, to: max(1, payload.count), by: size) {
            let end = min(start + size, payload.count)
            try await send(
                start > 0 ? 0 : message.kind == .text ? 1 : 2, Array(payload[start..<end]),
                isFinal: end == payload.count,
                reservedBits: isCompressed && start == 0 && !bytes.isEmpty ? 4 : 0)
        }
    }

    /// Sends a frame, valid or not.
    /// - Parameters:
    ///   - opcode: The opcode, of which the lower four bits are sent.
    ///   - payload: The payload; empty by default.
    ///   - isFinal: Whether the frame ends its message; `true` by default.
    ///   - reservedBits: The three reserved bits; 4 for the first of them, RSV1.
    ///   - announcedByteCount: The length in the head; `nil` (the default) for that of the payload.
    public func send(
        _ opcode: UInt8, _ payload: [UInt8] = [], isFinal: Bool = true, reservedBits: UInt8 = 0,
        announcedByteCount: Int? = nil
    ) async throws {
        let count = announcedByteCount ?? payload.count
        var head = FrameHead(.continuation, isFinal: isFinal, payloadByteCount: count).bytes
        head[0] |= (reservedBits & 7) << 4 | opcode & 0x0F
        try await stream.write(head + payload)
    }

    /// Sends a Close frame.
    /// - Parameters:
    ///   - code: The code; `.noStatus` for an empty frame.
    ///   - reason: The reason, which is not checked; empty by default.
    public func close(_ code: WebSocketCloseCode, reason: String = "") async throws {
        try await send(8, code.payload(reason: reason))
    }

    /// Sends bytes that are not checked.
    public func send(raw bytes: [UInt8]) async throws { try await stream.write(bytes) }
}

/// The parser and the compressor of a connection.
private actor OriginWebSocketCodec {
    private var receiver: MessageParser
    private let deflater: MessageDeflater?

    init(_ negotiation: DeflateNegotiation?) {
        // The roles are reversed: the client compresses with its window, and this side with that of the server.
        receiver = MessageParser(
            isServer: true, limits: MessageLimits(),
            inflater: negotiation.map {
                MessageInflater(windowBits: $0.clientWindowBits, keepsContext: !$0.clientNoContextTakeover)
            })
        deflater = negotiation.map {
            MessageDeflater(windowBits: $0.serverWindowBits, keepsContext: !$0.serverNoContextTakeover, level: nil)
        }
    }

    func feed(_ bytes: [UInt8]) { receiver.feed(bytes) }
    func next() throws -> MessageParser.Event? { try receiver.next() }
    func compress(_ bytes: [UInt8]) throws -> [UInt8] { try deflater?.compress(bytes[...], isLast: true) ?? bytes }
}
