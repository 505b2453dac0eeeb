import MartletCore
import MartletWebSocket
import Synchronization
import Testing

/// A connection in memory. The test plays the server.
final class MemoryTransport: WebSocketTransport {
    struct Closed: Error {}

    private let toClient = Mailbox<[UInt8]>()
    private let toServer = Mailbox<[UInt8]>()
    /// Whether the client has closed the connection.
    let isClosed = CurrentValue(false)
    /// Whether writes of the client return.
    let accepts = CurrentValue(true)
    /// The number of reads that have returned bytes.
    let readCount = CurrentValue(0)
    let endedWriting = CurrentValue(false)
    private let writeCounts = Mutex((running: 0, maximum: 0))

    /// The maximum number of writes at the same time.
    var concurrentWrites: Int { writeCounts.withLock { $0.maximum } }

    func read(upTo byteCount: Int) async throws -> [UInt8] {
        guard !isClosed.value else { throw Closed() }
        guard let bytes = await toClient.next() else {
            try Task.checkCancellation()
            if isClosed.value { throw Closed() }
            return []
        }
        guard !isClosed.value else { throw Closed() }
        readCount.change { $0 += 1 }
        return bytes
    }

    func write(_ bytes: [UInt8]) async throws {
        writeCounts.withLock { counts in
            counts.running += 1
            counts.maximum = max(counts.running, counts.maximum)
        }
        defer { writeCounts.withLock { $0.running -= 1 } }
        await accepts.becomesTrue()
        try Task.checkCancellation()
        guard !isClosed.value, !endedWriting.value else { throw Closed() }
        toServer.send(bytes)
    }

    func closeWriting() async throws {
        endedWriting.update { true }
        toServer.close()
    }

    func close() {
        isClosed.update { true }
        accepts.update { true }
        toClient.close()
        toServer.close()
    }

    /// Sends bytes to the client, in reads of at most a number of bytes, by default as many as the connection requests.
    func send(_ bytes: [UInt8], inReadsOf count: Int = 16 << 10) {
        for start in stride(from: 0, to: bytes.count, by: count) {
            toClient.send(Array(bytes[start..<min(start + count, bytes.count)]))
        }
    }

    /// Ends the server's direction.
    func end() { toClient.close() }

    /// Returns the next bytes of the client; `nil` at the end.
    func next() async -> [UInt8]? { await toServer.next() }
}

/// The server's side of a connection in memory.
final class ScriptedServer {
    let transport: MemoryTransport
    private var receiver: MessageParser
    private var message: (kind: WebSocketMessage.Kind, bytes: [UInt8])?
    /// The first bytes of the client's frames: each write begins with a frame, and is one, except for control frames.
    private(set) var firstBytes: [UInt8] = []

    init(_ transport: MemoryTransport, _ negotiation: DeflateNegotiation? = nil) {
        self.transport = transport
        receiver = MessageParser(
            isServer: true, limits: MessageLimits(),
            inflater: negotiation.map {
                MessageInflater(windowBits: $0.clientWindowBits, keepsContext: !$0.clientNoContextTakeover)
            })
    }

    /// Returns what the client does next; `nil` at the end of the connection.
    func next() async throws -> Reply? {
        while true {
            while let event = try receiver.next() {
                switch event {
                case .start(let kind): message = (kind, [])
                case .data(let bytes): message?.bytes += bytes
                case .end: if let (kind, bytes) = message.take() { return .message(WebSocketMessage(kind, bytes)) }
                case .ping(let payload): return .ping(payload)
                case .pong(let payload): return .pong(payload)
                case .close(let code, let reason): return .close(code.rawValue, reason)
                }
            }
            guard let bytes = await transport.next() else { return nil }
            firstBytes += bytes.prefix(1)
            receiver.feed(bytes)
        }
    }

    /// Closes the connection with the code 1000, and expects the same of a client that returns messages.
    func close(_ client: Task<WebSocketError?, Never>) async throws {
        send(MartletWebSocketTests.close(1000))
        #expect(try await next() == .close(1000))
        transport.end()
        #expect(await client.value == nil)
    }

    /// Sends frames to the client, as one read unless they have more than 16 KiB.
    func send(_ frames: [UInt8]...) { transport.send(bytes(of: frames)) }
}

