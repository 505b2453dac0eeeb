/// Writes the head of a request, and refuses whatever could split it into two (RFC 9112 §3, §5, §11.2).
///
/// The buffer is used again for each request. After a method threw, ``bytes`` is empty and stays so until the
/// next ``begin(method:target:version:)``.
package struct RequestEncoder: Sendable {
    private var writer = HeadWriter()

    /// Makes an encoder with an empty buffer.
    package init() {}

    /// What is to be sent; complete after ``end()``.
    package var bytes: [UInt8] { writer.bytes }

    /// Forgets what was written but keeps the memory.
    package mutating func clear() { writer.clear() }

    /// Starts a head in an emptied buffer.
    ///
    /// - Parameters:
    ///   - method: a token.
    ///   - target: visible ASCII, in any of the four forms of RFC 9112 §3.2.
    ///   - version: the version to claim.
    /// - Throws: `invalidMethod` or `invalidTarget`, with the index of the first bad byte.
    package mutating func begin(
        method: String, target: String, version: WireVersion = .http11
    ) throws(WireError) {
        writer.open()
        try writer.append(method, else: .invalidMethod, where: ByteClass.isToken)
        writer.append(" ")
        try writer.append(target, else: .invalidTarget, where: ByteClass.isTarget)
        writer.append(version == .http11 ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n")
    }

    /// Starts lines that belong to no head yet, in an emptied buffer; see ``lines(_:)``.
    package mutating func beginLines() { writer.open() }

    /// Adds lines that an encoder made between ``beginLines()`` and now, as they are: checked once, written many times.
    ///
    /// None of them may be a framing field, Host or Cookie.
    package mutating func lines(_ lines: [UInt8]) { if !writer.bytes.isEmpty { writer.appendLines(lines) } }

    /// Adds a field; the UTF-8 bytes of the value go out.
    ///
    /// - Throws: `invalidFieldName`, `invalidFieldValue` with the index of the first bad byte;
    ///   `conflictingFraming` or `repeatedField` for a second Content-Length, Transfer-Encoding, Host or
    ///   Cookie.
    package mutating func field(name: String, value: String) throws(WireError) {
        try writer.field(name: name, value: value)
    }

    /// Adds a field whose value is bytes, such as Latin-1; refuses what ``field(name:value:)`` refuses.
    package mutating func field(name: String, rawValue: [UInt8]) throws(WireError) {
        try writer.field(name: name, rawValue: rawValue)
    }

    /// Adds the Host field (RFC 9110 §7.2).
    ///
    /// - Parameters:
    ///   - host: a name or address; an IPv6 literal gets brackets if it has none.
    ///   - port: the port, or nil when it is the scheme's default and so stays unsaid.
    /// - Throws: `invalidHost` for bytes no host can have.
    package mutating func host(_ host: String, port: UInt16?) throws(WireError) {
        if host.isEmpty { throw writer.refuse(.invalidHost, at: 0) }
        let isAddress = host.utf8.contains(UInt8(ascii: ":"))
        let name = isAddress && !host.hasPrefix("[") ? "[\(host)]" : host
        try hostField(port.map { "\(name):\($0)" } ?? name)
    }

    /// Adds a Host field whose value, host and port together, is given as it shall stand.
    ///
    /// An empty one is allowed: that is what a request without an authority has (RFC 9110 §7.2).
    ///
    /// - Throws: `invalidHost` for bytes no host can have.
    package mutating func hostField(_ value: String) throws(WireError) {
        let span = value.utf8.span
        for index in span.indices {
            let byte = span[index]
            let isHost =
                ByteClass.isTarget(byte) && byte != UInt8(ascii: "/") && byte != UInt8(ascii: "?")
                && byte != UInt8(ascii: "#") && byte != UInt8(ascii: "@") && byte != UInt8(ascii: "\\")
                && byte != UInt8(ascii: ",")
            guard isHost else { throw writer.refuse(.invalidHost, at: index) }
        }
        try field(name: "Host", value: value)
    }

    /// Adds all cookie pairs as the one Cookie line that HTTP/1.1 allows (RFC 6265 §5.4); nothing for none.
    ///
    /// - Parameter pairs: `name=value` each.
    /// - Throws: `invalidFieldValue`.
    package mutating func cookies(_ pairs: [String]) throws(WireError) {
        if pairs.isEmpty { return }
        try field(name: "Cookie", value: pairs.joined(separator: "; "))
    }

    /// Adds the field that frames a body of this kind; nothing for ``BodyFraming/none``.
    ///
    /// - Throws: `conflictingFraming` when the head has one, or for ``BodyFraming/untilClose``, which no
    ///   request can have.
    package mutating func framing(_ framing: BodyFraming) throws(WireError) {
        switch framing {
        case .none: break
        case .length(let length): try field(name: "Content-Length", value: String(length))
        case .chunked: try field(name: "Transfer-Encoding", value: "chunked")
        case .untilClose: throw writer.refuse(.conflictingFraming, at: 0)
        }
    }

    /// Ends the head; does nothing after a fault.
    package mutating func end() { writer.end() }

    /// Adds bytes of the body behind a complete head, so that a small request is one write; does nothing
    /// after a fault.
    package mutating func body(_ payload: Span<UInt8>) { if !writer.bytes.isEmpty { writer.append(payload) } }
}

/// Writes the head of a response: what the test origin sends when it plays by the rules.
package struct ResponseEncoder: Sendable {
    private var writer = HeadWriter()

    /// Makes an encoder with an empty buffer.
    package init() {}

    /// What is to be sent; complete after ``end()``.
    package var bytes: [UInt8] { writer.bytes }

    /// Forgets what was written but keeps the memory.
    package mutating func clear() { writer.clear() }

    /// Starts a head in an emptied buffer.
    ///
    /// - Parameters:
    ///   - status: 100...999.
    ///   - reason: the reason phrase; may be empty.
    ///   - version: the version to claim.
    /// - Throws: `invalidStatus` or `invalidReason`.
    package mutating func begin(
        status: Int, reason: String = "", version: WireVersion = .http11
    ) throws(WireError) {
        writer.open()
        guard (100...999).contains(status) else { throw writer.refuse(.invalidStatus, at: 0) }
        writer.append(version == .http11 ? "HTTP/1.1 " : "HTTP/1.0 ")
        writer.appendDecimal(UInt64(status))
        writer.append(" ")
        try writer.append(reason, allowsEmpty: true, else: .invalidReason, where: ByteClass.isFieldValue)
        writer.appendLineEnd()
    }

    /// Adds a field; the UTF-8 bytes of the value go out.
    ///
    /// - Throws: `invalidFieldName`, `invalidFieldValue`, `conflictingFraming`.
    package mutating func field(name: String, value: String) throws(WireError) {
        try writer.field(name: name, value: value)
    }

    /// Adds a field whose value is bytes; refuses what ``field(name:value:)`` refuses.
    package mutating func field(name: String, rawValue: [UInt8]) throws(WireError) {
        try writer.field(name: name, rawValue: rawValue)
    }

    /// Adds all fields of a block.
    ///
    /// - Throws: as ``field(name:value:)``.
    package mutating func fields(_ block: FieldBlock) throws(WireError) {
        for index in block.indices {
            try writer.field(name: block.nameString(at: index), rawValue: Array(block.value(at: index)))
        }
    }

    /// Adds the field that frames a body of this kind; nothing for none and for a body that ends with the
    /// connection.
    ///
    /// - Throws: `conflictingFraming` when the head has one.
    package mutating func framing(_ framing: BodyFraming) throws(WireError) {
        switch framing {
        case .none, .untilClose: break
        case .length(let length): try field(name: "Content-Length", value: String(length))
        case .chunked: try field(name: "Transfer-Encoding", value: "chunked")
        }
    }

    /// Ends the head; does nothing after a fault.
    package mutating func end() { writer.end() }

    /// Adds bytes of the body behind a complete head; does nothing after a fault.
    package mutating func body(_ payload: Span<UInt8>) { if !writer.bytes.isEmpty { writer.append(payload) } }
}
