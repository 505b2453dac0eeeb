/// The request line and fields of a request (RFC 9112 §3, §5).
package struct RequestHead: Sendable, Equatable {
    /// The method, in the letter case in which it was sent.
    package var method: String
    /// The request target as sent: visible ASCII, never empty.
    package var target: String
    package var version: WireVersion
    /// The fields in the order received.
    package var fields: FieldBlock

    /// Creates a head from its parts, which only the encoders check.
    package init(method: String, target: String, version: WireVersion = .http11, fields: FieldBlock = FieldBlock()) {
        (self.method, self.target, self.version, self.fields) = (method, target, version, fields)
    }
}

/// The status line and fields of a response (RFC 9112 §4, §5).
package struct ResponseHead: Sendable, Equatable {
    package var version: WireVersion
    /// The status code, 100...999.
    package var status: Int
    /// The reason phrase: empty when missing, UTF-8 when valid, else Latin-1.
    package var reason: String
    /// Whether the reason phrase was read as Latin-1.
    package var isReasonLatin1: Bool
    /// The fields in the order received.
    package var fields: FieldBlock

    /// Creates a head from its parts, which only the encoders check.
    package init(
        version: WireVersion = .http11, status: Int, reason: String = "", fields: FieldBlock = FieldBlock(),
        isReasonLatin1: Bool = false
    ) {
        (self.version, self.status, self.reason) = (version, status, reason)
        (self.isReasonLatin1, self.fields) = (isReasonLatin1, fields)
    }

    package var reasonBytes: [UInt8] { (isReasonLatin1 ? ByteText.latin1Bytes(reason) : nil) ?? Array(reason.utf8) }

    /// Whether this is an interim response (1xx, RFC 9110 §15.2).
    package var isInformational: Bool { status < 200 }

    /// Compares everything except the encoding of the reason phrases.
    package static func == (left: ResponseHead, right: ResponseHead) -> Bool {
        left.version == right.version && left.status == right.status && left.reason == right.reason
            && left.fields == right.fields
    }
}

/// The version of HTTP/1 in a message (RFC 9112 §2.3). A minor version above 1 counts as 1.1 (RFC 9110 §2.5). Other
/// major versions are errors.
package enum WireVersion: Sendable, Hashable {
    case http10
    case http11

    /// The text of the version in a start line.
    package var text: StaticString {
        switch self {
        case .http10: "HTTP/1.0"
        case .http11: "HTTP/1.1"
        }
    }
}

/// The fields of a message, in the order received, in one buffer. Names preserve their letter case and values their
/// bytes, but white space around values is removed, and each line fold is replaced by one space. Look-ups ignore the
/// letter case of names (RFC 9110 §5.1). A copy costs two reference counts.
package struct FieldBlock: Sendable, RandomAccessCollection {
    /// A field as strings; see ``valueString(at:)`` for the conversion from bytes.
    package typealias Element = (name: String, value: String)

    /// The position of one field in ``storage``: offsets in the message, if it was received without line folds.
    struct Entry: Sendable {
        var nameStart: UInt32
        var nameEnd: UInt32
        var valueStart: UInt32
        var valueEnd: UInt32
    }

    /// The bytes that the entries point into; may hold other bytes between them.
    private(set) var storage: [UInt8] = []
    private var entries: [Entry] = []
    /// The lengths of all names, as a set of bits: a look-up of a name of another length returns immediately.
    private var lengths: UInt64 = 0

    package init() {}

    /// Creates a block of names and values, which only the encoders check. For servers and tests.
    package init(_ fields: [(String, String)]) { for (name, value) in fields { append(name: name, value: value) } }

    init(storage: [UInt8], entries: [Entry]) {
        (self.storage, self.entries) = (storage, entries)
        for entry in entries { note(nameOf: entry) }
    }

    private mutating func note(nameOf entry: Entry) { lengths |= FieldBlock.mark(entry.nameEnd &- entry.nameStart) }

    /// The bit of a name's length; the last bit represents all longer names.
    private static func mark(_ length: UInt32) -> UInt64 { 1 << UInt64(Swift.min(length, 63)) }

    /// Adds a field at the end.
    /// - Parameters:
    ///   - name: The name, in any case.
    ///   - value: The value; its UTF-8 bytes are stored.
    package mutating func append(name: String, value: String) { append(name: name.utf8, value: value.utf8) }

    /// Adds a field at the end, from bytes.
    package mutating func append(name: some Sequence<UInt8>, value: some Sequence<UInt8>) {
        let nameStart = UInt32(truncatingIfNeeded: storage.count)
        storage.append(contentsOf: name)
        let nameEnd = UInt32(truncatingIfNeeded: storage.count)
        storage.append(contentsOf: value)
        let valueEnd = UInt32(truncatingIfNeeded: storage.count)
        let entry = Entry(nameStart: nameStart, nameEnd: nameEnd, valueStart: nameEnd, valueEnd: valueEnd)
        entries.append(entry)
        note(nameOf: entry)
    }

    // MARK: Collection

    /// The first index; always 0.
    package var startIndex: Int { 0 }
    package var endIndex: Int { entries.count }
    /// The field at an index, as strings.
    package subscript(position: Int) -> Element { (nameString(at: position), valueString(at: position)) }

    // MARK: One field

    package func name(at index: Int) -> ArraySlice<UInt8> {
        storage[Int(entries[index].nameStart)..<Int(entries[index].nameEnd)]
    }

    package func value(at index: Int) -> ArraySlice<UInt8> {
        storage[Int(entries[index].valueStart)..<Int(entries[index].valueEnd)]
    }

    /// The name at an index; names are ASCII.
    package func nameString(at index: Int) -> String { String(decoding: name(at: index), as: UTF8.self) }

    /// The value at an index: UTF-8 if its bytes are valid, else Latin-1, so that no byte is lost.
    package func valueString(at index: Int) -> String { ByteText.string(value(at: index)) }

    /// The start of the value at an index: its offset in the message, if no line of the message was folded.
    func valueOffset(at index: Int) -> Int { Int(entries[index].valueStart) }

    // MARK: Looking up

    /// The first index from a start on whose name matches, in any letter case; `nil` without one.
    package func firstIndex(of name: String, from start: Int = 0) -> Int? {
        let name = name.utf8.span
        let length = UInt32(truncatingIfNeeded: name.count)
        guard lengths & FieldBlock.mark(length) != 0 else { return nil }
        var index = start
        while index < entries.count {
            let entry = entries[index]
            if entry.nameEnd &- entry.nameStart == length, matches(entry, name) { return index }
            index += 1
        }
        return nil
    }

    private func matches(_ entry: Entry, _ name: Span<UInt8>) -> Bool {
        let bytes = storage.span.extracting(Int(entry.nameStart)..<Int(entry.nameEnd))
        for index in name.indices where bytes[index] != name[index] {
            // Reached rarely: most bytes have the same letter case.
            guard ByteClass.lowercased(bytes[index]) == ByteClass.lowercased(name[index]) else { return false }
        }
        return true
    }

    /// Whether a field has the name, in any letter case.
    package func contains(_ name: String) -> Bool { firstIndex(of: name) != nil }

    package func firstValue(of name: String) -> String? { firstIndex(of: name).map { valueString(at: $0) } }

    /// The bytes of every field of a name, in order.
    package func rawValues(of name: String) -> [ArraySlice<UInt8>] {
        var values: [ArraySlice<UInt8>] = []
        var next = firstIndex(of: name)
        while let index = next {
            values.append(value(at: index))
            next = firstIndex(of: name, from: index + 1)
        }
        return values
    }

    /// All values of a name, one per field line, in order.
    package func values(of name: String) -> [String] { rawValues(of: name).map(ByteText.string) }

    /// Returns the fields whose names, in lower case, pass a test.
    package func filtered(_ passes: (String) -> Bool) -> FieldBlock {
        var kept = FieldBlock()
        for index in indices where passes(nameString(at: index).lowercased()) {
            kept.append(name: name(at: index), value: value(at: index))
        }
        return kept
    }

    /// Whether the comma lists in all fields of a name contain a token, in any letter case (RFC 9110 §5.6.1).
    package func contains(_ name: String, token: String) -> Bool {
        let wanted = token.utf8.span
        var next = firstIndex(of: name)
        while let index = next {
            for element in ElementList(value(at: index)) where ByteClass.equalsIgnoringCase(element, wanted) {
                return true
            }
            next = firstIndex(of: name, from: index + 1)
        }
        return false
    }
}

