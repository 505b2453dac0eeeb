/// A message of a WebSocket connection (RFC 6455 §5.6).
public enum WebSocketMessage: Hashable, Sendable {
    /// A text.
    case text(String)
    /// Bytes.
    case binary([UInt8])

    /// The type of a message.
    public enum Kind: String, Hashable, Sendable {
        /// The type of the message with this name.
        case text, binary
    }

    /// The type of the message.
    public var kind: Kind { if case .text = self { .text } else { .binary } }
    /// The text of a text message; `nil` for bytes.
    public var text: String? { if case .text(let text) = self { text } else { nil } }
    /// The bytes of the message: those of a text are UTF-8.
    public var bytes: [UInt8] {
        switch self {
        case .text(let text): Array(text.utf8)
        case .binary(let bytes): bytes
        }
    }

    /// Creates a message of received bytes, which are valid UTF-8 for a text.
    package init(_ kind: Kind, _ bytes: [UInt8]) {
        self = kind == .text ? .text(String(decoding: bytes, as: UTF8.self)) : .binary(bytes)
    }
}

/// The reason for the end of a connection as a number (RFC 6455 §7.4).
public struct WebSocketCloseCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The number, such as 1000.
    public var rawValue: UInt16

    /// Creates a code: an application may use 3000 to 4999 for its own.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// The connection has fulfilled its purpose.
    public static let normalClosure = WebSocketCloseCode(rawValue: 1000)
    /// A server shuts down, or a user leaves a page.
    public static let goingAway = WebSocketCloseCode(rawValue: 1001)
    /// The peer violated the protocol.
    public static let protocolError = WebSocketCloseCode(rawValue: 1002)
    /// The peer sent a type of message that is not accepted.
    public static let unsupportedData = WebSocketCloseCode(rawValue: 1003)
    /// The Close frame had no code; never sent.
    public static let noStatus = WebSocketCloseCode(rawValue: 1005)
    /// The connection ended without a Close frame; never sent.
    public static let abnormalClosure = WebSocketCloseCode(rawValue: 1006)
    /// The contents of a message do not match its type, such as a text that is not UTF-8.
    public static let invalidPayload = WebSocketCloseCode(rawValue: 1007)
    /// A message violates a policy.
    public static let policyViolation = WebSocketCloseCode(rawValue: 1008)
    /// A message is too large.
    public static let messageTooBig = WebSocketCloseCode(rawValue: 1009)
    /// The server did not negotiate an extension that the client needs.
    public static let extensionRequired = WebSocketCloseCode(rawValue: 1010)
    /// An unexpected condition.
    public static let internalError = WebSocketCloseCode(rawValue: 1011)
    /// The server restarts; a client should connect again after some seconds.
    public static let serviceRestart = WebSocketCloseCode(rawValue: 1012)
    /// The server is overloaded.
    public static let tryAgainLater = WebSocketCloseCode(rawValue: 1013)

    /// Whether a Close frame may have the code: 1000 to 1003, 1007 to 1014, and 3000 to 4999 (RFC 6455 §7.4, IANA).
    public var isAllowedInFrames: Bool {
        switch rawValue {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }

    /// Returns the payload of a Close frame with the code: empty for ``noStatus``.
    package func payload(reason: String = "") -> [UInt8] {
        self == .noStatus ? [] : [UInt8(rawValue >> 8), UInt8(rawValue & 0xFF)] + Array(reason.utf8)
    }

    /// The number.
    public var description: String { "\(rawValue)" }
}
