import MartletContent
import MartletWebSocket

extension FuzzEntry {
    /// Frames and compressed messages of a WebSocket server.
    ///
    /// Control 0: bit 0 limits messages to 1,000 bytes instead of 64 KiB, bit 1 negotiates compression, bit 2 makes each
    /// message independent of the previous ones, bit 3 masks frames. The following controls are the sizes of pieces.
    ///
    /// The messages, control frames and the error do not depend on how the bytes arrive. Messages are within the limit,
    /// texts are UTF-8, and messages do not overlap. Any bytes survive compression and decompression, and framing with a
    /// mask.
    static let webSocket = FuzzEntry("web-socket") { (bytes) throws(FuzzFinding) in
        let input = FuzzInput(bytes)
        let arrivals = input.arrivals(from: 1)
        let whole = try MessageReading(input, arrivals[0])
        for other in arrivals.dropFirst() {
            let pieces = try MessageReading(input, other)
            try require(pieces == whole, "\(pieces) when \(other), and \(whole) at once")
        }
        for arrival in arrivals { try checkRoundTrip(input.payload, arrival) }
    }

    /// Checks that a message which is compressed as it arrives decompresses to itself, twice with the same context.
    private static func checkRoundTrip(_ bytes: [UInt8], _ arrivals: Arrivals) throws(FuzzFinding) {
        let deflater = MessageDeflater(windowBits: 9, keepsContext: true, level: nil)
        let inflater = MessageInflater(windowBits: 9, keepsContext: true)
        if bytes.isEmpty { return }
        for _ in 0..<2 {
            var (compressed, decompressed, position) = ([UInt8](), [UInt8](), 0)
            do throws(ContentEncodingError) {
                for end in arrivals {
                    compressed += try deflater.compress(bytes[position..<end], isLast: end == bytes.count)
                    position = end
                }
            } catch { throw FuzzFinding("\(error)") }
            do throws(ContentDecodingError) {
                var rest = compressed[...]
                while !rest.isEmpty {
                    let (piece, consumed) = try inflater.decode(rest, upTo: 1000)
                    decompressed += piece
                    rest = rest.dropFirst(consumed)
                }
                while case let piece = try inflater.finish(upTo: 7), !piece.isEmpty { decompressed += piece }
            } catch { throw FuzzFinding("\(error)") }
            try require(decompressed == bytes, "\(bytes.count) bytes become \(decompressed.count)")
        }
    }
}

/// The result of the parser for an input.
private struct MessageReading: Equatable {
    private var messages: [WebSocketMessage] = []
    private var others: [MessageParser.Event] = []
    private var error: WebSocketError?

    init(_ input: FuzzInput, _ arrivals: Arrivals) throws(FuzzFinding) {
        let limit = input.isSet(0, at: 0) ? 1000 : 64 << 10
        let inflater = MessageInflater(windowBits: 15, keepsContext: !input.isSet(2, at: 0))
        var parser = MessageParser(
            isServer: input.isSet(3, at: 0), limits: MessageLimits(messageByteCount: limit),
            inflater: input.isSet(1, at: 0) ? inflater : nil)
        var message: (kind: WebSocketMessage.Kind, bytes: [UInt8])?
        var (fed, finding): (Int, FuzzFinding?) = (0, nil)
        do throws(WebSocketError) {
            for end in arrivals {
                parser.feed(Array(input.payload[fed..<end]))
                fed = end
                while let event = try parser.next() {
                    switch event {
                    case .start(let kind):
                        if message != nil { finding = FuzzFinding("a message starts within another one") }
                        message = (kind, [])
                    case .data(let bytes):
                        if message == nil || bytes.isEmpty { finding = FuzzFinding("\(bytes.count) stray bytes") }
                        message?.bytes += bytes
                    case .end:
                        guard let (kind, bytes) = message else { continue }
                        if bytes.count > limit { finding = FuzzFinding("a message has \(bytes.count) bytes") }
                        if kind == .text, String(validating: bytes, as: UTF8.self) == nil {
                            finding = FuzzFinding("a text is not UTF-8")
                        }
                        messages.append(WebSocketMessage(kind, bytes))
                        message = nil
                    case .ping, .pong, .close: others.append(event)
                    }
                }
            }
        } catch { self.error = error }
        if let finding { throw finding }
    }
}
