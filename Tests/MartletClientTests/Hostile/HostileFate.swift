import MartletContent
import MartletCore
import MartletTransport
import MartletWire

/// What a call to a hostile peer must come to.
enum HostileFate: Sendable {
    /// An answer with this body, and whether the connection may carry another request.
    case answered(String, isKept: Bool)
    /// This fault of the message, at this byte of it where one is given.
    case refused(WireErrorCode, at: Int? = nil)
    /// This kind of truncation, whatever came before it.
    case truncated
    /// This fault of the content coding.
    case undecodable(ContentDecodingError)
    /// A body larger than what may be collected.
    case tooLarge
    /// This clock ran out, in this phase.
    case timedOut(HTTPError.Timeout, HTTPError.Phase)
    /// The connection was lost by a reset.
    case reset
    /// No connection: the peer has reset it before it was one.
    case unreachable
    /// No TLS, for this reason; and nothing was sent.
    case insecure(Insecurity)

    /// Why there is no TLS.
    enum Insecurity: Hashable, Sendable {
        /// The peer sent an alert of this number.
        case alert(Int)
        /// What the peer says is no TLS.
        case notTLS
        /// What the peer says is TLS, but makes no sense.
        case garbage
        /// The peer speaks other versions.
        case version
        /// The peer has ended the connection.
        case truncated

        /// What an error of TLS says.
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

    /// Whether the connection may carry another request.
    var isKept: Bool {
        if case .answered(_, isKept: true) = self { true } else { false }
    }

    /// The code of the public error; `nil` for an answer. For a fault of the message it is written out here rather than
    /// asked of the library, which is what is being tested.
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
        case .refused(let fault, _):
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
