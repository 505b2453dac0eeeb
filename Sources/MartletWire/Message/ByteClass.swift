/// The classes of bytes in HTTP's grammar (RFC 9110 §5.6).
package enum ByteClass {
    package static let tab: UInt8 = 0x09
    package static let lineFeed: UInt8 = 0x0A
    package static let carriageReturn: UInt8 = 0x0D
    package static let space: UInt8 = 0x20

    /// Whether the byte may be in a token: a method, a field name, a coding (RFC 9110 §5.6.2).
    @inline(__always) package static func isToken(_ byte: UInt8) -> Bool {
        // One bit per byte value in two constants, so that a lookup needs no memory access.
        let low: UInt64 = 0x03FF_6CFA_0000_0000
        let high: UInt64 = 0x57FF_FFFF_C7FF_FFFE
        let bits = byte & 0x40 == 0 ? low : high
        return byte < 0x80 && (bits >> UInt64(byte & 0x3F)) & 1 != 0
    }

    /// Whether the byte may be in a field value or reason phrase: HTAB, SP, visible ASCII, 0x80 and up.
    @inline(__always) package static func isFieldValue(_ byte: UInt8) -> Bool {
        (byte >= 0x20 && byte != 0x7F) || byte == tab
    }

    /// Whether the byte may be in a request target: visible ASCII without blanks.
    @inline(__always) package static func isTarget(_ byte: UInt8) -> Bool { byte > 0x20 && byte < 0x7F }

    /// Whether the byte is optional white space: SP or HTAB and nothing else (RFC 9110 §5.6.3).
    @inline(__always) package static func isBlank(_ byte: UInt8) -> Bool { byte == space || byte == tab }

    @inline(__always) package static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

    @inline(__always) package static func digit(_ byte: UInt8) -> Int? {
        let value = byte &- 0x30
        return value < 10 ? Int(value) : nil
    }

    /// The value of an ASCII hexadecimal digit in either case, or `nil`.
    @inline(__always) package static func hexDigit(_ byte: UInt8) -> UInt64? {
        let digit = byte &- 0x30
        if digit < 10 { return UInt64(digit) }
        let letter = (byte | 0x20) &- 0x61
        return letter < 6 ? UInt64(letter) + 10 : nil
    }

    /// Returns an ASCII capital letter in lower case, and any other byte unchanged.
    @inline(__always) package static func lowercased(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }

    /// Whether two byte strings are equal except for the case of ASCII letters.
    package static func equalsIgnoringCase(_ left: ArraySlice<UInt8>, _ right: Span<UInt8>) -> Bool {
        guard left.count == right.count else { return false }
        for index in right.indices where lowercased(left[left.startIndex &+ index]) != lowercased(right[index]) {
            return false
        }
        return true
    }

    /// The bytes without SP and HTAB at both ends.
    package static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var start = bytes.startIndex
        var end = bytes.endIndex
        while start < end, isBlank(bytes[start]) { start += 1 }
        while end > start, isBlank(bytes[end - 1]) { end -= 1 }
        return bytes[start..<end]
    }
}

/// The conversion between bytes of a head and characters.
package enum ByteText {
    /// The bytes as text: decoded as UTF-8 if they are valid UTF-8, else as Latin-1.
    package static func string(_ bytes: ArraySlice<UInt8>) -> String {
        String(validating: bytes, as: UTF8.self) ?? latin1(bytes)
    }

    /// The bytes decoded as Latin-1: each byte is a code point. The inverse of ``latin1Bytes(_:)``.
    package static func latin1(_ bytes: ArraySlice<UInt8>) -> String {
        // Fast path: most text is ASCII, which is the same in UTF-8 and Latin-1.
        if bytes.allSatisfy({ $0 < 0x80 }) { return String(decoding: bytes, as: UTF8.self) }
        return String(decoding: bytes.lazy.map { UInt16($0) }, as: UTF16.self)
    }

    /// The bytes of a string whose characters are all below U+0100; `nil` if one is not.
    package static func latin1Bytes(_ text: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            guard let byte = UInt8(exactly: scalar.value) else { return nil }
            bytes.append(byte)
        }
        return bytes
    }
}

