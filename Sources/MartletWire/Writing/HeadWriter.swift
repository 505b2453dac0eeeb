/// Writes checked lines of a head into one buffer that is used again and again. After a fault the buffer is
/// empty and stays so until the next head begins: no part of a refused message can reach a socket.
struct HeadWriter: Sendable {
    /// Where in a head the next line stands.
    private enum State: Sendable {
        /// No head was begun, or the last one was refused.
        case closed
        /// Fields may follow.
        case fields
    }

    private(set) var bytes: [UInt8] = []
    private var state = State.closed
    private var hasLength = false
    private var hasTransferEncoding = false
    private var hasHost = false
    private var hasCookie = false

    /// Forgets what was written but keeps the memory.
    mutating func clear() {
        bytes.removeAll(keepingCapacity: true)
        state = .closed
    }

    /// Begins a head in an empty buffer.
    mutating func open() {
        clear()
        bytes.reserveCapacity(512)
        state = .fields
        hasLength = false
        hasTransferEncoding = false
        hasHost = false
        hasCookie = false
    }

    /// Empties the buffer for good and says why.
    mutating func refuse(_ code: WireErrorCode, at index: Int) -> WireError {
        clear()
        return WireError(code, at: index)
    }

    /// Adds text as it is.
    mutating func append(_ text: String) { append(text.utf8.span) }

    mutating func append(_ payload: Span<UInt8>) {
        unsafe payload.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
    }

    /// Adds lines that this writer has checked before.
    mutating func appendLines(_ lines: [UInt8]) { bytes.append(contentsOf: lines) }

    /// Adds text whose bytes all belong to a class.
    mutating func append(
        _ text: String, allowsEmpty: Bool = false, else code: WireErrorCode, where isAllowed: (UInt8) -> Bool
    ) throws(WireError) {
        if text.isEmpty, !allowsEmpty { throw refuse(code, at: 0) }
        let span = text.utf8.span
        for index in span.indices where !isAllowed(span[index]) { throw refuse(code, at: index) }
        append(text)
    }

    mutating func appendLineEnd() {
        bytes.append(ByteClass.carriageReturn)
        bytes.append(ByteClass.lineFeed)
    }

    mutating func appendDecimal(_ number: UInt64) { append(String(number)) }

    /// Adds a field whose value is text; its UTF-8 bytes go out.
    mutating func field(name: String, value: String) throws(WireError) {
        try fieldName(name)
        let span = value.utf8.span
        if let index = span.firstInvalidValueByte(in: 0..<span.count) {
            throw refuse(.invalidFieldValue, at: index)
        }
        append(value)
        appendLineEnd()
    }

    /// Adds a field whose value is given as bytes.
    mutating func field(name: String, rawValue: [UInt8]) throws(WireError) {
        try fieldName(name)
        let span = rawValue.span
        if let index = span.firstInvalidValueByte(in: 0..<span.count) {
            throw refuse(.invalidFieldValue, at: index)
        }
        bytes.append(contentsOf: rawValue)
        appendLineEnd()
    }

    /// Adds a checked name, its colon and a space.
    private mutating func fieldName(_ name: String) throws(WireError) {
        guard state == .fields else { throw refuse(.encodingOutOfOrder, at: 0) }
        try noteSingular(name)
        let span = name.utf8.span
        let end = span.endOfToken(in: 0..<span.count)
        if end < span.count || end == 0 { throw refuse(.invalidFieldName, at: end) }
        append(name)
        bytes.append(UInt8(ascii: ":"))
        bytes.append(ByteClass.space)
    }

    /// Refuses a second framing field, Host or Cookie: a peer and a proxy might believe different ones.
    private mutating func noteSingular(_ name: String) throws(WireError) {
        switch name.utf8.count {
        case 4 where matches(name, "host"):
            if hasHost { throw refuse(.repeatedField, at: 0) }
            hasHost = true
        case 6 where matches(name, "cookie"):
            if hasCookie { throw refuse(.repeatedField, at: 0) }
            hasCookie = true
        case 14 where matches(name, "content-length"):
            if hasLength || hasTransferEncoding { throw refuse(.conflictingFraming, at: 0) }
            hasLength = true
        case 17 where matches(name, "transfer-encoding"):
            if hasLength || hasTransferEncoding { throw refuse(.conflictingFraming, at: 0) }
            hasTransferEncoding = true
        default: break
        }
    }

    private func matches(_ name: String, _ lowercased: String) -> Bool {
        let left = name.utf8.span
        let right = lowercased.utf8.span
        for index in left.indices where ByteClass.lowercased(left[index]) != right[index] { return false }
        return true
    }

    /// Adds the empty line; without an open head nothing.
    mutating func end() {
        guard state == .fields else { return }
        appendLineEnd()
        state = .closed
    }
}
