import MartletTransport
import Synchronization

/// A relay between clients and a loopback server that modifies the server's bytes without parsing them: it ends the
/// stream after some bytes, or flips a bit.
final class CuttingRelay: Sendable {
    /// A modification of the server's bytes.
    enum Tampering: Hashable, Sendable {
        /// The bytes are unchanged.
        case none
        /// The stream ends after this number of bytes.
        case cut(Int)
        /// The lowest bit of the byte at this offset is flipped.
        case flip(Int)
    }

    private let listener: Listener
    private let accepting: Task<Void, Never>
    /// The port on which the relay listens.
    let port: Int

    /// Starts a relay to a loopback port.
    init(to port: Int) throws {
        let loop = EventLoop.sharedOrStalled
        guard let any = SocketAddress(literal: "127.0.0.1", port: 0) else { throw NoAddress() }
        let listener = try Listener(address: any, loop: loop)
        self.listener = listener
        self.port = listener.address.port ?? 0
        let current = Tamper()
        tamper = current
        // Unstructured, because it runs until the relay is closed.
        accepting = Task {
            while true {
                do {
                    let socket = try await listener.accept(loop: loop)
                    let client = PlainStream(socket: socket, remoteAddress: nil)
                    let tampering = current.value.withLock { $0 }
                    Task { await CuttingRelay.relay(client, to: port, tampering) }
                } catch {
                    return
                }
            }
        }
    }

    private final class Tamper: Sendable {
        let value = Mutex(Tampering.none)
    }

    private let tamper: Tamper

    /// The impossible case of a loopback listener without an address.
    struct NoAddress: Error {}

    /// Sets the modification for new connections.
    func use(_ tampering: Tampering) {
        tamper.value.withLock { $0 = tampering }
    }

    /// Stops listening. Connections end when either side ends.
    func close() {
        listener.close()
        accepting.cancel()
    }

    private static func relay(_ client: PlainStream, to port: Int, _ tampering: Tampering) async {
        defer { client.close() }
        let dialer = Dialer(settings: DialSettings(), loop: EventLoop.sharedOrStalled)
        let destination = Destination(isSecure: false, host: "127.0.0.1", port: port)
        do {
            let deadline = MonotonicTime.now().advanced(by: TestTimeouts.long)
            let server = try await dialer.dial(destination, until: deadline).stream
            defer { server.close() }
            async let up: Void = pump(from: client, to: server, .none)
            await pump(from: server, to: client, tampering)
            await up
        } catch {
            return
        }
    }

    /// Forwards bytes until either side ends, and then ends the other side.
    private static func pump(
        from source: any ByteStream, to target: any ByteStream, _ tampering: Tampering
    ) async {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        var passed = 0
        do {
            while true {
                let outcome = try unsafe buffer.withUnsafeMutableBytes { raw in
                    unsafe try source.read(into: raw)
                }
                switch outcome {
                case .wouldBlock: try await source.waitUntilReadable(until: .distantFuture)
                case .endOfStream: return target.shutdownWriting()
                case .bytes(let count):
                    var piece = Array(buffer[..<count])
                    var isCut = false
                    switch tampering {
                    case .none: break
                    case .flip(let offset):
                        if (passed..<passed + count).contains(offset) { piece[offset - passed] ^= 1 }
                    case .cut(let limit):
                        isCut = passed + count >= limit
                        piece = Array(piece.prefix(limit - passed))
                    }
                    passed += count
                    try await write(piece, to: target)
                    if isCut { return target.shutdownWriting() }
                }
            }
        } catch {
            target.shutdownWriting()
        }
    }

    private static func write(_ bytes: [UInt8], to target: any ByteStream) async throws(TransportError) {
        var offset = 0
        while offset < bytes.count {
            let count = try target.write(bytes, from: offset)
            if count == 0 { try await target.waitUntilWritable(until: .distantFuture) }
            offset += count
        }
    }
}
