/// The fields of a message, in order and exactly as received, in one storage.
///
/// Names keep their case and values their bytes; white space around values is gone and a folded line has
/// become one space. Looking a name up ignores case (RFC 9110 §5.1). A copy costs two reference counts.
package struct FieldBlock: Sendable, RandomAccessCollection {
    /// A field as strings; see ``valueString(at:)`` for how bytes become characters.
    package typealias Element = (name: String, value: String)

    /// Where one field lies in ``storage``. For received blocks these are offsets in the message.
    struct Entry: Sendable {
        var nameStart: UInt32
        var nameEnd: UInt32
        var valueStart: UInt32
        var valueEnd: UInt32
    }

    /// The bytes the entries point into; may hold other bytes between them.
    private(set) var storage: [UInt8]
    private(set) var entries: [Entry]
    /// Which lengths names have: a name of another length is looked for nowhere.
    private var lengths: UInt64 = 0

    /// Makes an empty block.
    package init() {
        storage = []
        entries = []
    }

    /// Makes a block of names and values for servers and tests; encoders check them, this does not.
    package init(_ fields: [(String, String)]) {
        self.init()
        for (name, value) in fields { append(name: name, value: value) }
    }

    init(storage: [UInt8], entries: [Entry]) {
        self.storage = storage
        self.entries = entries
        for entry in entries { note(nameOf: entry) }
    }

    private mutating func note(nameOf entry: Entry) {
        lengths |= FieldBlock.mark(entry.nameEnd &- entry.nameStart)
    }

    /// The bit of a name's length; the last one stands for all that are longer.
    private static func mark(_ length: UInt32) -> UInt64 { 1 << UInt64(Swift.min(length, 63)) }

    /// Adds a field at the end.
    ///
    /// - Parameters:
    ///   - name: the name, in any case.
    ///   - value: the value; its UTF-8 bytes are kept.
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

    /// Always 0.
    package var startIndex: Int { 0 }
    /// The number of field lines.
    package var endIndex: Int { entries.count }
    /// The field at an index, as strings.
    package subscript(position: Int) -> Element { (nameString(at: position), valueString(at: position)) }

    // MARK: One field

    /// The bytes of the name at an index.
    package func name(at index: Int) -> ArraySlice<UInt8> {
        storage[Int(entries[index].nameStart)..<Int(entries[index].nameEnd)]
    }

    /// The bytes of the value at an index.
    package func value(at index: Int) -> ArraySlice<UInt8> {
        storage[Int(entries[index].valueStart)..<Int(entries[index].valueEnd)]
    }

    /// The name at an index; names are ASCII.
    package func nameString(at index: Int) -> String { String(decoding: name(at: index), as: UTF8.self) }

    /// The value at an index: UTF-8 if its bytes are that, else Latin-1, so that no byte is ever lost
    /// silently.
    package func valueString(at index: Int) -> String { ByteText.string(value(at: index)) }

    /// Where the value at an index starts: the offset in the message, for received blocks.
    package func valueOffset(at index: Int) -> Int { Int(entries[index].valueStart) }

    // MARK: Looking up

    /// The first index at or after a start whose name is the given one in any case, or nil.
    package func firstIndex(of name: String, from start: Int = 0) -> Int? {
        firstIndex(ofBytes: name.utf8.span, from: start)
    }

    func firstIndex(ofBytes name: Span<UInt8>, from start: Int) -> Int? {
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
            // Nearly always they are written alike.
            guard ByteClass.lowercased(bytes[index]) == ByteClass.lowercased(name[index]) else {
                return false
            }
        }
        return true
    }

    /// Whether a field of that name exists, in any case.
    package func contains(_ name: String) -> Bool { firstIndex(of: name) != nil }

    /// The first value of a name, or nil.
    package func firstValue(of name: String) -> String? { firstIndex(of: name).map { valueString(at: $0) } }

    /// The bytes of every field of a name, in order.
    package func rawValues(of name: String) -> [ArraySlice<UInt8>] {
        var values: [ArraySlice<UInt8>] = []
        var start = startIndex
        while let index = firstIndex(of: name, from: start) {
            values.append(value(at: index))
            start = index + 1
        }
        return values
    }

    /// All values of a name, one per field line, in order.
    package func values(of name: String) -> [String] {
        var values: [String] = []
        var next = firstIndex(of: name)
        while let index = next {
            values.append(valueString(at: index))
            next = firstIndex(of: name, from: index + 1)
        }
        return values
    }

    /// Whether a comma list, over all fields of a name, has a token as a member, in any case (RFC 9110
    /// §5.6.1).
    package func contains(_ name: String, token: String) -> Bool {
        let wanted = token.utf8.span
        var next = firstIndex(of: name)
        while let index = next {
            for element in ElementList(value(at: index))
            where ByteClass.equalsIgnoringCase(element, wanted) { return true }
            next = firstIndex(of: name, from: index + 1)
        }
        return false
    }
}

extension FieldBlock: Equatable {
    /// Whether both have the same names and values, byte for byte and in the same order.
    package static func == (left: FieldBlock, right: FieldBlock) -> Bool {
        guard left.count == right.count else { return false }
        return left.indices.allSatisfy { index in
            left.name(at: index) == right.name(at: index) && left.value(at: index) == right.value(at: index)
        }
    }
}
