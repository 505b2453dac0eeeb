import MartletConnections
import MartletTransport
import MartletWire

/// A call as the session's core runs it: everything resolved, nothing sent.
///
/// A class, because everything that runs a call holds it, and its many fields would be copied each time.
final class Call: Sendable {
    /// What was asked for.
    let request: HTTPRequest
    /// Where.
    let url: HTTPURL
    /// With what.
    let body: HTTPBody
    /// How otherwise than the session.
    let options: RequestOptions
    /// The clocks in force.
    let timeouts: Timeouts
    /// When it began.
    let start: MonotonicTime
    /// The settings in force.
    let settings: SessionSettings

    init(
        request: HTTPRequest, url: HTTPURL, body: HTTPBody, options: RequestOptions,
        settings: SessionSettings
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
        timeouts = options.timeouts ?? settings.configuration.timeouts
        self.settings = settings
        asksForCoding = Call.asksForCoding(request, options, settings)
        start = MonotonicTime.now()
    }

    /// Whether gzip and deflate are asked for.
    let asksForCoding: Bool

    private static func asksForCoding(
        _ request: HTTPRequest, _ options: RequestOptions, _ settings: SessionSettings
    ) -> Bool {
        (options.decompresses ?? settings.configuration.decompressesResponses) && !options.isRaw
            && request.headerFields[.acceptEncoding] == nil && request.headerFields[.range] == nil
            && settings.configuration.headers[.acceptEncoding] == nil
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
