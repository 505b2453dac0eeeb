import MartletWire

/// A JSON number with all its digits (RFC 8259 §6), of any size and precision. Numbers with the same value are equal,
/// such as 1, 1.0 and 10e-1. Exponents of more than 15 digits are compared as written.
public struct JSONNumber: Hashable, Sendable, CustomStringConvertible {
    /// The number as written.
    public let text: String

    /// Creates a number from an integer.
    public init(_ value: some FixedWidthInteger) { text = "\(value)" }

    /// Creates the shortest number that parses to the same `Double`; `nil` for infinities and NaN.
    public init?(_ value: Double) {
        guard value.isFinite else { return nil }
        text = value.description
    }

    /// Creates a number as written; `nil` if it violates the grammar of RFC 8259.
    public init?(text: String) {
        let bytes = Array(text.utf8)
        guard (try? JSONParser.endOfNumber(in: bytes, from: 0)) == bytes.count else { return nil }
        self.text = text
    }

    /// Creates a number that the parser has read.
    init(read text: String) { self.text = text }

    /// The integer, also for 1.0 and 1e2; `nil` for other numbers, and for an integer that does not fit.
    public var int: Int? { Int(text) ?? JSONDigits(text).integerText.flatMap { Int($0) } }
    /// The unsigned integer; `nil` for other numbers, and for an integer that does not fit or is negative.
    public var uint64: UInt64? { UInt64(text) ?? JSONDigits(text).integerText.flatMap { UInt64($0) } }
    /// The nearest `Double`; `nil` beyond the largest finite one.
    public var double: Double? { Double(text).flatMap { $0.isFinite ? $0 : nil } }
    /// The same as ``text``.
    public var description: String { text }

    /// Whether the values of two numbers are equal.
    public static func == (left: JSONNumber, right: JSONNumber) -> Bool {
        left.text == right.text || JSONDigits(left.text) == JSONDigits(right.text)
    }

    /// Hashes the value of the number.
    public func hash(into hasher: inout Hasher) { hasher.combine(JSONDigits(text)) }
}

extension JSONNumber: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral {
    /// Creates a number from an integer literal.
    public init(integerLiteral value: Int) { self.init(value) }
    /// Creates a number from a literal; 0 for a literal beyond the largest `Double`.
    public init(floatLiteral value: Double) { text = value.isFinite ? value.description : "0" }
}

/// The value of a JSON number: its digits without leading and trailing zeros, times a power of ten.
private struct JSONDigits: Hashable, Sendable {
    /// The maximum number of digits of an exponent that is used in calculations.
    private static let exponentDigitLimit = 15
    /// Whether the value is below zero; `false` for -0.
    private let isNegative: Bool
    /// The digits from the first to the last that is not 0; empty for zero.
    private let digits: [UInt8]
    /// The power of ten.
    private let exponent: Int
    /// The digits of an exponent that is too long for calculations, as written.
    private let hugeExponent: [UInt8]

    /// Parses a number that is valid by the grammar, in linear time.
    init(_ text: String) {
        let bytes = Array(text.utf8)
        let end = bytes.firstIndex { $0 == UInt8(ascii: "e") || $0 == UInt8(ascii: "E") } ?? bytes.count
        let mantissa = bytes[..<end]
        var digits = mantissa.filter(ByteClass.isDigit)
        let point = mantissa.firstIndex(of: UInt8(ascii: "."))
        var exponent = point.map { -(end - $0 - 1) } ?? 0
        let trailing = digits.reversed().prefix { $0 == UInt8(ascii: "0") }.count
        digits.removeLast(trailing)
        exponent += trailing
        digits.removeFirst(digits.prefix { $0 == UInt8(ascii: "0") }.count)
        guard !digits.isEmpty else {
            (isNegative, self.digits, self.exponent, hugeExponent) = (false, [], 0, [])
            return
        }
        isNegative = bytes.first == UInt8(ascii: "-")
        self.digits = digits
        var written = bytes[min(end + 1, bytes.count)...]
        let isSmall = written.first == UInt8(ascii: "-")
        if isSmall || written.first == UInt8(ascii: "+") { written = written.dropFirst() }
        written = written.drop { $0 == UInt8(ascii: "0") }
        if written.count <= JSONDigits.exponentDigitLimit {
            let size = written.reduce(0) { $0 * 10 + Int($1 &- UInt8(ascii: "0")) }
            self.exponent = exponent + (isSmall ? -size : size)
            hugeExponent = []
        } else {
            self.exponent = exponent
            hugeExponent = (isSmall ? [UInt8(ascii: "-")] : []) + written
        }
    }

    /// The integer, written without exponent; `nil` for other numbers, and for more than 20 digits.
    var integerText: String? {
        guard !digits.isEmpty else { return "0" }
        guard hugeExponent.isEmpty, exponent >= 0, exponent <= 20, digits.count + exponent <= 20 else { return nil }
        let zeros = [UInt8](repeating: UInt8(ascii: "0"), count: exponent)
        return (isNegative ? "-" : "") + String(decoding: digits + zeros, as: UTF8.self)
    }
}
