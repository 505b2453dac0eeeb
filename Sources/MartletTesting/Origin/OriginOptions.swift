import FoundationEssentials
public import HTTPTypes
import MartletCore

/// The options of a test origin.
public struct OriginOptions: Sendable {
    /// The address of an origin.
    public enum Binding: Sendable, Hashable {
        /// `127.0.0.1`; with port 0 the kernel chooses a free one.
        case ipv4(port: Int)
        /// `[::1]`; with port 0 the kernel chooses a free one.
        case ipv6(port: Int)
        /// A Unix domain socket at a path of at most 107 bytes, where no file may exist. The file is removed when the
        /// origin stops. A leading `@` selects Linux's abstract namespace.
        case unix(path: String)
        /// An address literal of this machine, for origins that other machines can reach.
        case address(String, port: Int)

        /// `127.0.0.1` with a port that the kernel chooses.
        public static let loopback = Binding.ipv4(port: 0)
    }

    /// The address to listen on; by default `127.0.0.1` with a port that the kernel chooses.
    public var binding = Binding.loopback
    /// The TLS settings; `nil`, the default, for plain connections.
    public var tls: OriginTLS?
    /// The limits of the origin.
    public var limits = OriginLimits()
    /// Called after each response, before the next request of the connection is read; `nil` by default.
    public var log: (@Sendable (ServedRequest) async -> Void)?

    /// Creates options; by default those of a plain origin on `127.0.0.1`.
    public init(binding: Binding = .loopback, tls: OriginTLS? = nil) { (self.binding, self.tls) = (binding, tls) }

    /// A plain origin on `127.0.0.1`.
    public static let plain = OriginOptions()

    /// An origin over TLS on `127.0.0.1`.
    public static func tls(_ settings: OriginTLS = .trusted) -> OriginOptions { OriginOptions(tls: settings) }

    /// A plain origin on a Unix domain socket.
    public static func unix(path: String) -> OriginOptions { OriginOptions(binding: .unix(path: path)) }
}

/// A request that a test origin has responded to, for a log.
public struct ServedRequest: Sendable, Hashable, CustomStringConvertible {
    /// The method of the request.
    public let method: HTTPRequest.Method
    /// The request target, as sent.
    public let target: String
    /// The status; `nil` if no response was sent, because the client left before or a fault replaced it.
    public internal(set) var status: Int?
    /// The number of bytes of the response's body that were sent.
    public internal(set) var bodyByteCount: UInt64 = 0
    /// The time from the request's head to the end of the response.
    public internal(set) var duration = Duration.zero

    /// Method, target, status, bytes and milliseconds, in one line.
    public var description: String {
        let milliseconds = duration / .milliseconds(1)
        let time = "\((milliseconds * 10).rounded() / 10) ms"
        return "\(method) \(target) \(status.map(String.init) ?? "-") \(bodyByteCount) bytes \(time)"
    }
}

/// The limits of a test origin.
public struct OriginLimits: Sendable, Hashable {
    /// The number of requests after which a connection is closed, by `Connection: close`; `nil` for no limit.
    public var requestsPerConnection: Int?
    /// The maximum number of bytes that are read and discarded of a body that no handler read, so that the connection
    /// can be reused; 1 MiB by default. If more is left, the connection is closed after the response.
    public var unreadBodyLimit: UInt64 = 1 << 20
    /// The timeout of a TLS handshake; two minutes by default.
    public var handshakeTimeout = Duration.seconds(120)
    /// The maximum number of recorded requests; 10,000 by default. Older requests are dropped.
    public var recordLimit = 10_000
    /// The maximum number of bytes of all recorded bodies together; 16 MiB by default. The oldest bodies are dropped
    /// first, and a longer body is recorded up to this number.
    public var recordedBodyLimit = 16 << 20

    /// Creates the default limits.
    public init() {}
}

/// An error of a test origin, or of an operation of its handler.
public enum OriginError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The origin could not listen. Contains the system's error.
    case cannotListen(String)
    /// The address is not valid.
    case invalidAddress(String)
    /// The certificates could not be created.
    case certificates(String)
    /// An awaited event did not happen in time. Contains the event, and a description of the actual state.
    case timedOut(waitingFor: String)
    /// A request's body is longer than the caller's limit, in bytes.
    case bodyTooLarge(limit: Int)
    /// A request's body was read after its response was sent, or by two readers at once.
    case bodyNotReadable
    /// A request's body could not be decoded from JSON, or is not a valid multipart body.
    case bodyNotDecodable(String)
    /// The client's bytes are not HTTP, or its body ended too early.
    case malformedRequest(String)
    /// The connection ended before everything was read or written.
    case disconnected(String)
    /// A handler's body has fewer bytes than its response declared; the connection is cut.
    case bodyTooShort(declared: UInt64, written: UInt64)
    /// A handler's body has more bytes than its response declared; the excess is not sent.
    case bodyTooLong(declared: UInt64)
    /// Not all bytes of a request's body are recorded: there were more than ``OriginLimits/recordedBodyLimit``.
    case bodyNotRecorded(byteCount: UInt64)
    /// A file could not be read. Contains its path and the reason.
    case file(String)

    static func decoding<Value: Decodable>(_ type: Value.Type, _ bytes: [UInt8], _ decoder: BodyDecoder)
        throws(OriginError) -> Value
    { do { return try decoder.value(type, from: Data(bytes)) } catch { throw .bodyNotDecodable("\(error)") } }

    /// The description of the error.
    public var description: String {
        switch self {
        case .cannotListen(let reason): "the origin cannot listen: \(reason)"
        case .invalidAddress(let address): "cannot listen on \(address): invalid address"
        case .certificates(let reason): "cannot create the origin's certificates: \(reason)"
        case .timedOut(let awaited): "timed out waiting for \(awaited)"
        case .bodyTooLarge(let limit): "the request's body is longer than \(limit) bytes"
        case .bodyNotReadable: "the request's body can only be read once, by one reader, until the response is complete"
        case .bodyNotDecodable(let reason): "the request's body cannot be decoded: \(reason)"
        case .bodyNotRecorded(let count):
            "the request's body of \(count) bytes is not recorded: raise OriginLimits.recordedBodyLimit"
        case .malformedRequest(let reason): "invalid request: \(reason)"
        case .disconnected(let reason): "the client disconnected: \(reason)"
        case .bodyTooShort(let declared, let written): "the response declares \(declared) bytes but has only \(written)"
        case .bodyTooLong(let declared): "the response has more than the \(declared) bytes it declares"
        case .file(let reason): reason
        }
    }
}
