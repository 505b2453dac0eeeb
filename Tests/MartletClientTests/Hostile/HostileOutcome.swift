import MartletContent
import MartletCore
import MartletTransport
import MartletWire

/// The expected outcome of a call to a hostile peer.
enum HostileOutcome: Sendable {
    /// A response with this body, and whether the connection is reusable.
    case answered(String, isKept: Bool)
    /// This error in the message, at this byte offset if one is given.
    case rejected(WireErrorCode, at: Int? = nil)
    /// A truncation of this kind, after any number of bytes.
    case truncated
    /// This error of the content coding.
    case undecodable(ContentDecodingError)
    /// A body larger than the collection limit.
    case tooLarge
    /// This timeout expired in this phase.
    case timedOut(HTTPError.Timeout, HTTPError.Phase)
    /// The connection was lost by a reset.
    case reset
    /// The peer reset the connection before it was established.
    case unreachable
    /// A TLS failure for this reason; no request was sent.
    case insecure(Insecurity)

    /// The reason for a TLS failure.
    enum Insecurity: Hashable, Sendable {
        /// The peer sent an alert with this number.
        case alert(Int)
        /// The peer's data is not TLS.
        case notTLS
        /// The peer's data is malformed TLS.
        case garbage
        /// The peer supports only other versions.
        case version
        /// The peer closed the connection.
        case truncated

        /// Creates the reason for a TLS error.
        init?(_ kind: TLSError.Kind) {
            switch kind {
            case .alert(let number, _): self = .alert(number)
            case .protocolVersion: self = .version
            case .truncated: self = .truncated
            case .handshake(let reason):
                self = reason.contains("does not seem to speak TLS") ? .notTLS : .garbage
            default: return nil
            }
        }
    }

    /// Whether the connection is reusable.
    var isKept: Bool {
        if case .answered(_, isKept: true) = self { true } else { false }
    }

    /// The code of the public error; `nil` for a response. The mapping from message errors is repeated here, because
    /// the library's own mapping is under test.
    var code: HTTPError.Code? {
        switch self {
        case .answered: nil
        case .truncated: .truncated
        case .undecodable(.tooLarge): .bodyTooLarge
        case .undecodable: .contentDecodingFailed
        case .tooLarge: .bodyTooLarge
        case .timedOut: .timedOut
        case .reset: .connectionLost
        case .unreachable: .connectFailed
        case .insecure: .tlsFailed
        case .rejected(let fault, _):
            switch fault {
            case .emptyResponse: .emptyResponse
            case .truncated: .truncated
            case .headTooLarge, .lineTooLong, .tooManyLines, .tooManyInformationalResponses,
                .trailersTooLarge, .chunkExtensionsTooLarge, .chunkSizeTooLong:
                .limitExceeded
            default: .protocolViolation
            }
        }
    }
}
