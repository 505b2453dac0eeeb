/// An error of an open WebSocket connection. Errors of the opening handshake are an `HTTPError`, and a cancelled task
/// receives `CancellationError`. Later versions may add cases.
public enum WebSocketError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The connection is closed or closing: by the server with this code, or by ``WebSocket/close(code:reason:)``.
    case closed(WebSocketCloseCode, reason: String)
    /// The connection ended without a Close frame; the text is the reason.
    case connectionLost(String)
    /// The server violated RFC 6455 or RFC 7692. The connection is closed with the code 1002.
    case protocolViolation(String)
    /// A text is not valid UTF-8. If the server sent it, the connection is closed with the code 1007.
    case invalidText
    /// A compressed message of the server is corrupt, or expands too much. The connection is closed with the code 1007.
    case invalidCompression(String)
    /// A message or a frame of the server exceeds a limit in bytes. The connection is closed with the code 1009.
    case messageTooLarge(limit: Int)
    /// The server sent nothing within ``WebSocketOptions/pongTimeout`` after a ping.
    case pongTimedOut
    /// A second task reads messages while another one waits for one. The connection stays open.
    case concurrentRead
    /// A streamed message was read too late: a later message was requested before.
    case messageSkipped
    /// A streamed message could not be completed, because its source failed or its task was cancelled. RFC 6455 has no
    /// way to abandon a message, so the connection is closed with the code 1011.
    case messageAbandoned
    /// An argument is invalid, such as a reason with more than 123 bytes of UTF-8. The connection stays open.
    case invalidArgument(String)

    /// The error for a failure of the connection underneath.
    static func lost(_ error: any Error) -> WebSocketError {
        .connectionLost(error is CancellationError ? "it was closed on this side" : "\(error)")
    }

    /// The code of the Close frame that this client sends after the error.
    var closeCode: WebSocketCloseCode {
        switch self {
        case .protocolViolation: .protocolError
        case .invalidText, .invalidCompression: .invalidPayload
        case .messageTooLarge: .messageTooBig
        default: .internalError
        }
    }

    /// The error as a sentence without a full stop.
    public var description: String {
        switch self {
        case .closed(let code, let reason):
            "the WebSocket connection was closed with the code \(code)\(reason.isEmpty ? "" : ": \(reason)")"
        case .connectionLost(let reason): "the WebSocket connection was lost: \(reason)"
        case .protocolViolation(let reason): "the server violated the WebSocket protocol: \(reason)"
        case .invalidText: "a text message is not valid UTF-8"
        case .invalidCompression(let reason): "a compressed message cannot be read: \(reason)"
        case .messageTooLarge(let limit):
            "a message or frame is larger than \(limit) bytes; see messageLimit and frameLimit of WebSocketOptions"
        case .pongTimedOut: "the server did not answer a ping in time"
        case .concurrentRead: "two tasks read messages of one WebSocket connection at the same time"
        case .messageSkipped: "the streamed message is no longer available, because a later one was requested"
        case .messageAbandoned: "a streamed message was not completed, so the WebSocket connection was closed"
        case .invalidArgument(let reason): reason
        }
    }
}
