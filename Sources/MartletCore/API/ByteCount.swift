/// A number of bytes, written as people say it: `.mebibytes(16)`.
public struct ByteCount: Hashable, Sendable, Codable, Comparable, ExpressibleByIntegerLiteral {
    /// The number of bytes; a negative number counts as 0.
    public var bytes: Int { didSet { bytes = max(0, bytes) } }

    /// So many bytes; a negative number counts as 0.
    public init(_ bytes: Int) { self.bytes = max(0, bytes) }

    /// So many bytes.
    public init(integerLiteral value: Int) { self.init(value) }

    /// So many bytes.
    public static func bytes(_ count: Int) -> ByteCount { ByteCount(count) }

    /// So many times 1,024 bytes.
    public static func kibibytes(_ count: Int) -> ByteCount { ByteCount(product(count, 1 << 10)) }

    /// So many times 1,048,576 bytes.
    public static func mebibytes(_ count: Int) -> ByteCount { ByteCount(product(count, 1 << 20)) }

    /// So many times 1,073,741,824 bytes.
    public static func gibibytes(_ count: Int) -> ByteCount { ByteCount(product(count, 1 << 30)) }

    /// More bytes than there are.
    public static let unlimited = ByteCount(.max)

    /// Orders by number.
    public static func < (left: ByteCount, right: ByteCount) -> Bool { left.bytes < right.bytes }

    /// Reads a number of bytes.
    /// - Throws: `DecodingError.dataCorrupted` for a negative one.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        bytes = try container.decode(Int.self, forKey: .bytes)
        guard bytes >= 0 else {
            throw DecodingError.dataCorruptedError(
                forKey: .bytes, in: container, debugDescription: "a number of bytes must not be negative")
        }
    }

    private enum CodingKeys: String, CodingKey { case bytes }

    private static func product(_ count: Int, _ unit: Int) -> Int {
        let (value, overflow) = count.multipliedReportingOverflow(by: unit)
        return overflow ? .max : value
    }
}