/// Searches that read eight bytes in each step, at any alignment. Each checks its range once, and loads only bytes of the
/// span. In the marks of a word, the highest bit of each byte is exact, so that the lowest mark is the first byte.
extension Span where Element == UInt8 {
    /// The eight bytes from an index on, the first one in the lowest bits. The caller has checked that they exist.
    @inline(__always) func word(at index: Int) -> UInt64 {
        assert(index >= 0 && index &+ 8 <= count)
        return unsafe UInt64(littleEndian: bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: index, as: UInt64.self))
    }

    /// The index of the first LF within a range, or `nil`.
    @inline(__always) func firstLineFeed(in range: Range<Int>) -> Int? {
        precondition(range.lowerBound >= 0 && range.upperBound <= count)
        var index = range.lowerBound
        while index &+ 8 <= range.upperBound {
            let word = word(at: index) ^ 0x0A0A_0A0A_0A0A_0A0A
            let zeros = (word &- 0x0101_0101_0101_0101) & ~word & 0x8080_8080_8080_8080
            // The lowest mark is exact; higher marks may result from a borrow and are ignored.
            if zeros != 0 { return index &+ zeros.trailingZeroBitCount >> 3 }
            index &+= 8
        }
        while index < range.upperBound {
            if unsafe self[unchecked: index] == ByteClass.lineFeed { return index }
            index &+= 1
        }
        return nil
    }

    /// The index of the first byte within a range that is invalid in a field value, or `nil`.
    @inline(__always) func firstInvalidValueByte(in range: Range<Int>) -> Int? {
        precondition(range.lowerBound >= 0 && range.upperBound <= count)
        let lastWord = range.upperBound &- 8
        var index = range.lowerBound
        while index <= lastWord {
            let word = word(at: index)
            let low = word & 0x7F7F_7F7F_7F7F_7F7F
            // Marks the bytes below SP, and DEL, but no byte above ASCII. Of these only HTAB is valid.
            let fromSpace = low &+ 0x6060_6060_6060_6060
            let deletes = low &+ 0x0101_0101_0101_0101
            let marks = (~fromSpace | deletes) & ~word & 0x8080_8080_8080_8080
            if marks == 0 {
                index &+= 8
                continue
            }
            index &+= marks.trailingZeroBitCount >> 3
            if unsafe self[unchecked: index] != ByteClass.tab { return index }
            index &+= 1
        }
        while index < range.upperBound {
            if !ByteClass.isFieldValue(unsafe self[unchecked: index]) { return index }
            index &+= 1
        }
        return nil
    }

    /// The index of the first byte within a range that is not a token byte, or the end of the range.
    @inline(__always) func endOfToken(in range: Range<Int>) -> Int {
        precondition(range.lowerBound >= 0 && range.upperBound <= count)
        let lastWord = range.upperBound &- 8
        var index = range.lowerBound
        while index < range.upperBound {
            if index <= lastWord {
                // Nearly all bytes of names are letters and hyphens. These are skipped; others are checked one by one.
                let word = word(at: index)
                let letters = (word | 0x2020_2020_2020_2020) & 0x7F7F_7F7F_7F7F_7F7F
                let fromA = letters &+ 0x1F1F_1F1F_1F1F_1F1F
                let afterZ = letters &+ 0x0505_0505_0505_0505
                let differs = word ^ 0x2D2D_2D2D_2D2D_2D2D
                let notHyphen = ((differs & 0x7F7F_7F7F_7F7F_7F7F) &+ 0x7F7F_7F7F_7F7F_7F7F) | differs
                let others = ((~fromA | afterZ) & notHyphen | word) & 0x8080_8080_8080_8080
                if others == 0 {
                    index &+= 8
                    continue
                }
                index &+= others.trailingZeroBitCount >> 3
            }
            let byte = unsafe self[unchecked: index]
            if byte == UInt8(ascii: ":") || !ByteClass.isToken(byte) { return index }
            index &+= 1
        }
        return index
    }

    /// The field line from an index on, with the index after its line end, if it is plain and ends before another index:
    /// a name, a colon, a valid value, CR and LF. `nil` for an incomplete, empty, folded or invalid line. Finds the end
    /// of the name, of the value and of the line in one pass.
    @inline(__always) func plainField(from start: Int, before end: Int) -> (FieldBlock.Entry, next: Int)? {
        let nameEnd = endOfToken(in: start..<end)
        let afterName = nameEnd &+ 1
        guard nameEnd > start, afterName < end, unsafe self[unchecked: nameEnd] == UInt8(ascii: ":"),
            let lineEnd = firstInvalidValueByte(in: afterName..<end), lineEnd &+ 1 < end,
            unsafe self[unchecked: lineEnd] == ByteClass.carriageReturn,
            unsafe self[unchecked: lineEnd &+ 1] == ByteClass.lineFeed
        else { return nil }
        // All bytes of the value are valid: those up to SP are blanks.
        var (valueStart, valueEnd) = (afterName, lineEnd)
        while valueStart < valueEnd, unsafe self[unchecked: valueStart] <= ByteClass.space { valueStart &+= 1 }
        while valueEnd > valueStart, unsafe self[unchecked: valueEnd &- 1] <= ByteClass.space { valueEnd &-= 1 }
        return (FieldBlock.Entry(name: start..<nameEnd, value: valueStart..<valueEnd), lineEnd &+ 2)
    }

    @inline(never) func copied(_ range: Range<Int>) -> [UInt8] {
        var copy: [UInt8] = []
        copy.reserveCapacity(range.count)
        unsafe extracting(range).withUnsafeBufferPointer { unsafe copy.append(contentsOf: $0) }
        return copy
    }

    /// The bytes in a range as text: UTF-8 if they are valid, else Latin-1.
    func text(_ range: Range<Int>) -> String { ByteText.string(copied(range)[...]) }
}
