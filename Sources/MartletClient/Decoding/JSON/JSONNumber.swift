/// A number of JSON with all its digits (RFC 8259 §6), however large or exact.
///
/// Numbers are equal when they mean the same: 1, 1.0 and 10e-1 are. (Exponents of more than 15 digits are compared as they
/// are written.)
public struct JSONNumber: Hashable, Sendable, CustomStringConvertible {
    /// The number as it is written.
    public let text: String

    /// An integer.
    public init(_ value: some FixedWidthInteger) {
        text = "\(value)"
    }

    /// The shortest number that reads back as this one; `nil` for infinities and what is no number.
    public init?(_ value: Double) {
        guard value.isFinite else { return nil }
        text = value.description
    }

    /// A number as it is written; `nil` where RFC 8259's grammar says otherwise.
    public init?(text: String) {
        let bytes = Array(text.utf8)
        guard let end = try? JSONParser.endOfNumber(in: bytes, from: 0), end == bytes.count else {
            return nil
        }
        self.text = text
    }

    /// A number that the parser has read.
    init(read text: String) {
        self.text = text
    }

    /// The integer; `nil` where it is none, or none that fits. 1.0 and 1e2 are.
    public var int: Int? { Int(text) ?? JSONDigits(text).integerText.flatMap { Int($0) } }

    /// The integer where it is not negative; `nil` where it is none, or none that fits.
    public var uint64: UInt64? { UInt64(text) ?? JSONDigits(text).integerText.flatMap { UInt64($0) } }

    /// The nearest number of this type; `nil` where it is beyond the largest.
    public var double: Double? { Double(text).flatMap { $0.isFinite ? $0 : nil } }

    /// The same as ``text``.
    public var description: String { text }

    /// Whether they mean the same.
    public static func == (left: JSONNumber, right: JSONNumber) -> Bool {
        left.text == right.text || JSONDigits(left.text) == JSONDigits(right.text)
    }

    /// Hashes what it means.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(JSONDigits(text))
    }
}

extension JSONNumber: ExpressibleByIntegerLiteral {
    /// An integer.
    public init(integerLiteral value: Int) {
        self.init(value)
    }
}

extension JSONNumber: ExpressibleByFloatLiteral {
    /// A number; 0 for a literal beyond the largest `Double`.
    public init(floatLiteral value: Double) {
        text = value.isFinite ? value.description : "0"
    }
}