/// Something that the client sends.
enum Reply: Hashable {
    case message(WebSocketMessage)
    case ping([UInt8])
    case pong([UInt8])
    case close(UInt16, String = "")

    static func text(_ text: String) -> Reply { .message(.text(text)) }

    /// The payload of a ping; `nil` for anything else.
    var ping: [UInt8]? { if case .ping(let payload) = self { payload } else { nil } }
    var isPing: Bool { ping != nil }
}

/// Returns a frame of a server.
/// - Parameter bits: The reserved bits, 0 to 7.
func frame(_ opcode: UInt8, _ payload: [UInt8] = [], fin: Bool = true, bits: UInt8 = 0) -> [UInt8] {
    var bytes = FrameHead(.continuation, isFinal: fin, payloadByteCount: payload.count).bytes
    bytes[0] |= bits << 4 | opcode
    return bytes + payload
}

/// Returns the bytes of frames. `joined()` is slow without optimization.
func bytes(of frames: [[UInt8]]) -> [UInt8] { frames.reduce(into: []) { $0 += $1 } }

/// Returns a message in frames whose payloads have at most these sizes, one after the other and again.
func fragments(
    _ kind: WebSocketMessage.Kind, _ payload: [UInt8], byteCounts: [Int], isCompressed: Bool = false
) -> [[UInt8]] {
    var (frames, offset) = ([[UInt8]](), 0)
    repeat {
        let end = offset + min(byteCounts[frames.count % byteCounts.count], payload.count - offset)
        let opcode: UInt8 = !frames.isEmpty ? 0 : kind == .text ? 1 : 2
        frames.append(
            frame(
                opcode, Array(payload[offset..<end]), fin: end == payload.count,
                bits: frames.isEmpty && isCompressed ? 4 : 0))
        offset = end
    } while offset < payload.count
    return frames
}

func text(_ payload: String, fin: Bool = true) -> [UInt8] { frame(1, Array(payload.utf8), fin: fin) }
func more(_ payload: String, fin: Bool = true) -> [UInt8] { frame(0, Array(payload.utf8), fin: fin) }

/// Returns a Close frame.
func close(_ code: UInt16, _ reason: String = "") -> [UInt8] {
    frame(8, [UInt8(code >> 8), UInt8(code & 0xFF)] + Array(reason.utf8))
}

/// Timers that end when the test says so.
final class ManualTimers: Sendable {
    private let mailboxes: [WebSocketOptions.Timer: Mailbox<Void>] = [
        .ping: Mailbox(), .pong: Mailbox(), .close: Mailbox(), .reconnection: Mailbox(),
    ]
    private let log = Mutex<[(timer: WebSocketOptions.Timer, duration: Duration)]>([])

    /// Ends the current wait of a timer, or the next one.
    func fire(_ timer: WebSocketOptions.Timer) { mailboxes[timer]?.send(()) }

    /// The durations of the waits of a timer so far.
    func waits(_ timer: WebSocketOptions.Timer) -> [Duration] {
        log.withLock { $0.filter { $0.timer == timer }.map(\.duration) }
    }

    func sleep(_ timer: WebSocketOptions.Timer, _ duration: Duration) async throws {
        log.withLock { $0.append((timer, duration)) }
        guard await mailboxes[timer]?.next() != nil else { throw CancellationError() }
    }
}

/// Opens a connection in memory, and closes it after the closure.
/// - Parameter timers: Without timers, no wait ends.
@discardableResult func withSocket<Result>(
    timers: ManualTimers = ManualTimers(), negotiation: DeflateNegotiation? = nil, endsQuietly: Bool = false,
    _ change: (inout WebSocketOptions) -> Void = { _ in },
    _ body: (WebSocket, ScriptedServer) async throws -> Result
) async throws -> Result {
    var options = WebSocketOptions(change)
    options.sleep = { try await timers.sleep($0, $1) }
    let transport = MemoryTransport()
    let socket = WebSocket(
        transport, response: HTTPResponse(status: .switchingProtocols), negotiation: negotiation, options: options,
        endsQuietly: endsQuietly)
    defer { socket.cancel() }
    return try await body(socket, ScriptedServer(transport, negotiation))
}

/// A client that returns each message until the end of the connection.
func echo(_ socket: WebSocket) async -> WebSocketError? {
    do {
        for try await message in socket.messages { try await socket.send(message) }
        return nil
    } catch { return error as? WebSocketError }
}
