/// The classes of bytes that HTTP's grammar tells apart (RFC 9110 §5.6).
package enum ByteClass {
    /// Horizontal tab.
    package static let tab: UInt8 = 0x09
    /// Line feed.
    package static let lineFeed: UInt8 = 0x0A
    /// Carriage return.
    package static let carriageReturn: UInt8 = 0x0D
    /// Space.
    package static let space: UInt8 = 0x20

    /// Whether the byte may be in a token: a method, a field name, a coding (RFC 9110 §5.6.2).
    @inline(__always)
    package static func isToken(_ byte: UInt8) -> Bool {
        // One bit per byte value, in constants: looking a byte up costs shifts and no memory.
        let low: UInt64 = 0x03FF_6CFA_0000_0000
        let high: UInt64 = 0x57FF_FFFF_C7FF_FFFE
        let bits = byte & 0x40 == 0 ? low : high
        return byte < 0x80 && (bits >> UInt64(byte & 0x3F)) & 1 != 0
    }

    /// Whether the byte may be in a field value or reason phrase: HTAB, SP, visible ASCII, 0x80 and up.
    @inline(__always)
    package static func isFieldValue(_ byte: UInt8) -> Bool {
        (byte >= 0x20 && byte != 0x7F) || byte == tab
    }

    /// Whether the byte may be in a request target: visible ASCII without blanks.
    @inline(__always)
    package static func isTarget(_ byte: UInt8) -> Bool { byte > 0x20 && byte < 0x7F }

    /// Whether the byte is optional white space: SP or HTAB and nothing else (RFC 9110 §5.6.3).
    @inline(__always)
    package static func isBlank(_ byte: UInt8) -> Bool { byte == space || byte == tab }

    /// Whether the byte is an ASCII digit.
    @inline(__always)
    package static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

    /// The value of an ASCII digit, or nil.
    @inline(__always)
    package static func digit(_ byte: UInt8) -> Int? {
        let value = byte &- 0x30
        return value < 10 ? Int(value) : nil
    }

    /// The value of an ASCII hexadecimal digit in either case, or nil.
    @inline(__always)
    package static func hexDigit(_ byte: UInt8) -> UInt64? {
        let digit = byte &- 0x30
        if digit < 10 { return UInt64(digit) }
        let letter = (byte | 0x20) &- 0x61
        return letter < 6 ? UInt64(letter) + 10 : nil
    }

    /// The byte with an ASCII capital letter made small.
    @inline(__always)
    package static func lowercased(_ byte: UInt8) -> UInt8 {
        byte &- 0x41 < 26 ? byte | 0x20 : byte
    }

    /// Whether two strings of bytes are the same but for the case of ASCII letters.
    package static func equalsIgnoringCase(_ left: ArraySlice<UInt8>, _ right: Span<UInt8>) -> Bool {
        guard left.count == right.count else { return false }
        var index = left.startIndex
        for other in right.indices {
            guard lowercased(left[index]) == lowercased(right[other]) else { return false }
            index &+= 1
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

/// How bytes of a head become characters.
package enum ByteText {
    /// UTF-8 if the bytes are that, else Latin-1.
    package static func string(_ bytes: ArraySlice<UInt8>) -> String {
        String(validating: bytes, as: UTF8.self) ?? latin1(bytes)
    }

    /// Each byte as the character of the same number; the inverse of ``latin1Bytes(_:)``.
    package static func latin1(_ bytes: ArraySlice<UInt8>) -> String {
        // ASCII, mostly, which is the same in both.
        if bytes.allSatisfy({ $0 < 0x80 }) { return String(decoding: bytes, as: UTF8.self) }
        return String(decoding: bytes.lazy.map { UInt16($0) }, as: UTF16.self)
    }

    /// The bytes of a string whose characters are all below U+0100, or nil when one is not.
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
