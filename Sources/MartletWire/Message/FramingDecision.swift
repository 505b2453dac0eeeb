/// What kind of answer a method has, as far as its framing goes (RFC 9112 §6.3).
package enum ResponseKind: Sendable {
    /// A head and a body.
    case ordinary
    /// To HEAD: a head alone, whatever its fields say.
    case headOnly
    /// To CONNECT: where it is 2xx, what follows the head is the tunnel's.
    case tunnel

    /// The kind of answer that a method has; methods are case-sensitive.
    package init(method: String) {
        self =
            switch method {
            case "HEAD": .headOnly
            case "CONNECT": .tunnel
            default: .ordinary
            }
    }
}

/// How a body is framed, and whether that framing leaves the connection fit for another message.
///
/// Pure functions of the heads: RFC 9112 §6.3 in one place. Anything ambiguous is a ``WireError`` and never a
/// guess.
package struct FramingDecision: Equatable, Sendable {
    /// How the end of the body is found.
    package let framing: BodyFraming
    /// False when the connection must be closed after this message whatever else it says.
    package let permitsReuse: Bool

    /// Decides for a response (RFC 9112 §6.3).
    ///
    /// - Parameters:
    ///   - method: the method of the request it answers.
    ///   - head: its head.
    ///   - limits: whether ambiguity that RFC 9112 resolves is refused.
    /// - Throws: a framing fault, with the offset of the offending field value.
    package static func response(
        to method: String, head: borrowing ResponseHead, limits: WireLimits
    ) throws(WireError) -> FramingDecision {
        try response(ResponseKind(method: method), head: head, limits: limits)
    }

    /// Decides for a response of a kind; else as `response(to:head:limits:)`.
    /// - Parameter ignoresLength: whether `Content-Length` says nothing, whatever it says.
    package static func response(
        _ kind: ResponseKind, head: borrowing ResponseHead, limits: WireLimits, ignoresLength: Bool = false
    ) throws(WireError) -> FramingDecision {
        if head.status < 200 || head.status == 204 || head.status == 304 || kind == .headOnly {
            return FramingDecision(framing: .none, permitsReuse: isPlausible(head))
        }
        if kind == .tunnel, head.status < 300 {
            // What follows is the tunnel's, so no HTTP message ever follows on this connection.
            return FramingDecision(framing: .none, permitsReuse: false)
        }
        let lengthField = ignoresLength ? nil : head.fields.firstIndex(of: "Content-Length")
        if let codingField = head.fields.firstIndex(of: "Transfer-Encoding") {
            try checkTransferCodings(head.fields, from: codingField, version: head.version)
            if let lengthField, limits.isStrict {
                throw WireError(.ambiguousFraming, at: head.fields.valueOffset(at: lengthField))
            }
            return FramingDecision(framing: .chunked, permitsReuse: lengthField == nil)
        }
        if let lengthField {
            let length = try contentLength(head.fields, from: lengthField)
            return FramingDecision(framing: .length(length), permitsReuse: true)
        }
        return FramingDecision(framing: .untilClose, permitsReuse: false)
    }

    /// Whether the framing fields of a response without a body leave no doubt about where it ends.
    ///
    /// Contradictory lengths, a `Transfer-Encoding` or, for a 204, a length other than 0 suggest that a body follows
    /// (RFC 9110 §8.6, RFC 9112 §6.1). A response to HEAD and a 304 may say how a body would have been framed.
    private static func isPlausible(_ head: borrowing ResponseHead) -> Bool {
        if head.fields.contains("Transfer-Encoding"), head.status == 204 || head.status == 304 {
            return false
        }
        guard head.status >= 200, let field = head.fields.firstIndex(of: "Content-Length") else {
            return true
        }
        do throws(WireError) {
            let length = try contentLength(head.fields, from: field)
            return head.status != 204 || length == 0
        } catch {
            return false
        }
    }

    /// Decides for a request: never ``BodyFraming/untilClose`` (RFC 9112 §6.3).
    ///
    /// - Parameters:
    ///   - head: the head of the request.
    ///   - limits: reserved for leniencies; a request with both fields is always refused.
    /// - Throws: a framing fault, with the offset of the offending field value.
    package static func request(
        _ head: borrowing RequestHead, limits: WireLimits
    ) throws(WireError) -> FramingDecision {
        let lengthField = head.fields.firstIndex(of: "Content-Length")
        if let codingField = head.fields.firstIndex(of: "Transfer-Encoding") {
            try checkTransferCodings(head.fields, from: codingField, version: head.version)
            if let lengthField {
                throw WireError(.ambiguousFraming, at: head.fields.valueOffset(at: lengthField))
            }
            return FramingDecision(framing: .chunked, permitsReuse: true)
        }
        if let lengthField {
            let length = try contentLength(head.fields, from: lengthField)
            return FramingDecision(framing: .length(length), permitsReuse: true)
        }
        return FramingDecision(framing: .none, permitsReuse: true)
    }

    /// Passes if the transfer codings are exactly `chunked`, once.
    private static func checkTransferCodings(
        _ fields: FieldBlock, from first: Int, version: WireVersion
    ) throws(WireError) {
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
            next = fields.firstIndex(of: "Transfer-Encoding", from: index + 1)
        }
        if chunkedCount > 1 { throw WireError(.repeatedChunked, at: offset) }
        if otherAfterChunked { throw WireError(.chunkedNotLast, at: offset) }
        if otherCount > 0 { throw WireError(.unsupportedTransferCoding, at: offset) }
        if chunkedCount == 0 { throw WireError(.emptyTransferEncoding, at: offset) }
    }

    /// The one value of all Content-Length fields and of the members of each (RFC 9112 §6.3 item 5).
    private static func contentLength(_ fields: FieldBlock, from first: Int) throws(WireError) -> UInt64 {
        var length: UInt64?
        var digitCount = 0
        var next: Int? = first
        while let index = next {
            let offset = fields.valueOffset(at: index)
            let value = fields.value(at: index)
            // Not ElementList: an empty member or a quoted one is no Content-Length.
            var start = value.startIndex
            while true {
                let end = value[start...].firstIndex(of: UInt8(ascii: ",")) ?? value.endIndex
                let digits = ByteClass.trimmed(value[start..<end])
                switch DecimalNumber(digits) {
                case .invalid: throw WireError(.invalidContentLength, at: offset)
                case .overflow: throw WireError(.contentLengthOverflow, at: offset)
                case .value(let number):
                    // Equal numbers of one spelling have equally many digits: `030` beside `30` is a conflict.
                    if let length, length != number || digitCount != digits.count {
                        throw WireError(.conflictingContentLengths, at: offset)
                    }
                    length = number
                    digitCount = digits.count
                }
                guard end < value.endIndex else { break }
                start = end + 1
            }
            next = fields.firstIndex(of: "Content-Length", from: index + 1)
        }
        guard let length else { throw WireError(.invalidContentLength, at: fields.valueOffset(at: first)) }
        return length
    }
}

/// How the end of a message's body is found (RFC 9112 §6.3).
package enum BodyFraming: Equatable, Sendable {
    /// There is no body, whatever the fields say.
    case none
    /// The body has this many bytes, 0 to 2^63 − 1.
    case length(UInt64)
    /// The body is chunked.
    case chunked
    /// The body ends with the connection. Responses only.
    case untilClose
}

/// Whether a message lets its connection live on (RFC 9112 §9.3).
package enum PersistenceRule {
    /// Decides by version and `Connection`, in any case and list form: `close` wins, HTTP/1.1 stays open, and
    /// HTTP/1.0 only with `keep-alive`.
    package static func persists(version: WireVersion, fields: FieldBlock) -> Bool {
        if fields.contains("Connection", token: "close") { return false }
        return version == .http11 || fields.contains("Connection", token: "keep-alive")
    }
}
