/// Numbers as netlink has them: in the machine's own order of bytes.
enum NetlinkNumber {
    /// Reads a number out of bytes that may be too few.
    /// - Parameter offset: Counted from the start of the slice; not negative.
    static func read<Number: FixedWidthInteger & UnsignedInteger>(
        _ type: Number.Type = Number.self, from bytes: ArraySlice<UInt8>, at offset: Int, _ field: String
    ) throws(NetlinkFault) -> Number {
        let count = Number.bitWidth / 8
        guard offset >= 0, bytes.count >= count, bytes.count - count >= offset else {
            throw NetlinkFault(field, at: bytes.endIndex)
        }
        var value: Number = 0
        for place in 0..<count {
            #if _endian(little)
                let index = bytes.startIndex + offset + count - 1 - place
            #else
                let index = bytes.startIndex + offset + place
            #endif
            value = value << 8 | Number(bytes[index])
        }
        return value
    }

    /// The bytes of a number.
    static func bytes(of number: some FixedWidthInteger & UnsignedInteger) -> [UInt8] {
        unsafe withUnsafeBytes(of: number) { unsafe [UInt8]($0) }
    }
}
