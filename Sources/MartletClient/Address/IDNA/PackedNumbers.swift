/// Reads the numbers of a generated table: five bits a character, lowest first, bit 32 saying that more
/// follow.
struct PackedNumbers {
    private var bytes: String.UTF8View.Iterator

    /// The numbers of a packed text.
    init(_ text: String) {
        bytes = text.utf8.makeIterator()
    }

    /// The next number; nil at the end.
    mutating func next() -> Int? {
        var value = 0
        var shift = 0
        while let byte = bytes.next() {
            let group = PackedNumbers.value(of: byte)
            value |= (group & 31) << shift
            if group < 32 { return value }
            shift += 5
        }
        return nil
    }

    /// The next number where one must follow; 0 past the end of a table, which the generator never writes.
    mutating func required() -> Int { next() ?? 0 }

    /// The next number, zigzag-coded.
    mutating func signed() -> Int {
        let value = required()
        return value & 1 == 0 ? value >> 1 : -(value + 1) >> 1
    }

    private static func value(of byte: UInt8) -> Int {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): Int(byte - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): Int(byte - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "-"): 62
        default: 63
        }
    }
}
