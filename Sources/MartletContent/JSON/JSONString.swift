import MartletURL

/// A string of JSON as it is read (RFC 8259 §7).
struct JSONString {
    /// What it says.
    let text: String
    /// Where it ends: behind its closing quote.
    let end: Int

    /// Reads the string whose opening quote stands at an offset.
    init(in bytes: [UInt8], at start: Int) throws(JSONError) {
        var position = start + 1
        var hasEscapes = false
        scan: while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "\""): break scan
            case UInt8(ascii: "\\"):
                hasEscapes = true
                position += 2
            case 0..<0x20: throw JSONError(reason: .controlCharacter, offset: position)
            default: position += 1
            }
        }
        guard position < bytes.count else { throw JSONError(reason: .unexpectedEnd, offset: bytes.count) }
        let content = bytes[(start + 1)..<position]
        guard let raw = String(validating: content, as: UTF8.self) else {
            throw JSONError(reason: .invalidUTF8, offset: JSONString.malformedOffset(in: content))
        }
        text = hasEscapes ? try JSONString.unescaped(content) : raw
        end = position + 1
    }

    /// Where the first byte is that makes no UTF-8.
    private static func malformedOffset(in bytes: ArraySlice<UInt8>) -> Int {
        var parser = Unicode.UTF8.ForwardParser()
        var iterator = bytes.makeIterator()
        var offset = bytes.startIndex
        while case .valid(let scalar) = parser.parseScalar(from: &iterator) { offset += scalar.count }
        return offset
    }

    /// The text of a content that is UTF-8.
    private static func unescaped(_ content: ArraySlice<UInt8>) throws(JSONError) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(content.count)
        var position = content.startIndex
        while position < content.endIndex {
            guard content[position] == UInt8(ascii: "\\") else {
                text.append(content[position])
                position += 1
                continue
            }
            let escape = position
            position += 1
            guard position < content.endIndex else { throw JSONError(reason: .invalidEscape, offset: escape) }
            let letter = content[position]
            position += 1
            switch letter {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(letter)
            case UInt8(ascii: "b"): text.append(0x08)
            case UInt8(ascii: "f"): text.append(0x0C)
            case UInt8(ascii: "n"): text.append(0x0A)
            case UInt8(ascii: "r"): text.append(0x0D)
            case UInt8(ascii: "t"): text.append(0x09)
            case UInt8(ascii: "u"):
                let scalar = try scalar(content, &position, escape)
                text += Array(String(scalar).utf8)
            default: throw JSONError(reason: .invalidEscape, offset: escape)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The character of an escape, or of two that are a surrogate pair; the cursor stands behind the `u`.
    private static func scalar(
        _ content: ArraySlice<UInt8>, _ position: inout Int, _ escape: Int
    ) throws(JSONError) -> Unicode.Scalar {
        guard let unit = unit(content, &position) else {
            throw JSONError(reason: .invalidEscape, offset: escape)
        }
        if let scalar = Unicode.Scalar(unit) { return scalar }
        // Not a character by itself, so a surrogate: a high one, and a low one behind it.
        let second = position
        guard unit < 0xDC00, content[position...].starts(with: "\\u".utf8) else {
            throw JSONError(reason: .loneSurrogate, offset: escape)
        }
        position += 2
        guard let low = self.unit(content, &position) else {
            throw JSONError(reason: .invalidEscape, offset: second)
        }
        guard (0xDC00...0xDFFF).contains(low),
            let scalar = Unicode.Scalar(0x10000 + (UInt32(unit) - 0xD800) << 10 + (UInt32(low) - 0xDC00))
        else { throw JSONError(reason: .loneSurrogate, offset: escape) }
        return scalar
    }

    /// Four hexadecimal digits; `nil` where there are none.
    private static func unit(_ content: ArraySlice<UInt8>, _ position: inout Int) -> UInt16? {
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard position < content.endIndex, let digit = PercentEncoding.hexValue(content[position]) else {
                return nil
            }
            unit = unit << 4 | UInt16(digit)
            position += 1
        }
        return unit
    }
}

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
