/// The CRC-32 of gzip, zip and Ethernet (ISO 3309): what ``OriginHandler/upload`` reports of a body.
///
/// It finds accidents, not attacks.
public struct CRC32: Sendable, Hashable {
    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in
            value & 1 == 1 ? value >> 1 ^ 0xEDB8_8320 : value >> 1
        }
    }

    private var state: UInt32 = .max

    /// The checksum of no bytes.
    public init() {}

    /// The checksum of these bytes.
    public init(_ bytes: some Sequence<UInt8>) {
        update(with: bytes)
    }

    /// Adds bytes.
    public mutating func update(with bytes: some Sequence<UInt8>) {
        let table = CRC32.table
        var state = state
        for byte in bytes {
            state = state >> 8 ^ table[Int(UInt8(truncatingIfNeeded: state) ^ byte)]
        }
        self.state = state
    }

    /// The checksum.
    public var value: UInt32 { ~state }

    /// The checksum as eight hexadecimal digits.
    public var text: String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 8 - digits.utf8.count) + digits
    }
}
