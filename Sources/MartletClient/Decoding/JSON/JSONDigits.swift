/// What a number of JSON means: its digits without needless zeros, and the power of ten they are multiplied by.
struct JSONDigits: Hashable, Sendable {
    /// Digits of an exponent beyond which it is not computed with.
    private static let exponentDigitLimit = 15

    /// Whether it is below zero; `false` for zero.
    private let isNegative: Bool
    /// The digits, from the first that is not 0 to the last; none for zero.
    private let digits: [UInt8]
    /// The power of ten.
    private let exponent: Int
    /// An exponent that is not computed with, as it is written.
    private let hugeExponent: [UInt8]

    /// What a number that follows the grammar means. Takes time linear in the text.
    init(_ text: String) {
        let bytes = Array(text.utf8)
        let end = bytes.firstIndex { $0 == UInt8(ascii: "e") || $0 == UInt8(ascii: "E") } ?? bytes.count
        let mantissa = bytes[..<end]
        var digits = mantissa.filter { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
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

    /// The integer that it is, written without exponent; `nil` where it is none, or has more than 20 digits.
    var integerText: String? {
        guard !digits.isEmpty else { return "0" }
        guard hugeExponent.isEmpty, exponent >= 0, exponent <= 20, digits.count + exponent <= 20 else {
            return nil
        }
        let zeros = [UInt8](repeating: UInt8(ascii: "0"), count: exponent)
        return (isNegative ? "-" : "") + String(decoding: digits + zeros, as: UTF8.self)
    }
}
