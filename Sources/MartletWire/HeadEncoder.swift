/// The encoder of the head of a request.
package typealias RequestEncoder = HeadEncoder

/// The encoder of the head of a response, for the test origin.
package typealias ResponseEncoder = HeadEncoder

/// An encoder of the head of a request or a response. It rejects input that could split the message (RFC 9112 §3, §4,
/// §5, §11.2). The buffer is reused for each head. After an error, ``bytes`` is empty until the next head starts, so
/// that no part of a rejected message can reach a socket.
package struct HeadEncoder: Sendable {
    /// The kind of the open head.
    private enum State: Sendable {
        /// No head was started, or the last one was rejected or ended.
        case closed
        case request
        case response
        /// Field lines without a start line: lines for later heads, or trailers.
        case lines
    }

    /// The encoded head; complete after ``end()``.
    package private(set) var bytes: [UInt8] = []
    private var state = State.closed
    private var hasFraming = false
    private var hasHost = false
    private var hasCookie = false

    /// Creates an encoder.
    /// - Parameter buffer: The memory for the head; its bytes are dropped.
    package init(reusing buffer: consuming [UInt8] = []) {
        bytes = buffer
        bytes.removeAll(keepingCapacity: true)
    }

    // MARK: Start lines

    /// Empties the buffer, and starts the head of a request.
    /// - Parameters:
    ///   - method: A token.
    ///   - target: Visible ASCII, in any of the four forms of RFC 9112 §3.2.
    /// - Throws: `invalidMethod` or `invalidTarget`, with the index of the first bad byte.
    package mutating func begin(method: String, target: String, version: WireVersion = .http11) throws(WireError) {
        open(.request)
        let methodBytes = method.utf8.span
        let end = methodBytes.endOfToken(in: 0..<methodBytes.count)
        if end < methodBytes.count || end == 0 { throw reject(.invalidMethod, at: end) }
        let targetBytes = target.utf8.span
        if targetBytes.isEmpty { throw reject(.invalidTarget, at: 0) }
        try check(targetBytes, else: .invalidTarget, where: ByteClass.isTarget)
        append(methodBytes, " ", targetBytes, version == .http11 ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n")
    }

    /// Empties the buffer, and starts the head of a response.
    /// - Parameters:
    ///   - status: 100...999.
    ///   - reason: The reason phrase; may be empty.
    /// - Throws: `invalidStatus` or `invalidReason`.
    package mutating func begin(status: Int, reason: String = "", version: WireVersion = .http11) throws(WireError) {
        open(.response)
        guard (100...999).contains(status) else { throw reject(.invalidStatus, at: 0) }
        try check(reason.utf8.span, else: .invalidReason, where: ByteClass.isFieldValue)
        let start = "\(version.text) \(status)"
        append(start.utf8.span, " ", reason.utf8.span, "\r\n")
    }

    /// Empties the buffer, and starts field lines without a start line, for trailers or for ``lines(_:)``.
    package mutating func beginLines() { open(.lines) }

    // MARK: Fields

    /// Adds field lines that another encoder wrote after ``beginLines()``, without checking them again. None of them
    /// may be a framing field, Host or Cookie.
    package mutating func lines(_ lines: [UInt8]) { if !bytes.isEmpty { bytes.append(contentsOf: lines) } }

    /// Adds a field; the UTF-8 bytes of the value are sent.
    /// - Throws: `invalidFieldName`, `invalidFieldValue` with the index of the first bad byte; `conflictingFraming` for
    ///   a second Content-Length or Transfer-Encoding, or both; `repeatedField` for a second Host or Cookie;
    ///   `encodingOutOfOrder` if no head is open.
    package mutating func field(name: String, value: String) throws(WireError) { try field(name, value.utf8.span) }

    /// Adds a field whose value is bytes, such as Latin-1; otherwise like ``field(name:value:)``.
    package mutating func field(name: String, rawValue: [UInt8]) throws(WireError) { try field(name, rawValue.span) }

    private mutating func field(_ name: String, _ value: Span<UInt8>) throws(WireError) {
        guard state != .closed else { throw reject(.encodingOutOfOrder, at: 0) }
        let span = name.utf8.span
        try checkNotRepeated(span)
        let end = span.endOfToken(in: 0..<span.count)
        if end < span.count || end == 0 { throw reject(.invalidFieldName, at: end) }
        if let index = value.firstInvalidValueByte(in: 0..<value.count) { throw reject(.invalidFieldValue, at: index) }
        append(span, ": ", value, "\r\n")
    }

    /// Rejects a second framing field, Host or Cookie, because a proxy and a server might use different ones.
    private mutating func checkNotRepeated(_ name: Span<UInt8>) throws(WireError) {
        switch name.count {
        case 4 where matches(name, "host"):
            if hasHost { throw reject(.repeatedField, at: 0) }
            hasHost = true
        case 6 where matches(name, "cookie"):
            if hasCookie { throw reject(.repeatedField, at: 0) }
            hasCookie = true
        case 14 where matches(name, "content-length"), 17 where matches(name, "transfer-encoding"):
            if hasFraming { throw reject(.conflictingFraming, at: 0) }
            hasFraming = true
        default: break
        }
    }

    /// Whether a name is a known one of the same length.
    private func matches(_ name: Span<UInt8>, _ lowercased: StaticString) -> Bool {
        for index in name.indices where unsafe ByteClass.lowercased(name[index]) != lowercased.utf8Start[index] {
            return false
        }
        return true
    }

    /// Adds the Host field (RFC 9110 §7.2).
    /// - Parameter value: Host and port; empty for a request without an authority.
    /// - Throws: `invalidHost` for bytes that are not allowed in a host.
    package mutating func hostField(_ value: String) throws(WireError) {
        let span = value.utf8.span
        for index in span.indices {
            switch span[index] {
            case UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"), UInt8(ascii: "@"), UInt8(ascii: "\\"),
                UInt8(ascii: ","):
                throw reject(.invalidHost, at: index)
            case let byte: if !ByteClass.isTarget(byte) { throw reject(.invalidHost, at: index) }
            }
        }
        try field("Host", span)
    }

    /// Adds the field for the framing of the body. ``BodyFraming/none`` and ``BodyFraming/untilClose`` need no field.
    /// - Throws: `conflictingFraming` if the head already has a framing field, and for ``BodyFraming/untilClose`` in a
    ///   request: only the body of a response may end with the connection.
    package mutating func framing(_ framing: BodyFraming) throws(WireError) {
        switch framing {
        case .none: break
        case .length(let length): try field(name: "Content-Length", value: String(length))
        case .chunked: try field(name: "Transfer-Encoding", value: "chunked")
        case .untilClose: if state != .response { throw reject(.conflictingFraming, at: 0) }
        }
    }

    /// Ends the head with the empty line. Does nothing after an error.
    package mutating func end() {
        guard state != .closed else { return }
        appendLineEnd()
        state = .closed
    }

    // MARK: The buffer

    private mutating func open(_ state: State) {
        bytes.removeAll(keepingCapacity: true)
        bytes.reserveCapacity(512)
        self.state = state
        (hasFraming, hasHost, hasCookie) = (false, false, false)
    }

    /// Empties the buffer, and returns the error.
    private mutating func reject(_ code: WireErrorCode, at index: Int) -> WireError {
        bytes.removeAll(keepingCapacity: true)
        state = .closed
        return WireError(code, at: index)
    }

    /// Adds two parts with the text after each, in one step.
    private mutating func append(
        _ first: Span<UInt8>, _ separator: StaticString, _ second: Span<UInt8>, _ end: StaticString
    ) {
        let size = first.count + separator.utf8CodeUnitCount + second.count + end.utf8CodeUnitCount
        bytes.append(addingCapacity: size) { output in
            unsafe output.withUnsafeMutableBufferPointer { target, count in
                func put(_ part: UnsafeRawBufferPointer) {
                    unsafe UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(target)[count...])
                        .copyMemory(from: part)
                    count += part.count
                }
                unsafe first.withUnsafeBytes { unsafe put($0) }
                separator.withUTF8Buffer { unsafe put(UnsafeRawBufferPointer($0)) }
                unsafe second.withUnsafeBytes { unsafe put($0) }
                end.withUTF8Buffer { unsafe put(UnsafeRawBufferPointer($0)) }
            }
        }
    }

    /// Checks that all bytes belong to a class.
    private mutating func check(_ span: Span<UInt8>, else code: WireErrorCode, where isAllowed: (UInt8) -> Bool)
        throws(WireError)
    {
        for index in span.indices where !isAllowed(span[index]) { throw reject(code, at: index) }
    }

    private mutating func appendLineEnd() {
        bytes.append(ByteClass.carriageReturn)
        bytes.append(ByteClass.lineFeed)
    }
}
