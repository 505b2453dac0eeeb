/// The members of a comma list (RFC 9110 §5.6.1), one after the other, in linear time and without allocating.
///
/// Commas inside quoted strings do not separate; a backslash inside one quotes the next byte. Members are
/// trimmed of SP and HTAB; empty members are skipped. An unterminated quoted string reaches to the end.
package struct ElementList: Sequence, IteratorProtocol {
    private let bytes: ArraySlice<UInt8>
    private var position: Int

    /// Lists the members of one field value.
    package init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        position = bytes.startIndex
    }

    /// The next member, or nil at the end.
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

    /// Where the element at the position ends: at its comma or at the end of all.
    private func endOfElement() -> Int {
        var index = position
        var isQuoted = false
        while index < bytes.endIndex {
            switch bytes[index] {
            case UInt8(ascii: ","):
                if !isQuoted { return index }
            case UInt8(ascii: "\""):
                isQuoted.toggle()
            case UInt8(ascii: "\\"):
                if isQuoted { index += 1 }
            default: break
            }
            index += 1
        }
        return bytes.endIndex
    }
}
