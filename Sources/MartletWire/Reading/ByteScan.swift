/// Scans eight bytes a step. Bounds are checked once a step, by making a span of exactly eight bytes: the
/// reads inside it need no further checks and become one load.
extension Span where Element == UInt8 {
    /// The eight bytes from an index on, the first one in the lowest bits.
    @inline(__always)
    private func word(at index: Int) -> UInt64 {
        let bytes = extracting(index..<index &+ 8)
        let low = UInt64(bytes[0]) | UInt64(bytes[1]) << 8 | UInt64(bytes[2]) << 16 | UInt64(bytes[3]) << 24
        let high = UInt64(bytes[4]) | UInt64(bytes[5]) << 8 | UInt64(bytes[6]) << 16 | UInt64(bytes[7]) << 24
        return low | high << 32
    }

    /// The index of the first LF within a range, or nil.
    @inline(__always)
    func firstLineFeed(in range: Range<Int>) -> Int? {
        var index = range.lowerBound
        while index &+ 8 <= range.upperBound {
            let word = word(at: index) ^ 0x0A0A_0A0A_0A0A_0A0A
            let zeros = (word &- 0x0101_0101_0101_0101) & ~word & 0x8080_8080_8080_8080
            // The lowest mark is exact; marks above it may be borrow and are not looked at.
            if zeros != 0 { return index &+ zeros.trailingZeroBitCount >> 3 }
            index &+= 8
        }
        while index < range.upperBound {
            if self[index] == ByteClass.lineFeed { return index }
            index &+= 1
        }
        return nil
    }

    /// The index of the first byte within a range that no field value may have, or nil.
    @inline(__always)
    func firstInvalidValueByte(in range: Range<Int>) -> Int? {
        var index = range.lowerBound
        while index < range.upperBound {
            // What follows the range, such as the line's end, is loaded along with its last bytes and left out of account.
            if index &+ 8 <= count {
                let word = word(at: index)
                let controls = (word &- 0x2020_2020_2020_2020) & ~word
                let flipped = word ^ 0x7F7F_7F7F_7F7F_7F7F
                let deletes = (flipped &- 0x0101_0101_0101_0101) & ~flipped
                let within = range.upperBound &- index
                let counted = within < 8 ? (1 as UInt64) << UInt64(within &* 8) &- 1 : .max
                if (controls | deletes) & 0x8080_8080_8080_8080 & counted == 0 {
                    index &+= 8
                    continue
                }
            }
            // The message ends in fewer than eight bytes, or one of these eight is a control byte, perhaps a harmless
            // HTAB.
            let end = Swift.min(index &+ 8, range.upperBound)
            while index < end {
                if !ByteClass.isFieldValue(self[index]) { return index }
                index &+= 1
            }
        }
        return nil
    }

    /// The index of the first byte within a range that is not a token byte, or the end of the range.
    @inline(__always)
    func endOfToken(in range: Range<Int>) -> Int {
        var index = range.lowerBound
        while index < range.upperBound {
            if index &+ 8 <= range.upperBound {
                // Nearly all names are letters and hyphens: pass over those and look closer at what else
                // there is.
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
            if !ByteClass.isToken(self[index]) { return index }
            index &+= 1
        }
        return index
    }

    /// A copy of the bytes in a range.
    @inline(never)
    func copied(_ range: Range<Int>) -> [UInt8] {
        var copy: [UInt8] = []
        copy.reserveCapacity(range.count)
        unsafe extracting(range).withUnsafeBufferPointer { unsafe copy.append(contentsOf: $0) }
        return copy
    }

    /// The bytes in a range as text: UTF-8 if they are that, else Latin-1.
    func text(_ range: Range<Int>) -> String { ByteText.string(copied(range)[...]) }
}
