import MartletTransport
import Synchronization

/// Stands between clients and a server on loopback, and tampers with what the server says, which it does not understand:
/// passes on so many bytes and ends the stream, or turns a bit over.
final class CuttingRelay: Sendable {
    /// What is done to the server's bytes.
    enum Tampering: Hashable, Sendable {
        /// Nothing.
        case none
        /// They end after so many.
        case cut(Int)
        /// This one has its lowest bit turned over.
        case flip(Int)
    }

    private let listener: Listener
    private let accepting: Task<Void, Never>
    /// Where it listens.
    let port: Int

    /// A relay to a port of loopback.
    init(to port: Int) throws {
        let loop = EventLoop.sharedOrStalled
        guard let any = SocketAddress(literal: "127.0.0.1", port: 0) else { throw NoAddress() }
        let listener = try Listener(address: any, loop: loop)
        self.listener = listener
        self.port = listener.address.port ?? 0
        let current = Tamper()
        tamper = current
        // Unstructured, since it lives until the relay is closed.
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

    /// Loopback has no such address, which cannot be.
    struct NoAddress: Error {}

    /// What is done on the connections from now on.
    func use(_ tampering: Tampering) {
        tamper.value.withLock { $0 = tampering }
    }

    /// Stops listening; connections end with their ends.
    func close() {
        listener.close()
        accepting.cancel()
    }

    private static func relay(_ client: PlainStream, to port: Int, _ tampering: Tampering) async {
        defer { client.close() }
        let dialer = Dialer(settings: DialSettings(), loop: EventLoop.sharedOrStalled)
        let destination = Destination(isSecure: false, host: "127.0.0.1", port: port)
        do {
            let deadline = MonotonicTime.now().advanced(by: Patience.long)
            let server = try await dialer.dial(destination, until: deadline).stream
            defer { server.close() }
            async let up: Void = pump(from: client, to: server, .none)
            await pump(from: server, to: client, tampering)
            await up
        } catch {
            return
        }
    }

    /// Passes bytes on until either side ends; the other is told.
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
