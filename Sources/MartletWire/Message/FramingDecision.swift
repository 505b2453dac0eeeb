/// The kind of response to a method, with respect to its framing (RFC 9112 §6.3).
package enum ResponseKind: Sendable {
    case ordinary
    /// The response to HEAD, which has no body, regardless of its fields.
    case headOnly
    /// The response to CONNECT: after a 2xx, the bytes after the head belong to the tunnel.
    case tunnel

    /// The kind of response to a method; methods are case-sensitive.
    package init(method: String) {
        self =
            switch method.utf8.count {
            case 4 where method == "HEAD": .headOnly
            case 7 where method == "CONNECT": .tunnel
            default: .ordinary
            }
    }
}

/// The framing of a body according to its head, and whether the connection can carry another message after it (RFC 9112
/// §6.3). Ambiguous framing is a ``WireError``, never a guess.
package struct FramingDecision: Equatable, Sendable {
    package let framing: BodyFraming
    /// `false` if the connection must be closed after this message, regardless of its other fields.
    package let permitsReuse: Bool

    /// Decides for a response (RFC 9112 §6.3).
    /// - Parameters:
    ///   - limits: Only ``WireLimits/isStrict`` is used: both framing fields in one head are then an error.
    ///   - ignoresLength: Whether `Content-Length` is ignored.
    /// - Throws: An error with the offset of the field value that causes it.
    package static func response(
        _ kind: ResponseKind, head: borrowing ResponseHead, limits: WireLimits, ignoresLength: Bool = false
    ) throws(WireError) -> FramingDecision {
        if head.status < 200 || head.status == 204 || head.status == 304 || kind == .headOnly {
            return FramingDecision(framing: .none, permitsReuse: isPlausible(head))
        }
        if kind == .tunnel, head.status < 300 {
            // The bytes that follow are the tunnel's, so no HTTP message ever follows on this connection.
            return FramingDecision(framing: .none, permitsReuse: false)
        }
        return try framed(head.fields, head.version, isStrict: limits.isStrict, ignoresLength: ignoresLength)
            ?? FramingDecision(framing: .untilClose, permitsReuse: false)
    }

    /// Decides for a request: never ``BodyFraming/untilClose`` (RFC 9112 §6.3).
    /// - Throws: An error with the offset of the field value; a request with both fields is always rejected.
    package static func request(_ head: borrowing RequestHead) throws(WireError) -> FramingDecision {
        try framed(head.fields, head.version, isStrict: true) ?? FramingDecision(framing: .none, permitsReuse: true)
    }

    /// Decides by the framing fields; `nil` without such fields.
    private static func framed(
        _ fields: FieldBlock, _ version: WireVersion, isStrict: Bool, ignoresLength: Bool = false
    ) throws(WireError) -> FramingDecision? {
        let lengthField = ignoresLength ? nil : fields.firstIndex(ofKnown: "Content-Length")
        if let codingField = fields.firstIndex(ofKnown: "Transfer-Encoding") {
            try checkTransferCodings(fields, from: codingField, version: version)
            if let lengthField, isStrict { throw WireError(.ambiguousFraming, at: fields.valueOffset(at: lengthField)) }
            return FramingDecision(framing: .chunked, permitsReuse: lengthField == nil)
        }
        guard let lengthField else { return nil }
        let length = try contentLength(fields, from: lengthField)
        return FramingDecision(framing: .length(length), permitsReuse: true)
    }

    /// Whether the framing fields are plausible for a response without a body. Contradictory lengths, a 204 or 304 with
    /// `Transfer-Encoding`, or a 204 with a length other than 0 suggest that a body follows (RFC 9110 §8.6, RFC 9112
    /// §6.1). The length in a response to HEAD and in a 304 is that of a body which is not sent.
    private static func isPlausible(_ head: borrowing ResponseHead) -> Bool {
        if head.fields.contains("Transfer-Encoding"), head.status == 204 || head.status == 304 { return false }
        guard head.status >= 200, let field = head.fields.firstIndex(ofKnown: "Content-Length") else { return true }
        do throws(WireError) {
            let length = try contentLength(head.fields, from: field)
            return head.status != 204 || length == 0
        } catch { return false }
    }

    /// Checks that the transfer codings are exactly `chunked`, once.
    private static func checkTransferCodings(_ fields: FieldBlock, from first: Int, version: WireVersion)
        throws(WireError)
    {
        let offset = fields.valueOffset(at: first)
        if version == .http10 { throw WireError(.transferEncodingInHTTP10, at: offset) }
        var chunkedCount = 0
        var otherAfterChunked = false
        var otherCount = 0
        var next: Int? = first
        while let index = next {
            for coding in ElementList(fields.value(at: index)) {
                if ByteClass.equalsIgnoringCase(coding, "chunked".utf8.span) {
                    chunkedCount += 1
                } else {
                    otherCount += 1
                    otherAfterChunked = otherAfterChunked || chunkedCount > 0
                }
            }
            next = fields.firstIndex(ofKnown: "Transfer-Encoding", from: index + 1)
        }
        if chunkedCount > 1 { throw WireError(.repeatedChunked, at: offset) }
        if otherAfterChunked { throw WireError(.chunkedNotLast, at: offset) }
        if otherCount > 0 { throw WireError(.unsupportedTransferCoding, at: offset) }
        if chunkedCount == 0 { throw WireError(.emptyTransferEncoding, at: offset) }
    }

    /// The one value of all Content-Length fields and of the members of each (RFC 9112 §6.3 item 5).
    private static func contentLength(_ fields: FieldBlock, from first: Int) throws(WireError) -> UInt64 {
        // Most lengths are one number in one field.
        if case .value(let length) = DecimalNumber(fields.value(at: first)),
            fields.firstIndex(ofKnown: "Content-Length", from: first + 1) == nil
        {
            return length
        }
        var length: UInt64?
        var digitCount = 0
        var next: Int? = first
        while let index = next {
            let offset = fields.valueOffset(at: index)
            let value = fields.value(at: index)
            // Not ElementList: an empty or a quoted member is not a Content-Length.
            var start = value.startIndex
            while true {
                let end = value[start...].firstIndex(of: UInt8(ascii: ",")) ?? value.endIndex
                let digits = ByteClass.trimmed(value[start..<end])
                switch DecimalNumber(digits) {
                case .invalid: throw WireError(.invalidContentLength, at: offset)
                case .overflow: throw WireError(.contentLengthOverflow, at: offset)
                case .value(let number):
                    // Equal lengths must also have the same digits: `030` and `30` conflict.
                    if let length, length != number || digitCount != digits.count {
                        throw WireError(.conflictingContentLengths, at: offset)
                    }
                    length = number
                    digitCount = digits.count
                }
                guard end < value.endIndex else { break }
                start = end + 1
            }
            next = fields.firstIndex(ofKnown: "Content-Length", from: index + 1)
        }
        guard let length else { throw WireError(.invalidContentLength, at: fields.valueOffset(at: first)) }
        return length
    }
}

