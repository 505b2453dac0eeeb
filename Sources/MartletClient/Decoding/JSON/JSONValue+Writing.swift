extension JSONValue: CustomStringConvertible {
    /// How JSON is written.
    public struct Style: OptionSet, Hashable, Sendable {
        /// The options as bits.
        public let rawValue: Int

        /// A style by its bits.
        public init(rawValue: Int) {
            self.rawValue = rawValue
        }

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
    public func text(_ style: Style = .compact) -> String {
        String(decoding: bytes(style), as: UTF8.self)
    }

    /// The value as JSON on one line.
    public var description: String { text() }
}

extension HTTPBody {
    /// A JSON value, with all digits of its numbers.
    public static func json(_ value: JSONValue) -> HTTPBody {
        .bytes(value.bytes(), contentType: "application/json")
    }
}
