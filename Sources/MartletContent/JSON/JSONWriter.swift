/// A writer of values as JSON (RFC 8259).
struct JSONWriter {
    private let style: JSONValue.Style
    private var depth = 0
    /// The written bytes.
    private(set) var bytes: [UInt8] = []

    init(_ style: JSONValue.Style) { self.style = style }

    /// Writes a value and its members.
    mutating func write(_ value: JSONValue) {
        switch value {
        case .null: bytes += "null".utf8
        case .bool(let value): bytes += (value ? "true" : "false").utf8
        case .number(let number): bytes += number.text.utf8
        case .string(let text): write(text)
        case .array(let elements): list(elements, from: UInt8(ascii: "["), to: UInt8(ascii: "]")) { $0.write($1) }
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
        _ elements: [Element], from opening: UInt8, to closing: UInt8, _ write: (inout JSONWriter, Element) -> Void
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
    /// The format of written JSON.
    public struct Style: OptionSet, Hashable, Sendable {
        /// The options as bits.
        public let rawValue: Int

        /// Creates a style from its bits.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// The default format: one line, with members in their order.
        public static let compact: Style = []
        /// One line for each value, indented by two spaces for each level.
        public static let indented = Style(rawValue: 1)
        /// Members sorted by the bytes of their names.
        public static let sorted = Style(rawValue: 2)
    }

    /// Returns the value as JSON in UTF-8, with as few escapes as possible.
    public func bytes(_ style: Style = .compact) -> [UInt8] {
        var writer = JSONWriter(style)
        writer.write(self)
        return writer.bytes
    }

    /// Returns the value as JSON text.
    public func text(_ style: Style = .compact) -> String { String(decoding: bytes(style), as: UTF8.self) }

    /// The value as JSON on one line.
    public var description: String { text() }
}
