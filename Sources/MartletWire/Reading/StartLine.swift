/// The parts that status lines and request lines share.
enum StartLine {
    /// The version that the first eight bytes of a range name (RFC 9112 §2.3).
    ///
    /// - Throws: `code` when they are no version, or ``WireErrorCode/unsupportedVersion``.
    static func version(
        _ bytes: Span<UInt8>, in range: Range<Int>, code: WireErrorCode
    ) throws(WireError) -> WireVersion {
        let start = range.lowerBound
        let end = range.upperBound
        if let index = firstDifference(bytes.extracting(0..<end), from: start) {
            throw WireError(code, at: index)
        }
        guard start + 5 < range.upperBound, ByteClass.isDigit(bytes[start + 5]) else {
            throw WireError(code, at: min(start + 5, range.upperBound))
        }
        guard bytes[start + 5] == UInt8(ascii: "1") else {
            throw WireError(.unsupportedVersion, at: start + 5)
        }
        guard start + 7 < range.upperBound, bytes[start + 6] == UInt8(ascii: "."),
            ByteClass.isDigit(bytes[start + 7])
        else { throw WireError(code, at: min(start + 6, range.upperBound)) }
        return bytes[start + 7] == UInt8(ascii: "0") ? .http10 : .http11
    }

    /// The first index at which bytes differ from `HTTP/`, or nil if they do not as far as they reach.
    @inline(__always)
    static func firstDifference(_ bytes: Span<UInt8>, from start: Int) -> Int? {
        // The five characters in one word, the first one lowest: no string is touched per head.
        var expected: UInt64 = 0x2F_50_54_54_48
        let end = min(start &+ 5, bytes.count)
        var index = start
        while index < end {
            if bytes[index] != UInt8(truncatingIfNeeded: expected) { return index }
            expected >>= 8
            index &+= 1
        }
        return nil
    }

    /// The reason phrase in a range; the commonest one without a copy.
    static func reason(_ bytes: Span<UInt8>, in range: Range<Int>) -> String {
        let start = range.lowerBound
        if range.count == 2, bytes[start] == UInt8(ascii: "O"), bytes[start + 1] == UInt8(ascii: "K") {
            return "OK"
        }
        return bytes.text(range)
    }
}
