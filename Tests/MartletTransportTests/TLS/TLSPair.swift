import Glibc
import MartletTransport

/// Two connected sockets and both ends of a TLS handshake over them.
struct TLSPair {
    let client: Socket
    let server: Socket

    /// Connects the sockets as a socket pair.
    init() throws {
        let loop = try EventLoop.shared.get()
        var descriptors: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        guard unsafe socketpair(AF_UNIX, type, 0, &descriptors) == 0 else {
            throw SystemError(operation: "socketpair", code: errno)
        }
        client = try Socket(adopting: descriptors[0], loop: loop)
        server = try Socket(adopting: descriptors[1], loop: loop)
    }

    /// The outcome of the handshake on both sides.
    struct Outcome {
        let client: Result<TLSStream, TransportError>
        let server: Result<TLSStream, TransportError>

        var clientError: TLSError? { Outcome.error(client) }
        var serverError: TLSError? { Outcome.error(server) }

        private static func error(_ result: Result<TLSStream, TransportError>) -> TLSError? {
            if case .failure(.tls(let error)) = result { error } else { nil }
        }
    }

    /// A deadline that a working stream never reaches.
    static var soon: MonotonicTime { StreamPair.soon }

    /// Performs the handshake on both sides concurrently.
    func handshake(
        client clientContext: TLSContext, server serverContext: TLSContext, name: String = "localhost",
        port: Int = 443
    ) async -> Outcome {
        async let accepted = TLSPair.accept(server, serverContext)
        async let connected = TLSPair.connect(client, clientContext, name, port)
        return Outcome(client: await connected, server: await accepted)
    }

    static func connect(
        _ socket: Socket, _ context: TLSContext, _ name: String, _ port: Int
    ) async -> Result<TLSStream, TransportError> {
        do throws(TransportError) {
            return .success(
                try await TLSStream.connect(
                    socket: socket, context: context, serverName: name, port: port, deadline: soon))
        } catch {
            return .failure(error)
        }
    }

    static func accept(_ socket: Socket, _ context: TLSContext) async -> Result<TLSStream, TransportError> {
        do throws(TransportError) {
            return .success(try await TLSStream.accept(socket: socket, context: context, deadline: soon))
        } catch {
            return .failure(error)
        }
    }
}

extension TLSStream {
    /// Writes all of the bytes.
    func send(_ bytes: [UInt8]) async throws {
        var offset = 0
        while offset < bytes.count {
            let count = try unsafe bytes.withUnsafeBytes { raw throws(TransportError) in
                unsafe try write(UnsafeRawBufferPointer(rebasing: raw[offset...]))
            }
            if count == 0 { try await waitUntilWritable(until: TLSPair.soon) }
            offset += count
        }
    }

    /// Reads once and waits for bytes if necessary.
    func receive(upTo limit: Int = 65_536) async throws -> (ReadOutcome, [UInt8]) {
        var buffer = [UInt8](repeating: 0, count: limit)
        while true {
            let outcome = try unsafe buffer.withUnsafeMutableBytes { raw throws(TransportError) in
                unsafe try read(into: raw)
            }
            switch outcome {
            case .bytes(let count): return (outcome, Array(buffer[..<count]))
            case .endOfStream: return (outcome, [])
            case .wouldBlock: try await waitUntilReadable(until: TLSPair.soon)
            }
        }
    }

    /// Reads exactly `count` bytes.
    func receive(exactly count: Int) async throws -> [UInt8] {
        var all: [UInt8] = []
        while all.count < count {
            let (outcome, bytes) = try await receive(upTo: min(65_536, count - all.count))
            if case .endOfStream = outcome { return all }
            all += bytes
        }
        return all
    }
}
