public import MartletCore
public import FoundationEssentials

/// A HAR 1.2 log of exchanges, which the developer tools of browsers can open. It is written as a whole, or in pieces:
/// each ``Piece`` has the offset of its bytes in the file, which is a complete log after each piece.
public struct HARLog: Sendable {
    /// Bytes to write to a file.
    public struct Piece: Hashable, Sendable {
        /// The offset in the file; the bytes there are overwritten.
        public let offset: UInt64
        /// The bytes of the piece.
        public let bytes: [UInt8]
    }

    private static let closing = Array("\n]}}\n".utf8)
    private var entryCount = 0
    /// The offset of the closing brackets in the file.
    private var end: UInt64 = 0
    private let creator: String
    private let version: String

    /// Creates a log without entries, with the name and the version of the program that writes it.
    public init(creator: String = "Martlet", version: String = martletVersion) {
        (self.creator, self.version) = (creator, version)
    }

    /// Returns the file of a log without entries, which must be written before the first entry.
    public mutating func begin() -> Piece {
        let log: JSONValue = [
            "version": "1.2", "creator": ["name": .string(creator), "version": .string(version)], "pages": [],
        ]
        var bytes = "{\"log\":".utf8 + log.bytesForPages
        bytes.removeLast()
        bytes += ",\"entries\":[".utf8
        entryCount = 0
        end = UInt64(bytes.count)
        return Piece(offset: 0, bytes: bytes + HARLog.closing)
    }

    /// Returns the bytes that an entry adds to the file.
    public mutating func append(_ entry: HAREntry) -> Piece {
        let offset = end
        let bytes = (entryCount == 0 ? [0x0A] : [UInt8(ascii: ","), 0x0A]) + entry.json
        entryCount += 1
        end += UInt64(bytes.count)
        return Piece(offset: offset, bytes: bytes + HARLog.closing)
    }

    /// Returns the complete file of a log with these entries.
    public static func bytes(_ entries: [HAREntry], creator: String = "Martlet", version: String = martletVersion)
        -> [UInt8]
    {
        var log = HARLog(creator: creator, version: version)
        var bytes = log.begin().bytes
        for entry in entries {
            bytes.removeLast(closing.count)
            bytes += log.append(entry).bytes
        }
        return bytes
    }
}

/// One exchange in a HAR log (HAR 1.2, `entries`).
public struct HAREntry: Sendable {
    /// The entry as JSON.
    package let value: JSONValue
    /// The entry as JSON, in UTF-8.
    public var json: [UInt8] { value.bytesForPages }

    /// Creates an entry for an exchange with a response.
    /// - Parameters:
    ///   - requestBody: The body of its request, which an exchange does not store.
    ///   - sentHeaders: The fields as they were sent; by default the sent fields of the exchange, and `Host`.
    ///   - startedAt: The start time of the request; by default that of its metrics.
    ///   - error: The error after the head was received, if one occurred. Its description is shown; descriptions of
    ///     Martlet's own errors contain no secrets.
    ///   - options: The parts to show.
    public init(
        _ exchange: HTTPExchange, requestBody: HTTPBody = .none, sentHeaders: HTTPFields? = nil, startedAt: Date? = nil,
        error: (any Error)? = nil, options: HAROptions = HAROptions()
    ) {
        let request = HARRequest(
            request: exchange.request, url: exchange.url, body: requestBody,
            sentFields: sentHeaders ?? exchange.sentFields, isComplete: sentHeaders != nil, options: options)
        let response = HARResponse(exchange: exchange, options: options)
        value = HAREntry.json(
            request: request.value, response: response.value, metrics: exchange.metrics, startedAt: startedAt,
            failure: error.map { "\($0)" }, cacheStatus: exchange.cacheStatus)
    }

    /// Creates an entry for a call that failed without a response; it has the status 0, as in browsers.
    /// - Parameters:
    ///   - error: The error of the call. Its description is shown; descriptions of Martlet's own errors contain no
    ///     secrets.
    ///   - metrics: The metrics, as far as they are known.
    public init(
        failed request: HTTPRequest, url: HTTPURL, requestBody: HTTPBody = .none, error: any Error,
        metrics: HTTPMetrics = HTTPMetrics(), startedAt: Date? = nil, options: HAROptions = HAROptions()
    ) {
        let shown = HARRequest(
            request: request, url: url, body: requestBody, sentFields: request.headerFields, options: options)
        value = HAREntry.json(
            request: shown.value, response: HARResponse.none, metrics: metrics, startedAt: startedAt,
            failure: "\(error)")
    }

    private static func json(
        request: JSONValue, response: JSONValue, metrics: HTTPMetrics, startedAt: Date?, failure: String?,
        cacheStatus: String? = nil
    ) -> JSONValue {
        let timings = HARTimings(metrics)
        let start = startedAt ?? metrics.startedAt ?? Date()
        let format = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        // The states of a cache entry before and after are optional in HAR 1.2, and unknown here.
        var members = JSONObject([
            ("startedDateTime", .string(start.formatted(format))), ("time", .milliseconds(timings.total)),
            ("request", request), ("response", response),
            ("cache", cacheStatus.map { ["comment": "Cache-Status: \($0)"] } ?? [:]), ("timings", timings.value),
        ])
        if let connection = metrics.connection {
            if let (address, port) = HAREntry.parts(of: connection.remoteAddress) {
                // The address includes the server's port, which HAR 1.2 allows: browsers show it after the address.
                members["serverIPAddress"] = .string(address)
                members["connection"] = .string(port)
            }
            members["_connectionId"] = HAREntry.parts(of: connection.localAddress).map { .string($0.port) }
        }
        if metrics.attempts > 1 { members["comment"] = "attempts: \(metrics.attempts)" }
        // Custom members begin with an underscore (HAR 1.2, “Custom Fields”).
        members["_error"] = failure.map { .string($0) }
        return .object(members)
    }

