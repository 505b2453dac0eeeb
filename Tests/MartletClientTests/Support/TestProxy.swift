import MartletTransport
import Synchronization

/// A correct loopback proxy: CONNECT, plain or over TLS, or SOCKS5. It connects to a fixed loopback port whatever the
/// target, and records the requests.
final class TestProxy: Sendable {
    /// The protocol and the requirements of the proxy.
    struct Settings: Sendable {
        /// Whether the proxy uses SOCKS5 instead of HTTP.
        var isSocks = false
        /// The TLS context of the proxy; `nil` for a plain proxy.
        var context: TLSContext?
        /// The required value of `Proxy-Authorization`; `nil` if none is required.
        var authorization: String?
        /// The challenges of a 407.
        var challenges = ["Basic realm=\"proxy\""]
        /// Whether a 407 closes the connection and announces it.
        var closesAfterRefusal = false
        /// The required SOCKS user name and password.
        var user: (name: String, password: String)?
        /// The bytes before the head that opens the tunnel.
        var preface = ""
        /// The head that opens the tunnel.
        var opening = "HTTP/1.1 200 Connection established\r\n\r\n"
        /// The SOCKS reply codes, one per request; success after the last one.
        var socksCodes: [UInt8] = []
    }

    private struct State {
        var heads: [String] = []
        var targets: [String] = []
        var told: [String] = []
        var connectionCount = 0
        var codes: [UInt8] = []
    }

    private let state: Mutex<State>
    private let listener: Listener
    private let accepting: Task<Void, Never>
    /// The port on which the proxy listens.
    let port: Int

    /// Starts a proxy for a loopback port.
    init(to target: Int, _ settings: Settings = Settings()) throws {
        let loop = EventLoop.sharedOrStalled
        guard let any = SocketAddress(literal: "127.0.0.1", port: 0) else { throw Fault() }
        let listener = try Listener(address: any, loop: loop)
        self.listener = listener
        port = listener.address.port ?? 0
        let box = Box()
        // Unstructured, because it runs until the proxy is closed.
        accepting = Task {
            while true {
                do {
                    let socket = try await listener.accept(loop: loop)
                    Task { await box.proxy()?.serve(socket, to: target, settings) }
                } catch {
                    return
                }
            }
        }
        state = Mutex(State(codes: settings.socksCodes))
        box.set(self)
    }

    private final class Box: Sendable {
        private struct Weak { weak var proxy: TestProxy? }
        private let weak = Mutex(Weak())
        func set(_ proxy: TestProxy) { weak.withLock { $0.proxy = proxy } }
        func proxy() -> TestProxy? { weak.withLock { $0.proxy } }
    }

    /// A violation of the expected protocol.
    struct Fault: Error {}

    /// The heads of all requests to the proxy itself.
    var heads: [String] { state.withLock { $0.heads } }
    /// The requested targets as `host:port`, in order of arrival.
    var targets: [String] { state.withLock { $0.targets } }
    /// The received SOCKS credentials, as `user:password`.
    var told: [String] { state.withLock { $0.told } }
    /// The number of accepted connections.
    var connectionCount: Int { state.withLock { $0.connectionCount } }

    /// Stops listening. Connections end when either side ends.
    func close() {
        listener.close()
        accepting.cancel()
    }

    // MARK: One connection

    private static var soon: MonotonicTime { MonotonicTime.now().advanced(by: TestTimeouts.long) }

    private func serve(_ socket: Socket, to target: Int, _ settings: Settings) async {
        state.withLock { $0.connectionCount += 1 }
        do {
            let client: any ByteStream =
                if let context = settings.context {
                    try await TLSStream.accept(socket: socket, context: context, deadline: Self.soon)
                } else {
                    PlainStream(socket: socket, remoteAddress: nil)
                }
            defer { client.close() }
            let isOpen =
                settings.isSocks ? try await socks(client, settings) : try await connect(client, settings)
            guard isOpen else { return }
            let dialer = Dialer(settings: DialSettings(), loop: EventLoop.sharedOrStalled)
            let destination = Destination(isSecure: false, host: "127.0.0.1", port: target)
            let server = try await dialer.dial(destination, until: Self.soon).stream
            defer { server.close() }
            async let up: Void = TestProxy.pump(from: client, to: server)
            await TestProxy.pump(from: server, to: client)
            await up
        } catch {
            socket.close()
        }
    }

