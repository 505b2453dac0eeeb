import Martlet

/// Heads as bytes, as `-i`, `-D` and `-v` show them.
enum HeadText {
    /// A head with its empty line.
    static func bytes(of head: ResponseHead) -> [UInt8] {
        var bytes = Array("\(head.version.text) \(head.status)".utf8)
        bytes += [32] + head.reasonBytes + [13, 10]
        return bytes + lines(of: head.fields) + [13, 10]
    }

    static func lines(of fields: FieldBlock) -> [UInt8] {
        var bytes: [UInt8] = []
        for index in fields.indices {
            bytes += fields.name(at: index)
            bytes += Array(": ".utf8)
            bytes += fields.value(at: index)
            bytes += [13, 10]
        }
        return bytes
    }

    /// The lines of a head, each after `mark`. The values of credentials are replaced by `***`.
    static func shown(_ bytes: [UInt8], mark: String) -> String {
        bytes.split(separator: 10, omittingEmptySubsequences: false).dropLast().map { line in
            let line = String(decoding: line.last == 13 ? line.dropLast() : line, as: UTF8.self)
            return "\(mark) \(TerminalText.shown(redacted(line)))\n"
        }.joined()
    }

    private static let secrets: Set = ["authorization", "proxy-authorization", "cookie", "set-cookie", "set-cookie2"]

    /// Whether the values of a field are credentials. The case of the name is ignored.
    static func isSecret(_ name: some StringProtocol) -> Bool { secrets.contains(name.lowercased()) }

    private static func redacted(_ line: String) -> String {
        guard let colon = line.firstIndex(of: ":"), isSecret(line[..<colon]) else { return line }
        return "\(line[..<colon]): ***"
    }
}

/// The lines of `-H`: header fields to send, and defaults to omit.
struct HeaderLines: Sendable {
    /// The fields, with a limit: `HTTPFields` traps at 65,535 fields.
    private var headers = HTTPHeaders()
    private(set) var omitted: Set<HTTPField.Name> = []

    var fields: HTTPFields { headers.fields }

    /// Reads lines: `Name: value`, `Name;` for an empty value, `Name:` to omit a default.
    init(_ lines: [String]) throws(UsageError) { for line in lines { try add(line, at: "option -H") } }

    /// Adds a line in the format of ``init(_:)``. Error messages begin with `place`.
    mutating func add(_ line: String, at place: String) throws(UsageError) {
        guard let mark = line.first(":", ";") else {
            throw UsageError("\(place): “\(line)” has no colon: 'Name: value'")
        }
        let text = line[..<mark]
        guard let name = HTTPField.Name(String(text)) else {
            throw UsageError("\(place): “\(text)” is not a field name")
        }
        let value = String(line.rest(after: mark).unicodeScalars.drop { $0 == " " || $0 == "\t" })
        try check(HeaderLines.isValid(value), "\(place): the value of \(name.rawName) has a control character")
        if line.unicodeScalars[mark] == ";" {
            try check(value.isEmpty, "\(place): “\(line)” has no colon: 'Name: value'")
            headers.append(HTTPField(name: name, value: ""))
        } else if value.isEmpty {
            try check(
                name != .contentLength && name != .transferEncoding,
                "\(place): \(name.rawName) frames the body and cannot be removed")
            omitted.insert(name)
        } else {
            headers.append(HTTPField(name: name, value: value))
        }
        if let rejection = headers.rejection { throw UsageError("\(place): \(rejection)") }
    }

    /// A text without leading and trailing spaces and tabs.
    static func trimmed(_ text: Substring) -> Substring {
        let start = text.drop { $0 == " " || $0 == "\t" }
        let end = start.lastIndex { $0 != " " && $0 != "\t" }
        return end.map { start[...$0] } ?? ""
    }

    /// Returns the value of an option that is sent as a field value, and throws if it is invalid.
    static func checked(_ value: String) throws(UsageError) -> String {
        try check(isValid(value), "the value has a control character")
        return value
    }

    /// Whether a text is valid as a field value. Control characters could split the request.
    static func isValid(_ value: String) -> Bool { value.utf8.allSatisfy(ByteClass.isFieldValue) }

    /// Sets a field unless the lines set or omit it.
    mutating func setDefault(_ name: HTTPField.Name, _ value: String) {
        if fields[name] == nil, !omitted.contains(name) { append(HTTPField(name: name, value: value)) }
    }

    /// Sets the fields of the options for referer, user agent and cookies, unless `-H` sets or omits them.
    mutating func setDefaults(_ options: TransferOptions) {
        if let referer = options.referer, !referer.isEmpty { setDefault(.referer, referer) }
        if let agent = options.userAgent {
            if agent.isEmpty { omitted.insert(.userAgent) } else { setDefault(.userAgent, agent) }
        }
        setCookies(options)
    }

    mutating func setCookies(_ options: TransferOptions) {
        if !options.cookies.isEmpty { setDefault(.cookie, options.cookies.joined(separator: "; ")) }
    }

    /// Adds the field of an option, even if the lines set or omit it. It does not count towards the limit, because the
    /// number of options with a field is small.
    mutating func append(_ field: HTTPField) { headers.fields.append(field) }
}

/// A head that was sent or received before the head of the final response.
enum IntermediateHead: Sendable {
    case sent([UInt8])
    /// A proxy's response to CONNECT, or a response after which the same request was sent again.
    case received(ResponseHead)

    var sentBytes: [UInt8]? { if case .sent(let bytes) = self { bytes } else { nil } }

    var receivedBytes: [UInt8]? { if case .received(let head) = self { HeadText.bytes(of: head) } else { nil } }
}

/// The lines of `-v` about a connection.
enum VerboseText {
    static func connection(_ metrics: HTTPMetrics) -> String {
        metrics.connection.map { connection($0, isReused: metrics.isConnectionReused) } ?? ""
    }

    static func connection(_ connection: ConnectionInformation, isReused: Bool) -> String {
        guard !isReused else { return "* Re-using the connection to \(connection.remoteAddress)\n" }
        var text = "* Connected to \(connection.remoteAddress) from \(connection.localAddress)\n"
        if let tls = connection.tls {
            text += "* \(tls.version), \(tls.cipher)\(tls.isResumed ? ", resumed" : "")\n"
            text += "* ALPN: \(tls.applicationProtocol ?? "no protocol")\n"
        }
        return text
    }

    static func cache(_ status: String?) -> String { status.map { "* Cache-Status: \($0)\n" } ?? "" }

    /// The heads of a request and its responses, after those that were already printed.
    /// - Parameters:
    ///   - shown: The number of heads that were already printed. If there are any, so was the connection.
    ///   - connection: The lines about the connection.
    static func heads(
        _ passed: [IntermediateHead], _ received: [ResponseHead], after shown: Int, _ connection: String,
        _ cacheStatus: String?
    ) -> String {
        var text = shown == 0 ? connection : ""
        for head in passed.dropFirst(shown) {
            if let sent = head.sentBytes { text += HeadText.shown(sent, mark: ">") }
            if let came = head.receivedBytes { text += HeadText.shown(came, mark: "<") }
        }
        text += cache(cacheStatus)
        for head in received.dropFirst(max(0, shown - passed.count)) {
            text += HeadText.shown(HeadText.bytes(of: head), mark: "<")
        }
        return text
    }
}
