/// Where and how a test origin listens.
public struct OriginOptions: Sendable {
    /// Where an origin can be reached.
    public enum Binding: Sendable, Hashable {
        /// `127.0.0.1`; port 0 lets the kernel choose a free one.
        case ipv4(port: Int)
        /// `[::1]`; port 0 lets the kernel choose a free one.
        case ipv6(port: Int)
        /// A unix domain socket at a path of at most 107 bytes, where no file may be; it is removed at the
        /// end. A leading `@` names one in Linux's abstract space.
        case unix(path: String)
        /// An address literal of this machine, as far as it shall be reached from elsewhere.
        case address(String, port: Int)

        /// `127.0.0.1` with a port that the kernel chooses.
        public static let loopback = Binding.ipv4(port: 0)
    }

    /// Where it listens; by default on `127.0.0.1` with a port that the kernel chooses.
    public var binding = Binding.loopback
    /// How it speaks TLS; `nil`, the default: not at all.
    public var tls: OriginTLS?
    /// What it puts up with.
    public var limits = OriginLimits()

    /// Options; by default a plain origin on `127.0.0.1`.
    public init(binding: Binding = .loopback, tls: OriginTLS? = nil) {
        self.binding = binding
        self.tls = tls
    }

    /// A plain origin on `127.0.0.1`.
    public static let plain = OriginOptions()

    /// An origin over TLS on `127.0.0.1`.
    public static func tls(_ settings: OriginTLS = .trusted) -> OriginOptions { OriginOptions(tls: settings) }

    /// A plain origin on a unix domain socket.
    public static func unix(path: String) -> OriginOptions { OriginOptions(binding: .unix(path: path)) }
}

/// What a test origin puts up with.
public struct OriginLimits: Sendable, Hashable {
    /// After how many requests a connection is closed, with `Connection: close` in the last response; `nil`:
    /// never.
    public var requestsPerConnection: Int?

    /// How much of a body that no handler read is read away so that the connection can live on; in bytes, 1
    /// MiB by default. With more left the connection is closed behind the response.
    public var unreadBodyLimit: UInt64 = 1 << 20

    /// How long a TLS handshake may take; two minutes by default.
    public var handshakeTimeout = Duration.seconds(120)

    /// How many requests are recorded, the newest ones; 10,000 by default.
    public var recordLimit = 10_000

    /// The defaults.
    public init() {}
}

/// How an origin treats its connections.
enum OriginConduct: Sendable {
    /// It speaks HTTP, and a handler answers.
    case handler(OriginHandler)
    /// It plays scripts: the first connection the first one, and so on; the last one again and again.
    case scripts([ServerScript])

    /// Plays scripts; without any, each connection is closed at once.
    init(scripts: [ServerScript]) { self = .scripts(scripts.isEmpty ? [ServerScript([])] : scripts) }
}

/// Why the test origin, or what a handler asked of it, failed.
public enum OriginError: Error, Hashable, Sendable, CustomStringConvertible {
    /// It could not listen: what the system said.
    case cannotListen(String)
    /// The address given to it cannot be used.
    case invalidAddress(String)
    /// Its certificates could not be made.
    case certificates(String)
    /// Something awaited did not happen in time: what, and what there was instead.
    case timedOut(waitingFor: String)
    /// A request's body is longer than the caller was ready to hold, in bytes.
    case bodyTooLarge(limit: Int)
    /// A request's body was asked for after its answer was sent, or by two readers at once.
    case bodyNotReadable
    /// A request's body is not what was to be decoded from it.
    case bodyNotDecodable(String)
    /// The client's bytes are not HTTP, or its body ended too early.
    case malformedRequest(String)
    /// The client closed, reset or was cut off while something was still to be read or written.
    case disconnected(String)
    /// A handler's body came to fewer bytes than its response declared; the connection is cut.
    case bodyTooShort(declared: UInt64, written: UInt64)
    /// A handler's body came to more bytes than its response declared; the excess is not sent.
    case bodyTooLong(declared: UInt64)
    /// A file could not be read: its path and the reason.
    case file(String)

    /// What happened.
    public var description: String {
        switch self {
        case .cannotListen(let reason): "the origin cannot listen: \(reason)"
        case .invalidAddress(let address): "\(address) is not an address to listen on"
        case .certificates(let reason): "the origin's certificates cannot be made: \(reason)"
        case .timedOut(let awaited): "waited in vain for \(awaited)"
        case .bodyTooLarge(let limit): "the request's body is longer than \(limit) bytes"
        case .bodyNotReadable: "the request's body can be read by one reader, until its response is complete"
        case .bodyNotDecodable(let reason): "the request's body cannot be decoded: \(reason)"
        case .malformedRequest(let reason): "not a valid request: \(reason)"
        case .disconnected(let reason): "the client is gone: \(reason)"
        case .bodyTooShort(let declared, let written):
            "the response declares \(declared) bytes but has only \(written)"
        case .bodyTooLong(let declared): "the response has more than the \(declared) bytes it declares"
        case .file(let reason): reason
        }
    }
}