    private func connect(_ client: any ByteStream, _ settings: Settings) async throws -> Bool {
        while true {
            var head = ""
            while !head.hasSuffix("\r\n\r\n") {
                guard let byte = try await client.receive(atMost: 1, until: Self.soon) else { return false }
                head += String(decoding: byte, as: UTF8.self)
            }
            let seen = head
            state.withLock { state in
                state.heads.append(seen)
                state.targets.append(seen.split(separator: " ").dropFirst().first.map(String.init) ?? "")
            }
            if let wanted = settings.authorization,
                !head.contains("\r\nProxy-Authorization: \(wanted)\r\n")
            {
                let challenges = settings.challenges.map { "Proxy-Authenticate: \($0)\r\n" }.joined()
                let ending = settings.closesAfterRefusal ? "Connection: close\r\n" : ""
                try await client.send(
                    Array(
                        "HTTP/1.1 407 Authentication Required\r\n\(challenges)\(ending)Content-Length: 6\r\n\r\nno way"
                            .utf8), until: Self.soon)
                if settings.closesAfterRefusal { return false }
                continue
            }
            try await client.send(Array((settings.preface + settings.opening).utf8), until: Self.soon)
            return true
        }
    }

    private func socks(_ client: any ByteStream, _ settings: Settings) async throws -> Bool {
        func read(_ count: Int) async throws -> [UInt8] {
            var bytes: [UInt8] = []
            while bytes.count < count {
                guard let more = try await client.receive(atMost: count - bytes.count, until: Self.soon)
                else { throw Fault() }
                bytes += more
            }
            return bytes
        }
        let greeting = try await read(2)
        let methods = try await read(Int(greeting[1]))
        if let user = settings.user {
            guard methods.contains(2) else {
                try await client.send([5, 0xFF], until: Self.soon)
                return false
            }
            try await client.send([5, 2], until: Self.soon)
            let name = try await read(Int(try await read(2)[1]))
            let password = try await read(Int(try await read(1)[0]))
            let told = String(decoding: name + [58] + password, as: UTF8.self)
            state.withLock { $0.told.append(told) }
            let isRight = told == "\(user.name):\(user.password)"
            try await client.send([1, isRight ? 0 : 1], until: Self.soon)
            if !isRight { return false }
        } else {
            try await client.send([5, 0], until: Self.soon)
        }
        let request = try await read(4)
        let host: String
        switch request[3] {
        case 1: host = try await read(4).map(String.init).joined(separator: ".")
        case 3: host = String(decoding: try await read(Int(try await read(1)[0])), as: UTF8.self)
        default: host = "[\(try await read(16).map { String($0, radix: 16) }.joined(separator: "."))]"
        }
        let port = try await read(2)
        let code = state.withLock { state in
            state.targets.append("\(host):\(Int(port[0]) << 8 | Int(port[1]))")
            return state.codes.isEmpty ? 0 : state.codes.removeFirst()
        }
        try await client.send([5, code, 0, 1, 0, 0, 0, 0, 0, 0], until: Self.soon)
        return code == 0
    }

    /// Forwards bytes until either side ends, and then ends the other side.
    private static func pump(from source: any ByteStream, to target: any ByteStream) async {
        do {
            while let bytes = try await source.receive(atMost: 65_536, until: Self.soon) {
                try await target.send(bytes, until: Self.soon)
            }
            target.shutdownWriting()
        } catch {
            target.shutdownWriting()
        }
    }
}
