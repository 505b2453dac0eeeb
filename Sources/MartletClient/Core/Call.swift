import MartletConnections
import MartletTransport
import MartletWire

/// A call as the session's core runs it: everything resolved, nothing sent.
struct Call: Sendable {
    /// What was asked for.
    var request: HTTPRequest
    /// Where.
    var url: HTTPURL
    /// With what.
    var body: HTTPBody
    /// How otherwise than the session.
    var options: RequestOptions
    /// The clocks in force.
    var timeouts: Timeouts
    /// The settings in force.
    var configuration: SessionConfiguration
    /// When it began.
    var start: MonotonicTime

    init(
        request: HTTPRequest, url: HTTPURL, body: HTTPBody, options: RequestOptions,
        configuration: SessionConfiguration
    ) throws(HTTPError) {
        guard url.user == nil, url.password == nil else {
            throw HTTPError(
                .invalidURL, phase: .preparing,
                message: "user names and passwords in URLs are not sent; set an Authorization field instead",
                origin: url.origin.description)
        }
        guard request.method != .connect else {
            throw HTTPError(
                .invalidRequest, phase: .preparing,
                message: "CONNECT opens tunnels through proxies and is not a request",
                origin: url.origin.description)
        }
        self.request = request
        self.url = url
        self.body = body
        self.options = options
        timeouts = options.timeouts ?? configuration.timeouts
        self.configuration = configuration
        start = MonotonicTime.now()
    }

    /// Whether gzip and deflate are asked for.
    var asksForCoding: Bool {
        (options.decompresses ?? configuration.decompressesResponses) && !options.isRaw
            && request.headerFields[.acceptEncoding] == nil && request.headerFields[.range] == nil
            && configuration.headers[.acceptEncoding] == nil
            && !options.omittedFields.contains(.acceptEncoding)
    }

    /// When it must be over.
    var totalDeadline: MonotonicTime {
        start.deadline(after: timeouts.total)
    }

    var destination: Destination {
        Destination(isSecure: url.scheme == .https, host: url.host, port: url.port)
    }

    var rule: IdleRaceRule {
        IdleRaceRule(
            method: request.method,
            isDeclaredSafe: options.allowsResendingUnsafeMethods
                || request.headerFields.contains(HTTPField.Name.idempotencyKey),
            isReplayable: body.replay != .once)
    }
}

extension HTTPField.Name {
    /// `Host`, which HTTPTypes does not name: there it is the authority.
    static let hostField = HTTPField.Name("Host") ?? .expect

    /// `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header).
    static let idempotencyKey = HTTPField.Name("Idempotency-Key") ?? .expect
}
