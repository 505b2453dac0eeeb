import MartletCore

/// A request to a hostile peer.
struct HostileRequest: Sendable {
    var method = HTTPRequest.Method.get
    var headers = HTTPHeaders()
    var body = HTTPBody.none
    /// The timeouts. Timeouts that are not given are off, and a total timeout of some minutes ends a hang.
    var clocks = Timeouts(connect: nil, head: nil, idle: nil, total: TestTimeouts.long)
    /// The maximum size of a collected body; `nil` for the default.
    var bodyLimit: ByteCount?

    /// A GET request with one timeout.
    static func within(_ timeout: HTTPError.Timeout, _ span: Duration) -> HostileRequest {
        HostileRequest().with(timeout, span)
    }

    /// Returns the same request with another duration for a timeout.
    func with(_ timeout: HTTPError.Timeout, _ span: Duration) -> HostileRequest {
        var request = self
        switch timeout {
        case .poolWait: request.clocks.poolWait = span
        case .connect: request.clocks.connect = span
        case .head: request.clocks.head = span
        case .idle: request.clocks.idle = span
        case .unread: request.clocks.unread = span
        case .total: request.clocks.total = span
        }
        return request
    }

    /// Returns the same request as a PUT with a body.
    func putting(_ body: HTTPBody) -> HostileRequest {
        var request = self
        request.method = .put
        request.body = body
        return request
    }

    /// Returns the duration of a timeout.
    func span(of timeout: HTTPError.Timeout?) -> Duration? {
        switch timeout {
        case .poolWait: clocks.poolWait
        case .connect: clocks.connect
        case .head: clocks.head
        case .idle: clocks.idle
        case .unread: clocks.unread
        case .total: clocks.total
        case nil: nil
        }
    }

    /// The call's options that override the session's configuration.
    var options: RequestOptions { RequestOptions(timeouts: clocks, bodyLimit: bodyLimit) }
}