extension FieldBlock: Equatable {
    /// Whether both have the same names and values, byte for byte and in the same order.
    package static func == (left: FieldBlock, right: FieldBlock) -> Bool {
        left.count == right.count
            && left.indices.allSatisfy { index in
                left.name(at: index) == right.name(at: index) && left.value(at: index) == right.value(at: index)
            }
    }
}

/// The members of a comma list (RFC 9110 §5.6.1), in linear time and without allocating memory. Commas inside quoted
/// strings do not separate members; a backslash inside such a string escapes the next byte. SP and HTAB around members
/// are removed, and empty members are skipped. An unterminated quoted string extends to the end.
package struct ElementList: Sequence, IteratorProtocol {
    private let bytes: ArraySlice<UInt8>
    private var position: Int

    package init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        position = bytes.startIndex
    }

    /// The next member, or `nil` at the end.
    package mutating func next() -> ArraySlice<UInt8>? {
        while position < bytes.endIndex {
            let start = position
            let end = endOfElement()
            position = end < bytes.endIndex ? end + 1 : end
            let element = ByteClass.trimmed(bytes[start..<end])
            if !element.isEmpty { return element }
        }
        return nil
    }

    /// The end of the element at the position: the next separating comma, or the end of the list.
    private func endOfElement() -> Int {
        var index = position
        var isQuoted = false
        while index < bytes.endIndex {
            switch bytes[index] {
            case UInt8(ascii: ","): if !isQuoted { return index }
            case UInt8(ascii: "\""): isQuoted.toggle()
            case UInt8(ascii: "\\"): if isQuoted { index += 1 }
            default: break
            }
            index += 1
        }
        return bytes.endIndex
    }
}

/// A number written as plain ASCII digits: 1*DIGIT in HTTP's grammar.
package enum DecimalNumber: Equatable, Sendable {
    /// The digits' value, at most 2^63 − 1, so that it also fits signed offsets.
    case value(UInt64)
    /// Digits whose value is larger.
    case overflow
    /// Empty, or with a byte that is not a digit.
    case invalid

    /// Parses all of the bytes; leading zeros are allowed.
    package init(_ bytes: ArraySlice<UInt8>) {
        self = .invalid
        if bytes.isEmpty { return }
        var value: UInt64 = 0
        var isOverflown = false
        for byte in bytes {
            guard ByteClass.isDigit(byte) else { return }
            // 2^63 − 1 times ten does not fit, so the overflow flags of both steps matter.
            let product = value.multipliedReportingOverflow(by: 10)
            let sum = product.partialValue.addingReportingOverflow(UInt64(byte &- 0x30))
            value = sum.partialValue
            isOverflown = isOverflown || product.overflow || sum.overflow || value > UInt64(Int64.max)
        }
        self = isOverflown ? .overflow : .value(value)
    }

    /// The value; `nil` if it is too large or not a number.
    package var exactValue: UInt64? { if case .value(let value) = self { value } else { nil } }
}