    /// Returns the address and the port of `127.0.0.1:80` or `[::1]:80`; `nil` for the name of a socket.
    private static func parts(of address: String) -> (address: String, port: String)? {
        guard !address.hasPrefix("/"), let colon = address.lastIndex(of: ":") else { return nil }
        let port = address[address.index(after: colon)...]
        guard !port.isEmpty, port.utf8.allSatisfy(ByteClass.isDigit) else { return nil }
        var host = address[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        return (String(host), String(port))
    }
}

/// The parts that a HAR log shows.
public struct HAROptions: Hashable, Sendable {
    /// The masked secrets; ``SecretRedaction/standard`` by default.
    public var mask = SecretRedaction.standard
    /// The maximum size of a shown body, sent or received; 1 MiB by default. A longer text is truncated; for other
    /// bodies only the size is shown.
    public var bodyLimit = ByteCount.mebibytes(1)

    /// Creates the default options.
    public init() {}
}

/// The phases of an exchange in HAR 1.2, in milliseconds; -1 for a phase that did not occur.
package struct HARTimings: Hashable, Sendable {
    /// The wait for a connection, and the time of all requests of the call before the last one.
    package let blocked: Double
    /// The time of name resolution.
    package let dns: Double
    /// The time to open the connection, including the TLS handshake.
    package let connect: Double
    /// The time of the TLS handshake.
    package let ssl: Double
    /// The time to write the request.
    package let send: Double
    /// The time from the end of the request to the head of the response.
    package let wait: Double
    /// The time to receive the response.
    package let receive: Double

    /// The sum of the phases; ``ssl`` is part of ``connect``.
    package var total: Double { [blocked, dns, connect, send, wait, receive].reduce(0) { $0 + max($1, 0) } }

    /// Creates the phases of a call.
    ///
    /// The connection may have been started before this call, for another call. Its phases are therefore counted
    /// backwards from the end of this call's wait, and at most to the start of the call.
    package init(_ metrics: HTTPMetrics) {
        let ready = metrics.lastBegin + metrics.wait
        var rest = ready
        func taken(_ duration: Duration?) -> Duration? {
            guard let duration else { return nil }
            let part = min(max(duration, .zero), rest)
            rest -= part
            return part
        }
        let tls = taken(metrics.tls)
        let transport = taken(metrics.connect)
        let lookup = taken(metrics.dns)
        ssl = HARTimings.milliseconds(tls)
        dns = HARTimings.milliseconds(lookup)
        connect = transport == nil && tls == nil ? -1 : HARTimings.milliseconds((transport ?? .zero) + (tls ?? .zero))
        blocked = HARTimings.milliseconds(rest)
        let head = max(metrics.firstByte ?? metrics.total, ready)
        // A server may respond before it has read the whole request.
        let sending = min(max(metrics.send ?? .zero, .zero), head - ready)
        send = HARTimings.milliseconds(sending)
        wait = HARTimings.milliseconds(head - ready - sending)
        receive = HARTimings.milliseconds(max(metrics.total - head, .zero))
    }

    private static func milliseconds(_ duration: Duration?) -> Double {
        // Nanoseconds are integers, and a quotient of integers is correctly rounded.
        duration.map { Double($0.wholeNanoseconds) / 1e6 } ?? -1
    }

    /// The member `timings` of an entry.
    var value: JSONValue {
        [
            "blocked": .milliseconds(blocked), "dns": .milliseconds(dns), "connect": .milliseconds(connect),
            "ssl": .milliseconds(ssl), "send": .milliseconds(send), "wait": .milliseconds(wait),
            "receive": .milliseconds(receive),
        ]
    }
}

extension JSONValue {
    /// Returns a number of milliseconds, to the microsecond; 0 if it is not finite.
    package static func milliseconds(_ number: Double) -> JSONValue {
        JSONValue(number.isFinite ? (number * 1000).rounded() / 1000 : 0)
    }

    /// Returns a list of objects with a name and a value.
    static func named(_ pairs: [(name: String, value: String)]) -> JSONValue {
        .array(pairs.map { ["name": .string($0.name), "value": .string($0.value)] })
    }

    /// The value as JSON in UTF-8. Characters that would end a line of a script or an element of a page are escaped.
    package var bytesForPages: [UInt8] {
        var output: [UInt8] = []
        for scalar in text().unicodeScalars {
            switch scalar {
            case "\u{7F}", "\u{2028}", "\u{2029}", "<":
                let digits = String(scalar.value, radix: 16)
                output += "\\u\(String(repeating: "0", count: 4 - digits.count))\(digits)".utf8
            default: output += UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter
            }
        }
        return output
    }
}
