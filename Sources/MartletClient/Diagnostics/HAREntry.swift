public import FoundationEssentials
import MartletWire

/// One exchange as a HAR log shows it (HAR 1.2, `entries`).
public struct HAREntry: Sendable {
    /// The entry as JSON, in UTF-8.
    public let json: [UInt8]

    /// An exchange that was answered.
    ///
    /// - Parameters:
    ///   - exchange: The exchange.
    ///   - requestBody: The body of its request, which an exchange does not keep.
    ///   - sentHeaders: The fields as they were sent; by default those of the request, and `Host`.
    ///   - startedAt: When it began; by default as its metrics know it.
    ///   - error: What went wrong after its head had come, if anything; its description is shown, in which Martlet's own
    ///     errors hold no secret.
    ///   - options: What is shown.
    public init(
        _ exchange: HTTPExchange, requestBody: HTTPBody = .none, sentHeaders: HTTPFields? = nil,
        startedAt: Date? = nil, error: (any Error)? = nil, options: HAROptions = HAROptions()
    ) {
        let request = HARRequest(
            exchange.request, url: exchange.url, body: requestBody, sentHeaders: sentHeaders,
            options: options)
        let response = HARResponse(exchange, options: options)
        json = HAREntry.json(
            request: request.value, response: response.value, metrics: exchange.metrics,
            startedAt: startedAt, failure: error.map { "\($0)" }, cacheStatus: exchange.cacheStatus)
    }

    /// A call that failed without an answer: its response has the status 0, as browsers show such calls.
    ///
    /// - Parameters:
    ///   - request: What was asked for.
    ///   - url: Where.
    ///   - error: Why there is no answer; its description is shown, in which Martlet's own errors hold no secret.
    ///   - metrics: As far as they are known.
    public init(
        failed request: HTTPRequest, url: HTTPURL, requestBody: HTTPBody = .none, error: any Error,
        metrics: HTTPMetrics = HTTPMetrics(), startedAt: Date? = nil, options: HAROptions = HAROptions()
    ) {
        let shown = HARRequest(request, url: url, body: requestBody, sentHeaders: nil, options: options)
        json = HAREntry.json(
            request: shown.value, response: HARResponse.none, metrics: metrics, startedAt: startedAt,
            failure: "\(error)")
    }

    private static func json(
        request: HARValue, response: HARValue, metrics: HTTPMetrics, startedAt: Date?, failure: String?,
        cacheStatus: String? = nil
    ) -> [UInt8] {
        let timings = HARTimings(metrics)
        let start = startedAt ?? metrics.startedAt ?? Date()
        let format = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        // What HAR 1.2 would have of an entry's state before and after is optional, and not known.
        let cache = cacheStatus.map { [(name: "comment", value: HARValue.text("Cache-Status: \($0)"))] } ?? []
        var members: [(name: String, value: HARValue)] = [
            ("startedDateTime", .text(start.formatted(format))), ("time", .milliseconds(timings.total)),
            ("request", request), ("response", response), ("cache", .members(cache)),
            ("timings", timings.value),
        ]
        if let connection = metrics.connection {
            if let (address, port) = HAREntry.parts(of: connection.remoteAddress) {
                // The server's port, which HAR 1.2 allows for: browsers show it behind the address.
                members += [("serverIPAddress", .text(address)), ("connection", .text(port))]
            }
            if let (_, port) = HAREntry.parts(of: connection.localAddress) {
                members.append(("_connectionId", .text(port)))
            }
        }
        if metrics.attempts > 1 { members.append(("comment", .text("attempts: \(metrics.attempts)"))) }
        // Members of one's own begin with a low line (HAR 1.2, “Custom Fields”).
        if let failure { members.append(("_error", .text(failure))) }
        var json: [UInt8] = []
        HARValue.members(members).write(to: &json)
        return json
    }

    /// Address and port of `127.0.0.1:80` or `[::1]:80`; `nil` for the name of a socket.
    private static func parts(of address: String) -> (address: String, port: String)? {
        guard !address.hasPrefix("/"), let colon = address.lastIndex(of: ":") else { return nil }
        let port = address[address.index(after: colon)...]
        guard !port.isEmpty, port.utf8.allSatisfy(ByteClass.isDigit) else { return nil }
        var host = address[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        return (String(host), String(port))
    }
}
