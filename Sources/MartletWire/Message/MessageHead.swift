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
    struct Entry: BitwiseCopyable, Sendable {
        var nameStart: UInt32
        var nameEnd: UInt32
        var valueStart: UInt32
        var valueEnd: UInt32

        @inline(__always) init(name: Range<Int>, value: Range<Int>) {
            nameStart = UInt32(truncatingIfNeeded: name.lowerBound)
            nameEnd = UInt32(truncatingIfNeeded: name.upperBound)
            valueStart = UInt32(truncatingIfNeeded: value.lowerBound)
            valueEnd = UInt32(truncatingIfNeeded: value.upperBound)
        }
    }

    /// The bytes that the entries point into; may hold other bytes between them. After the bytes of a received block
    /// are its entries, so that the block is one allocation.
    private(set) var storage: [UInt8] = []
    /// The entries of a block that was changed or not received; empty if they are in ``storage``.
    private var entries: [Entry] = []
    /// The number of fields.
    package private(set) var count = 0
    /// The index in ``storage`` of the first entry of a received block.
    private var entryStart = 0
    /// The lengths and initials of all names, as a set of bits: a look-up of most other names returns immediately.
    private var marks: UInt64 = 0

    package init() {}

    /// Creates a block of names and values, which only the encoders check. For servers and tests.
    package init(_ fields: [(String, String)]) { for (name, value) in fields { append(name: name, value: value) } }

    /// Creates a received block.
    /// - Parameters:
    ///   - bytes: The bytes of the message, up to the end of the fields.
    ///   - marks: The ``mark(_:_:)`` of all names.
    init(_ bytes: Span<UInt8>, _ entries: Span<Entry>, marks: UInt64) {
        // A section without fields, such as most trailer sections, needs no memory.
        if entries.isEmpty { return }
        (count, entryStart, self.marks) = (entries.count, bytes.count, marks)
        let byteCount = entryStart &+ count &* MemoryLayout<Entry>.stride
        storage.reserveCapacity(byteCount)
        storage.append(addingCapacity: byteCount) { output in
            unsafe output.withUnsafeMutableBufferPointer { target, count in
                let target = UnsafeMutableRawBufferPointer(target)
                unsafe bytes.withUnsafeBytes { unsafe target.copyMemory(from: $0) }
                let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: target[bytes.count...])
                unsafe entries.withUnsafeBytes { unsafe rest.copyMemory(from: $0) }
                count = byteCount
            }
        }
    }

    @inline(__always) private func entry(at index: Int) -> Entry {
        guard entries.isEmpty else { return entries[index] }
        precondition(index >= 0 && index < count)
        let offset = entryStart &+ index &* MemoryLayout<Entry>.stride
        return unsafe storage.span.bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: Entry.self)
    }

    /// The bit of a name's length and first byte, in any letter case. The factor is odd, so that names of one length
    /// with different initials have different bits.
    @inline(__always) static func mark(_ length: Int, _ first: UInt8) -> UInt64 {
        1 &<< UInt64(truncatingIfNeeded: length &+ Int(first & 0x1F) &* 21)
    }

    /// Adds a field at the end.
    /// - Parameters:
    ///   - name: The name, in any case.
    ///   - value: The value; its UTF-8 bytes are stored.
    package mutating func append(name: String, value: String) { append(name: name.utf8, value: value.utf8) }

    /// Adds a field at the end, from bytes.
    package mutating func append(name: some Sequence<UInt8>, value: some Sequence<UInt8>) {
        if entries.isEmpty { entries = indices.map { self.entry(at: $0) } }
        let nameStart = storage.count
        storage.append(contentsOf: name)
        let nameEnd = storage.count
        storage.append(contentsOf: value)
        let entry = Entry(name: nameStart..<nameEnd, value: nameEnd..<storage.count)
        entries.append(entry)
        count += 1
        if nameEnd > nameStart { marks |= FieldBlock.mark(nameEnd - nameStart, storage[nameStart]) }
    }

    // MARK: Collection

    /// The first index; always 0.
    package var startIndex: Int { 0 }
    package var endIndex: Int { count }
    /// The field at an index, as strings.
    package subscript(position: Int) -> Element { (nameString(at: position), valueString(at: position)) }

    // MARK: One field

    package func name(at index: Int) -> ArraySlice<UInt8> {
        let entry = entry(at: index)
        return storage[Int(entry.nameStart)..<Int(entry.nameEnd)]
    }

    package func value(at index: Int) -> ArraySlice<UInt8> {
        let entry = entry(at: index)
        return storage[Int(entry.valueStart)..<Int(entry.valueEnd)]
    }

    /// The name at an index; names are ASCII.
    package func nameString(at index: Int) -> String { String(decoding: name(at: index), as: UTF8.self) }

    /// The value at an index: UTF-8 if its bytes are valid, else Latin-1, so that no byte is lost.
    package func valueString(at index: Int) -> String { ByteText.string(value(at: index)) }

    /// The start of the value at an index: its offset in the message, if no line of the message was folded.
    func valueOffset(at index: Int) -> Int { Int(entry(at: index).valueStart) }

    // MARK: Looking up

    /// The first index from a start on whose name matches, in any letter case; `nil` without one.
    package func firstIndex(of name: String, from start: Int = 0) -> Int? {
        firstIndex(of: name.utf8.span, from: start)
    }

    /// The first index of a known name, like ``firstIndex(of:from:)``. A block without the name costs a few instructions.
    @inline(__always) func firstIndex(ofKnown name: StaticString, from start: Int = 0) -> Int? {
        guard marks & FieldBlock.mark(name.utf8CodeUnitCount, unsafe name.utf8Start.pointee) != 0 else { return nil }
        return firstIndex(of: unsafe Span(_unsafeStart: name.utf8Start, count: name.utf8CodeUnitCount), from: start)
    }

    @inline(never) private func firstIndex(of name: Span<UInt8>, from start: Int) -> Int? {
        guard !name.isEmpty, marks & FieldBlock.mark(name.count, name[0]) != 0 else { return nil }
        let length = UInt32(truncatingIfNeeded: name.count)
        var index = start
        while index < count {
            let entry = entry(at: index)
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
    package func contains(_ name: StaticString, token: String) -> Bool {
        let wanted = token.utf8.span
        guard var next = firstIndex(ofKnown: name), !wanted.isEmpty else { return false }
        while true {
            let value = value(at: next)
            // Most values do not contain the first byte of the token, so their elements are not compared.
            if value.contains(where: { ByteClass.lowercased($0) == ByteClass.lowercased(wanted[0]) }) {
                for element in ElementList(value) where ByteClass.equalsIgnoringCase(element, wanted) { return true }
            }
            guard let following = firstIndex(ofKnown: name, from: next + 1) else { return false }
            next = following
        }
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
