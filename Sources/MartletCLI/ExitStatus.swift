import Martlet
import MartletUploads
import MartletWebSocket

/// An exit code of the program: curl's number if curl has a code with the same meaning.
struct ExitStatus: Error, Hashable, Sendable {
    /// The exit code, 0–255.
    var code: Int32

    static let success = ExitStatus(code: 0)
    static let unsupportedScheme = ExitStatus(code: 1)
    static let usage = ExitStatus(code: 2)
    static let malformedURL = ExitStatus(code: 3)
    static let unresolvedProxy = ExitStatus(code: 5)
    static let unresolvedHost = ExitStatus(code: 6)
    static let connectFailed = ExitStatus(code: 7)
    static let weirdReply = ExitStatus(code: 8)
    static let partialBody = ExitStatus(code: 18)
    static let rejectedByStatus = ExitStatus(code: 22)
    static let writeFailed = ExitStatus(code: 23)
    static let readFailed = ExitStatus(code: 26)
    static let timedOut = ExitStatus(code: 28)
    static let rangeRejected = ExitStatus(code: 33)
    static let tlsFailed = ExitStatus(code: 35)
    static let interfaceFailed = ExitStatus(code: 45)
    static let tooManyRedirects = ExitStatus(code: 47)
    static let emptyReply = ExitStatus(code: 52)
    static let sendFailed = ExitStatus(code: 55)
    static let receiveFailed = ExitStatus(code: 56)
    static let clientCertificate = ExitStatus(code: 58)
    static let cipher = ExitStatus(code: 59)
    static let certificateRejected = ExitStatus(code: 60)
    static let contentCoding = ExitStatus(code: 61)
    static let tooLarge = ExitStatus(code: 63)
    static let rewindFailed = ExitStatus(code: 65)
    static let authorityFile = ExitStatus(code: 77)
    static let revocationList = ExitStatus(code: 82)
    static let pinMismatch = ExitStatus(code: 90)
    static let authenticationFailed = ExitStatus(code: 94)
    static let proxyFailed = ExitStatus(code: 97)
    static let checksum = ExitStatus(code: 100)
    static let changedOnServer = ExitStatus(code: 101)
    static let notResumable = ExitStatus(code: 102)
    /// There is no route, or requests are left in the offline queue for a later run.
    static let offline = ExitStatus(code: 103)
    static let notInCache = ExitStatus(code: 104)
    static let diskFull = ExitStatus(code: 105)
    static let alreadyInProgress = ExitStatus(code: 106)
    static let interrupted = ExitStatus(code: 130)

    /// Reports a message on standard error, and returns the code so that the caller can throw it.
    func reporting(_ message: String) async -> ExitStatus {
        await Console.report(message)
        return self
    }
}

extension ExitStatus {
    /// The exit code for a text that is not a URL.
    init(_ error: HTTPURL.ParseError) { self = error.code == .unsupportedScheme ? .unsupportedScheme : .malformedURL }

    init(_ error: HTTPError) {
        let urlError = error.underlying as? HTTPURL.ParseError
        switch error.code {
        case .invalidURL: self = urlError.map { ExitStatus($0) } ?? .malformedURL
        case .invalidRequest, .invalidHeader: self = .usage
        case .resolutionFailed: self = error.proxy == nil ? .unresolvedHost : .unresolvedProxy
        case .proxyFailed:
            // Like curl: 5 (the proxy cannot be resolved) for an invalid proxy URL, 56 (receiving failed) for a
            // rejected CONNECT.
            switch (error.underlying as? ProxyError)?.kind {
            case .rejected: self = .receiveFailed
            case nil: self = .unresolvedProxy
            default: self = .proxyFailed
            }
        // Like curl: 35 for every failure during the TLS handshake.
        case .connectFailed where error.phase == .tlsHandshake, .connectionLost where error.phase == .tlsHandshake:
            self = .tlsFailed
        case .connectFailed where ExitStatus.isOfInterface(error): self = .interfaceFailed
        case .connectFailed, .systemFailed, .sessionInvalidated: self = .connectFailed
        case .tlsFailed: self = ExitStatus.ofTLS(error)
        case .timedOut: self = .timedOut
        case .connectionLost: self = error.phase == .sending ? .sendFailed : .receiveFailed
        case .tooManyRedirects: self = .tooManyRedirects
        case .redirectRejected: self = urlError.map { ExitStatus($0) } ?? .unsupportedScheme
        case .authenticationFailed: self = .authenticationFailed
        case .emptyResponse: self = .emptyReply
        case .truncated: self = .partialBody
        case .protocolViolation, .limitExceeded, .unacceptableContentType, .unacceptableBody: self = .weirdReply
        case .bodyTooLarge: self = .tooLarge
        case .contentDecodingFailed: self = .contentCoding
        case .unacceptableStatus: self = .rejectedByStatus
        case .uploadRejected: self = .weirdReply
        case .uploadFileChanged: self = .readFailed
        case .uploadUncertain: self = .sendFailed
        case .bodyNotReplayable, .bodyLengthMismatch, .bodySourceFailed, .fileFailed, .cachedBodyCorrupted:
            self = .readFailed
        case .checksumMismatch: self = .checksum
        case .representationChanged: self = .changedOnServer
        case .notResumable: self = .notResumable
        case .rangeRejected: self = .rangeRejected
        case .diskFull: self = .diskFull
        case .alreadyInProgress: self = .alreadyInProgress
        case .fileExists: self = .writeFailed
        default: self = .receiveFailed
        }
    }

    init(_ error: WebSocketError) {
        switch error {
        case .protocolViolation, .invalidText, .invalidCompression: self = .weirdReply
        case .messageTooLarge: self = .tooLarge
        case .pongTimedOut: self = .timedOut
        default: self = .receiveFailed
        }
    }

    /// Whether the cause is an unusable local address or interface.
    private static func isOfInterface(_ error: HTTPError) -> Bool {
        let operations = error.connectErrors.map(\.error.operation)
        return !operations.isEmpty
            && operations.allSatisfy { $0.hasPrefix("bind(") || $0.hasPrefix("setsockopt(SO_BINDTODEVICE") }
    }

    private static func ofTLS(_ error: HTTPError) -> ExitStatus {
        guard let cause = error.underlying as? TLSError else { return .tlsFailed }
        switch cause.kind {
        case .nameMismatch, .expired, .notYetValid, .unknownAuthority, .selfSigned, .revoked, .revocationUnknown,
            .denied, .weakKey, .weakSignature, .wrongPurpose, .badCertificate:
            return .certificateRejected
        case .pinMismatch: return .pinMismatch
        case .revocationList: return .revocationList
        case .noTrustRoots, .rootCertificates: return .authorityFile
        case .identity, .passphraseRequired, .wrongPassphrase: return .clientCertificate
        case .configuration(let reason): return reason.contains("cipher") ? .cipher : .tlsFailed
        case .truncated where error.phase == .tlsHandshake: return .tlsFailed
        case .truncated: return error.phase == .receivingBody ? .partialBody : .receiveFailed
        case .protocolVersion, .handshake, .alert, .clientCertificateRequired, .clientCertificateRejected:
            return error.phase == .tlsHandshake ? .tlsFailed : .receiveFailed
        }
    }
}
