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
    package mutating func body(_ payload: Span<UInt8>) {
        if !writer.bytes.isEmpty { writer.append(payload) }
    }
}
