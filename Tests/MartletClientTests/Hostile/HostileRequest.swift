import MartletCore

/// What is asked of a hostile peer.
struct HostileRequest: Sendable {
    var method = HTTPRequest.Method.get
    var headers = HTTPHeaders()
    var body = HTTPBody.none
    /// The clocks; those that are not given stand still, and a last one of some minutes shows what hangs.
    var clocks = Timeouts(connect: nil, head: nil, idle: nil, total: Patience.long)
    /// The largest body that is collected; `nil` for the default.
    var bodyLimit: ByteCount?

    /// A GET with one timeout running.
    static func within(_ timeout: HTTPError.Timeout, _ span: Duration) -> HostileRequest {
        HostileRequest().with(timeout, span)
    }

    /// The same request with a timeout of another span.
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

    /// The same with a body that is put.
    func putting(_ body: HTTPBody) -> HostileRequest {
        var request = self
        request.method = .put
        request.body = body
        return request
    }

    /// The span of a timeout.
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

    /// What the call does otherwise than its session.
    var options: RequestOptions { RequestOptions(timeouts: clocks, bodyLimit: bodyLimit) }
}
