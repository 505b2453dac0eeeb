import Martlet

/// Why a request of a batch came to nothing, in the words of the protocol.
struct BatchFault: Error, Sendable {
    /// The kinds of the protocol.
    enum Kind: String, Sendable {
        case malformed = "protocol"
        case truncated, empty, connect, timeout
        case tooLarge = "too_large"
        case tooManyRedirects = "too_many_redirects"
        case decode
        case badURL = "bad_url"
        case unsupported, tls, cancelled, other
    }

    /// The kind.
    var kind: Kind
    /// What was wrong.
    var message: String

    init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    /// Any error of a call.
    init(_ error: any Error) {
        switch error {
        case let fault as BatchFault: self = fault
        case is CancellationError: self.init(.cancelled, "the request was cancelled")
        case let error as HTTPError: self.init(BatchFault.kind(of: error), error.message)
        default: self.init(.other, "\(error)")
        }
    }

    private static func kind(of error: HTTPError) -> Kind {
        switch error.code {
        case .protocolViolation, .limitExceeded, .unacceptableContentType, .unacceptableBody: .malformed
        case .truncated: .truncated
        case .emptyResponse: .empty
        case .connectionLost: error.phase == .receivingBody ? .truncated : .empty
        case .resolutionFailed, .connectFailed, .proxyFailed: .connect
        case .timedOut: .timeout
        case .bodyTooLarge: .tooLarge
        case .contentDecodingFailed: .decode
        case .invalidURL, .redirectRefused: .badURL
        case .tooManyRedirects: .tooManyRedirects
        case .authenticationFailed: .malformed
        case .tlsFailed: isTruncation(error) ? .truncated : .tls
        case .invalidRequest, .unacceptableStatus, .bodyNotReplayable, .bodyLengthMismatch, .bodySourceFailed,
            .fileFailed, .diskFull, .fileExists, .alreadyInProgress, .checksumMismatch,
            .representationChanged,
            .rangeRefused, .notResumable, .storedBodyDamaged, .sessionInvalidated, .systemFailed:
            .other
        }
    }

    /// Whether the peer cut a TLS connection that had stood.
    private static func isTruncation(_ error: HTTPError) -> Bool {
        (error.underlying as? TLSError)?.kind == .truncated && error.phase != .securing
    }
}