/// The framing that determines the end of a message's body (RFC 9112 §6.3).
package enum BodyFraming: Equatable, Sendable {
    /// There is no body, regardless of the fields.
    case none
    /// The body has this many bytes, 0 to 2^63 − 1.
    case length(UInt64)
    case chunked
    /// The body ends with the connection. Responses only.
    case untilClose
}

/// The persistence of a connection after a message (RFC 9112 §9.3).
package enum PersistenceRule {
    /// Decides by version and `Connection`: `close` wins, HTTP/1.1 stays open, and HTTP/1.0 only with `keep-alive`.
    package static func persists(version: WireVersion, fields: FieldBlock) -> Bool {
        if fields.contains("Connection", token: "close") { return false }
        return version == .http11 || fields.contains("Connection", token: "keep-alive")
    }
}

/// A server's hint about idle connections: `Keep-Alive: timeout=5, max=100`.
package struct KeepAliveHint: Equatable, Sendable {
    /// The time for which the server keeps an idle connection open, in seconds; `nil` if not specified.
    package private(set) var timeout: Int?
    /// The number of further requests that the server accepts on the connection; `nil` if not specified.
    package private(set) var remainingUses: Int?

    /// Parses the hint of a head; members that are malformed or too large are ignored.
    package init(_ fields: borrowing FieldBlock) {
        var next = fields.firstIndex(ofKnown: "Keep-Alive")
        while let index = next {
            for element in ElementList(fields.value(at: index)) { read(element) }
            next = fields.firstIndex(ofKnown: "Keep-Alive", from: index + 1)
        }
    }

    private mutating func read(_ element: ArraySlice<UInt8>) {
        guard let equals = element.firstIndex(of: UInt8(ascii: "=")) else { return }
        let name = ByteClass.trimmed(element[..<equals])
        var text = ByteClass.trimmed(element[(equals + 1)...])
        if text.count >= 2, text.first == UInt8(ascii: "\""), text.last == UInt8(ascii: "\"") {
            text = text.dropFirst().dropLast()
        }
        guard let value = DecimalNumber(text).exactValue else { return }
        if ByteClass.equalsIgnoringCase(name, "timeout".utf8.span) {
            timeout = Int(clamping: value)
        } else if ByteClass.equalsIgnoringCase(name, "max".utf8.span) {
            remainingUses = Int(clamping: value)
        }
    }
}
