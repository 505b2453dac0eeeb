/// Writes values as JSON (RFC 8259).
struct JSONWriter {
    private let style: JSONValue.Style
    private var depth = 0
    /// What was written.
    private(set) var bytes: [UInt8] = []

    init(_ style: JSONValue.Style) { self.style = style }

    /// Writes a value.
    mutating func write(_ value: JSONValue) {
        switch value {
        case .null: bytes += "null".utf8
        case .bool(let value): bytes += (value ? "true" : "false").utf8
        case .number(let number): bytes += number.text.utf8
        case .string(let text): write(text)
        case .array(let elements):
            list(elements, from: UInt8(ascii: "["), to: UInt8(ascii: "]")) { $0.write($1) }
        case .object(let members):
            let sorted =
                style.contains(.sorted)
                ? members.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) } : Array(members)
            list(sorted, from: UInt8(ascii: "{"), to: UInt8(ascii: "}")) { writer, member in
                writer.write(member.name)
                writer.bytes.append(UInt8(ascii: ":"))
                if writer.style.contains(.indented) { writer.bytes.append(UInt8(ascii: " ")) }
                writer.write(member.value)
            }
        }
    }

    private mutating func list<Element>(
        _ elements: [Element], from opening: UInt8, to closing: UInt8,
        _ write: (inout JSONWriter, Element) -> Void
    ) {
        bytes.append(opening)
        depth += 1
        for (index, element) in elements.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            breakLine()
            write(&self, element)
        }
        depth -= 1
        if !elements.isEmpty { breakLine() }
        bytes.append(closing)
    }

    private mutating func breakLine() {
        guard style.contains(.indented) else { return }
        bytes.append(0x0A)
        for _ in 0..<depth { bytes += "  ".utf8 }
    }

    private mutating func write(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
            case 0x08: bytes += "\\b".utf8
            case 0x09: bytes += "\\t".utf8
            case 0x0A: bytes += "\\n".utf8
            case 0x0C: bytes += "\\f".utf8
            case 0x0D: bytes += "\\r".utf8
            case 0..<0x20:
                let digits = String(byte, radix: 16)
                bytes += "\\u00\(byte < 16 ? "0" : "")\(digits)".utf8
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}

extension JSONValue: CustomStringConvertible {
    /// How JSON is written.
    public struct Style: OptionSet, Hashable, Sendable {
        /// The options as bits.
        public let rawValue: Int

        /// A style by its bits.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// On one line, members in their order.
        public static let compact: Style = []
        /// A line for each value, two spaces deeper for each level.
        public static let indented = Style(rawValue: 1)
        /// Members by name, in the order of their bytes.
        public static let sorted = Style(rawValue: 2)
    }

    /// The value as JSON in UTF-8. Only what has to be escaped is.
    public func bytes(_ style: Style = .compact) -> [UInt8] {
        var writer = JSONWriter(style)
        writer.write(self)
        return writer.bytes
    }

    /// The value as JSON.
    public func text(_ style: Style = .compact) -> String { String(decoding: bytes(style), as: UTF8.self) }

    /// The value as JSON on one line.
    public var description: String { text() }
}

/// A number of JSON with all its digits (RFC 8259 §6), however large or exact.
///
/// Numbers are equal when they mean the same: 1, 1.0 and 10e-1 are. (Exponents of more than 15 digits are compared as they
/// are written.)
public struct JSONNumber: Hashable, Sendable, CustomStringConvertible {
    /// The number as it is written.
    public let text: String

    /// An integer.
    public init(_ value: some FixedWidthInteger) { text = "\(value)" }

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
    init(read text: String) { self.text = text }

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
    public func hash(into hasher: inout Hasher) { hasher.combine(JSONDigits(text)) }
}

extension JSONNumber: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral {
    /// An integer.
    public init(integerLiteral value: Int) { self.init(value) }

    /// A number; 0 for a literal beyond the largest `Double`.
    public init(floatLiteral value: Double) { text = value.isFinite ? value.description : "0" }
}
